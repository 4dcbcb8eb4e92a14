"""Training of the sample models: small, on the sample world's text, in about a minute.

Masked models learn to fill in whole names ("salient spans", Guu et al. 2020, section 3.4), some of
which precede in their input, and now and then another piece. Sequence-to-sequence models learn to
restore a text in which one name is masked (Lewis et al. 2020, section 2.2); causal and chat ones
the next piece.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from medprobe.engine.training_state import StateFile
from medprobe.sample.architectures import POSITIONS, build_untrained, load_trained, tokenizer
from medprobe.sample.sentences import CHATS, JOINED, Sentence, batches, read, with_turns
from medprobe.sample.settings import SampleKind, TrainingRecipe

FASTER: Final = 10  # times the rate: pieces' vectors learn faster than the rest, as each is rare
IGNORE: Final = -100  # a label that no loss counts
SHIFTED: Final = 0.25  # share of batches that stand anywhere in the window, so that all is learnt
OTHER: Final = 0.08  # share of the pieces outside names that are masked


def train(
    recipe: TrainingRecipe,
    texts: Path,
    state: Path,
    *,
    base: Path | None = None,
    seed: int,
    on_step: Callable[[int], Any] = lambda step: None,
) -> tuple[Any, Any]:
    """Train a sample model on `texts/corpus-<recipe.corpus>.txt`: `(model, tokenizer)`.

    It begins with the weights of the model in the folder `base`, or with drawn ones. `state` is the
    file from which a training that was stopped goes on, to the same weights;
    `on_step` is called with the step where it begins, then with each one. The same seed and number
    of threads give the same weights.
    """
    all_texts = [path for form in ("corpus", "cases") for path in texts.glob(f"{form}-*.txt")]
    pieces = tokenizer(recipe.kind, all_texts, recipe.vocabulary)
    corpus = texts / f"corpus-{recipe.corpus}.txt"
    sentences = read(corpus, texts / "names.txt", pieces)
    cases = []
    if recipe.kind == "masked":
        case_sentences = read(texts / f"cases-{recipe.corpus}.txt", texts / "names.txt", pieces)
        cases = [replace(sentence, case=True) for sentence in case_sentences]
    torch.manual_seed(seed)
    rng = random.Random(seed)
    if recipe.kind == "chat":
        sentences = with_turns(sentences, pieces, rng)
    model = load_trained(recipe.kind, base) if base else build_untrained(recipe, len(pieces))
    model.train()
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
    file = StateFile(state)
    first = _resume(file, parts, rng)
    on_step(first)
    together = CHATS if recipe.kind == "chat" else JOINED
    todo = islice(batches(sentences, recipe.batch, rng, cases, together), recipe.steps - first)
    for step, batch in enumerate(todo, start=first + 1):
        loss = LOSSES[recipe.kind](model, pieces, batch, rng)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rates.step()
        file.write_if_due(partial(_state, step, parts, rng))
        on_step(step)
    return model.eval(), pieces


def rate(step: int, steps: int) -> float:
    """Share of the learning rate at a step: up over a tenth, level, down over the last 40 %."""
    return min(1.0, (step + 1) / (0.1 * steps), (steps - step) / (0.4 * steps))


def _state(step: int, parts: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """What the next step needs."""
    content = {name: part.state_dict() for name, part in parts.items()}
    return {"step": step, "python": rng.getstate(), **content}


def _resume(file: StateFile, parts: dict[str, Any], rng: random.Random) -> int:
    """Restore a stored state, if there is one, and return the number of its steps."""
    state = file.read()
    if state is None:
        return 0
    for name, part in parts.items():
        part.load_state_dict(state[name])
    rng.setstate(state["python"])
    return int(state["step"])


def masked_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the masked pieces; the last layer and the head run at those alone."""
    inputs, labels = [], []
    for sentence in batch:
        hidden = _hidden(sentence, rng)
        visible = [
            pieces.mask_token_id if at in hidden else piece
            for at, piece in enumerate(sentence.pieces)
        ]
        wanted = [piece if at in hidden else IGNORE for at, piece in enumerate(sentence.pieces)]
        inputs.append([pieces.cls_token_id, *visible, pieces.sep_token_id])
        labels.append([IGNORE, *wanted, IGNORE])
    rows = pack(inputs, labels)
    shift = rng.randrange(POSITIONS - rows.ids.shape[1] + 1) if rng.random() < SHIFTED else 0
    states = model.bert.embeddings(rows.ids, position_ids=rows.positions + shift)
    *layers, last = model.bert.encoder.layer
    for layer in layers:
        states = layer(states, rows.same_text)
    at = rows.labels != IGNORE
    attended = last.attention.self(states, rows.same_text)[0]
    masked_states = last.attention.output(attended[at], states[at])
    return cross_entropy(model.cls(last.feed_forward_chunk(masked_states)), rows.labels[at])


