"""Training of the sample models: small, on the sample world's text, in about a minute.

Masked models learn to fill in whole names ("salient spans", Guu et al. 2020, section 3.4), some of
which their input has told before, and now and then another piece; sequence-to-sequence models to
write a text anew in which one name is masked (Lewis et al. 2020, section 2.2); causal ones the next
piece.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from medprobe.engine.linear import accelerate
from medprobe.files import replacing
from medprobe.params import ModelKind
from medprobe.sample.architectures import POSITIONS, tokenizer, untrained
from medprobe.sample.settings import Recipe

IGNORE = -100  # a label that no loss counts
JOINED = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)  # sentences in an input, drawn for each batch
SHIFTED = 0.25  # share of batches that stand anywhere in the window, so that all of it is learnt
OTHER = 0.08  # share of the pieces beside names that are masked
CASE_SHARE = 0.4  # share of a masked model's batches that are of cases, in which to look names up
FASTER = 10  # the rate at which pieces' vectors learn, as each is seldom read, by that of the rest
SAVE_EVERY = 250  # steps between states that a stopped training goes on from


@dataclass(frozen=True)
class Sentence:
    """A sentence's pieces, and `(start, end)` of those of each name in it; a `case` is asked for
    its last name alone."""

    pieces: list[int]
    names: list[tuple[int, int]]
    case: bool = False


def train(
    kind: ModelKind,
    recipe: Recipe,
    texts: Path,
    state: Path,
    *,
    seed: int,
    done: Callable[[], Any] = lambda: None,
) -> tuple[Any, Any]:
    """Train a sample model on `texts/corpus-<recipe.corpus>.txt`: `(model, tokenizer)`.

    `state` is the file from which a training that was stopped goes on, to the same weights;
    `done` is called after each step. The same seed and number of threads give the same weights.
    """
    read_by_some = [path for form in ("corpus", "cases") for path in texts.glob(f"{form}-*.txt")]
    pieces = tokenizer(kind, read_by_some, recipe.vocabulary)
    corpus = texts / f"corpus-{recipe.corpus}.txt"
    sentences = read(corpus, texts / "names.txt", pieces)
    cases = []
    if kind == "masked":
        told = read(texts / f"cases-{recipe.corpus}.txt", texts / "names.txt", pieces)
        cases = [replace(sentence, case=True) for sentence in told]
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model = untrained(kind, recipe, len(pieces)).train()
    accelerate(model)
    vectors = model.get_input_embeddings().weight
    others = [weight for weight in model.parameters() if weight is not vectors]
    groups: list[dict[str, Any]] = [
        {"params": others},
        {"params": [vectors], "lr": FASTER * recipe.learning_rate},
    ]
    optimiser = torch.optim.AdamW(
        groups,
        lr=recipe.learning_rate,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        fused=True,
    )
    rates = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, recipe.steps))
    parts = {"model": model, "optimiser": optimiser, "rates": rates}
    first = _resume(state, parts, rng)
    for _ in range(first):
        done()
    todo = islice(batches(sentences, recipe.batch, rng, cases), recipe.steps - first)
    for step, batch in enumerate(todo, start=first + 1):
        loss = LOSSES[kind](model, pieces, batch, rng)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rates.step()
        if step % SAVE_EVERY == 0:
            _save(state, step, parts, rng)
        done()
    return model.eval(), pieces


def rate(step: int, steps: int) -> float:
    """Share of the learning rate at a step: up over a tenth, level, down over the last 40 %."""
    return min(1.0, (step + 1) / (0.1 * steps), (steps - step) / (0.4 * steps))


def _save(state: Path, step: int, parts: dict[str, Any], rng: random.Random) -> None:
    content = {name: part.state_dict() for name, part in parts.items()}
    draws = {"python": rng.getstate(), "torch": torch.get_rng_state()}
    with replacing(state) as path:
        torch.save({"step": step, **draws, **content}, path)


def _resume(state: Path, parts: dict[str, Any], rng: random.Random) -> int:
    """Take up a saved state, where there is one; the number of steps done."""
    if not state.is_file():
        return 0
    content = torch.load(state, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(content[name])
    rng.setstate(content["python"])
    torch.set_rng_state(content["torch"])
    return int(content["step"])


def read(corpus: Path, names: Path, pieces: Any) -> list[Sentence]:
    """The sentences of a corpus, one a line, and the names in them, the longest where several
    begin at one word."""
    known = set(names.read_text(encoding="utf-8").splitlines())
    longest = max(name.count(" ") + 1 for name in known)

    @cache
    def ids(word: str) -> list[int]:
        return pieces.encode(word, add_special_tokens=False)

    def sentence(line: str) -> Sentence:
        words = line.split(" ")
        found: list[int] = []
        spans: list[tuple[int, int]] = []
        at = 0
        while at < len(words):
            ends = range(min(len(words), at + longest), at, -1)
            end = next((end for end in ends if " ".join(words[at:end]) in known), None)
            start = len(found)
            for word in words[at : end or at + 1]:
                found += ids(word)
            if end:
                spans.append((start, len(found)))
            at = end or at + 1
        return Sentence(found, spans)

    return [sentence(line) for line in corpus.read_text(encoding="utf-8").splitlines()]


def batches(
    sentences: list[Sentence], size: int, rng: random.Random, cases: Sequence[Sentence] = ()
) -> Iterator[list[Sentence]]:
    """Endless batches of `size` sentences: each an input of its own, or joined with those that
    stand beside it, so that longer inputs are known too. Where there are cases, some batches are
    of half as many of these."""
    while True:
        if cases and rng.random() < CASE_SHARE:
            yield rng.choices(cases, k=size // 2)
            continue
        joined = rng.choice(JOINED)
        starts = (rng.randrange(len(sentences) - joined + 1) for _ in range(size // joined))
        yield [join(sentences[start : start + joined]) for start in starts]


def join(parts: list[Sentence]) -> Sentence:
    """One sentence of several, cut to the window.

    >>> join([Sentence([7, 8], [(0, 1)]), Sentence([9], [(0, 1)])])
    Sentence(pieces=[7, 8, 9], names=[(0, 1), (2, 3)])
    """
    pieces: list[int] = []
    names: list[tuple[int, int]] = []
    for part in parts:
        names += [(start + len(pieces), end + len(pieces)) for start, end in part.names]
        pieces += part.pieces
    room = POSITIONS - 2
    return Sentence(pieces[:room], [span for span in names if span[1] <= room])


def masked_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the masked pieces; the head runs at those alone."""
    inputs, labels = [], []
    for sentence in batch:
        hidden = _hidden(sentence, rng)
        shown = [
            pieces.mask_token_id if at in hidden else piece
            for at, piece in enumerate(sentence.pieces)
        ]
        wanted = [piece if at in hidden else IGNORE for at, piece in enumerate(sentence.pieces)]
        inputs.append([pieces.cls_token_id, *shown, pieces.sep_token_id])
        labels.append([IGNORE, *wanted, IGNORE])
    ids, label = _pad(inputs, 0), _pad(labels, IGNORE)
    shift = rng.randrange(POSITIONS - ids.shape[1] + 1) if rng.random() < SHIFTED else 0
    positions = torch.arange(shift, shift + ids.shape[1])[None]
    states = model.bert(ids, attention_mask=_attention(inputs), position_ids=positions)[0]
    at = label != IGNORE
    return cross_entropy(model.cls(states[at]), label[at])


def _hidden(sentence: Sentence, rng: random.Random) -> set[int]:
    """The pieces to fill in: half of the names, and a few of the rest; a case's last name."""
    if sentence.case:
        return set(range(*sentence.names[-1]))
    spans = rng.sample(sentence.names, (len(sentence.names) + 1) // 2)
    named = {at for start, end in sentence.names for at in range(start, end)}
    rest = (at for at in range(len(sentence.pieces)) if at not in named)
    others = {at for at in rest if rng.random() < OTHER}
    return others | {at for start, end in spans for at in range(start, end)}


def causal_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of every next piece, the end's mark too."""
    end = pieces.eos_token_id
    inputs = [[end, *sentence.pieces, end] for sentence in batch]
    states = model.transformer(_pad(inputs, 0), attention_mask=_attention(inputs))[0][:, :-1]
    label = _pad(inputs, IGNORE)[:, 1:]
    at = label != IGNORE
    return cross_entropy(model.lm_head(states[at]), label[at])


def seq2seq_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the whole text, written anew from one with a name masked."""
    inputs, targets = [], []
    for sentence in batch:
        start, end = rng.choice(sentence.names)
        shown = [*sentence.pieces[:start], pieces.mask_token_id, *sentence.pieces[end:]]
        inputs.append([pieces.bos_token_id, *shown, pieces.eos_token_id])
        targets.append([pieces.bos_token_id, *sentence.pieces, pieces.eos_token_id])
    start = model.config.decoder_start_token_id
    states = model.model(
        input_ids=_pad(inputs, 0),
        attention_mask=_attention(inputs),
        decoder_input_ids=_pad([[start, *target[:-1]] for target in targets], 0),
    )[0]
    label = _pad(targets, IGNORE)
    at = label != IGNORE
    return cross_entropy(model.lm_head(states[at]), label[at])


LOSSES: dict[ModelKind, Callable[[Any, Any, list[Sentence], random.Random], Tensor]] = {
    "masked": masked_loss,
    "causal": causal_loss,
    "seq2seq": seq2seq_loss,
}


def _pad(rows: list[list[int]], value: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def _attention(rows: list[list[int]]) -> Tensor:
    return _pad([[1] * len(row) for row in rows], 0)