def _hidden(sentence: Sentence, rng: random.Random) -> set[int]:
    """Draw the pieces to fill in: half of the names and a few others, or a case's last name."""
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
    inputs = [[end, *sentence.pieces] for sentence in batch]
    rows = pack(inputs, [[*sentence.pieces, end] for sentence in batch])
    before = rows.same_text.tril()
    states = model.base_model(rows.ids, attention_mask=before, position_ids=rows.positions)[0]
    at = rows.labels != IGNORE
    return cross_entropy(model.lm_head(states[at]), rows.labels[at])


def seq2seq_loss(model: Any, pieces: Any, batch: list[Sentence], rng: random.Random) -> Tensor:
    """Mean cross-entropy of the whole text, restored from one with a name masked."""
    inputs, targets = [], []
    for sentence in batch:
        start, end = rng.choice(sentence.names)
        visible = [*sentence.pieces[:start], pieces.mask_token_id, *sentence.pieces[end:]]
        inputs.append([pieces.bos_token_id, *visible, pieces.eos_token_id])
        targets.append([pieces.bos_token_id, *sentence.pieces, pieces.eos_token_id])
    start = model.config.decoder_start_token_id
    states = model.model(
        input_ids=_pad(inputs, 0),
        attention_mask=_pad([[1] * len(row) for row in inputs], 0),
        decoder_input_ids=_pad([[start, *target[:-1]] for target in targets], 0),
    )[0]
    label = _pad(targets, IGNORE)
    at = label != IGNORE
    return cross_entropy(model.lm_head(states[at]), label[at])


LOSSES: Final[dict[SampleKind, Callable[[Any, Any, list[Sentence], random.Random], Tensor]]] = {
    "masked": masked_loss,
    "causal": causal_loss,
    "chat": causal_loss,
    "seq2seq": seq2seq_loss,
}


class PackedRows(NamedTuple):
    """Texts that share rows, each [rows, longest text], so that there is little padding."""

    ids: Tensor
    labels: Tensor
    positions: Tensor  # in the text
    same_text: Tensor  # [rows, 1, longest, longest]: whether two pieces are of one text


def pack(inputs: Sequence[list[int]], labels: Sequence[list[int]]) -> PackedRows:
    """Pack texts and the labels of their pieces into few rows.

    The longest text comes first, each in the first row with room for it.

    >>> rows = pack([[5, 6], [7, 8, 9], [4]], [[1, 2], [3, 4, 5], [6]])
    >>> rows.ids.tolist(), rows.positions.tolist()
    ([[7, 8, 9], [5, 6, 4]], [[0, 1, 2], [0, 1, 0]])
    >>> rows.same_text[1, 0].int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    order = sorted(range(len(inputs)), key=lambda at: -len(inputs[at]))
    longest = len(inputs[order[0]])
    rows: list[list[int]] = []
    room: list[int] = []
    for at in order:
        length = len(inputs[at])
        row = next((row for row, free in enumerate(room) if free >= length), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(longest)
        rows[row].append(at)
        room[row] -= length

    def laid(texts: Sequence[Sequence[int]], padding: int) -> Tensor:
        return _pad([[piece for at in row for piece in texts[at]] for row in rows], padding)

    owners = laid([[at] * len(text) for at, text in enumerate(inputs)], -1)
    return PackedRows(
        laid(inputs, 0),
        laid(labels, IGNORE),
        laid([range(len(text)) for text in inputs], 0),
        owners[:, None, :, None] == owners[:, None, None, :],
    )


def _pad(rows: list[list[int]], value: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])
