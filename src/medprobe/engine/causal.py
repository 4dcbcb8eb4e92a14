"""Log-likelihoods under models that write from left to right: causal models, and decoders.

A prefix that many texts share is read once; its keys and values serve all of them.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, islice, takewhile
from typing import Any, Final

import torch
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from medprobe.core.errors import BadInput
from medprobe.engine.batching import compute_in_batches, pad_rows
from medprobe.engine.heads import narrow_head, split_by_logits, target_log_probs
from medprobe.engine.load import CACHE, Model
from medprobe.engine.slots import ANCHOR, Slot, text_slots

Rows = Sequence[Sequence[int]]  # token ids, one a text
ALONE_ROWS: Final = 16  # of a batch that scores texts as if each were alone
ALONE_WIDTH: Final = 32  # its rows have a multiple of so many tokens


def start_ids(model: Model) -> list[int]:
    """Return the special tokens that the tokenizer puts before a text, none where it adds none.

    Models without such a token, such as GPT-2 and Qwen, have learnt texts without it.
    """
    encoded = model.tokenizer(ANCHOR, return_special_tokens_mask=True, verbose=False)
    pairs = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
    return [token for token, _ in takewhile(lambda pair: pair[1], pairs)]


def prefix_ids(model: Model, where: object) -> list[int]:
    """Return what a text begins with whose first token must be scored.

    It is `start_ids`. Where the tokenizer adds none, it is its token for the beginning of a text,
    or for the end of one, which is what lm-evaluation-harness puts in place of an empty context.
    """
    tokenizer = model.tokenizer
    marks = [tokenizer.bos_token_id, tokenizer.eos_token_id]
    start = start_ids(model) or [mark for mark in marks if mark is not None][:1]
    if not start:
        problem = f"nothing is before the answer, and {model.name} has no token to begin a text"
        raise BadInput(where, problem, "begin the prompt with a word")
    return start


def prompt_slots(model: Model, prompts: Sequence[str], where: Sequence[str]) -> list[Slot]:
    """Tokenise prompts that a causal model reads.

    A prompt begins as the tokenizer begins it. Where it would begin with its slot, `prefix_ids` are
    before it: otherwise the first token of each answer would have no probability.
    """
    start = start_ids(model)
    slots = text_slots(model.tokenizer, prompts, where, start)
    return [
        replace(slot, forced=max(len(start), 1))
        if slot.before
        else replace(slot, before=tuple(prefix_ids(model, name)))
        for slot, name in zip(slots, where, strict=True)
    ]


def log_likelihood(model: Model, rows: Rows, budget: int) -> list[list[float]]:
    """Return the log-probability of each token given those before it, without the first token.

    exp(-mean) of a row's numbers is its perplexity. A row's numbers depend neither on the other
    rows nor on `budget`.
    """

    def compute(batch: list[int]) -> list[list[float]]:
        scores = []
        for part in split_by_logits(batch, [len(row) for row in rows], model.config.vocab_size):
            scores += _scores(model, [rows[i][:-1] for i in part], [rows[i][1:] for i in part])
        return scores

    with torch.inference_mode():
        return compute_in_batches([len(row) for row in rows], budget, compute)


def log_likelihood_alone(model: Model, rows: Rows) -> list[list[float]]:
    """Return what `log_likelihood` does, to the last bit whatever the other rows are.

    On a processor each row is a batch. Other devices read batches of one shape, in which a row's
    numbers are the same in any company; where a try shows that they are not, row by row.
    """
    if model.device.type == "cpu":
        return [log_likelihood(model, [row], 1)[0] for row in rows]
    scores: dict[int, list[float]] = {}
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for width, group in groupby(order, key=lambda i: -(-len(rows[i]) // ALONE_WIDTH)):
        places = [*group]
        found = _in_one_shape(model, [rows[i] for i in places], width * ALONE_WIDTH)
        scores |= zip(places, found, strict=True)
    return [scores[i] for i in range(len(rows))]


def _in_one_shape(model: Model, rows: Rows, width: int) -> list[list[float]]:
    """Score rows of at most `width` tokens in batches of ALONE_ROWS."""

    def compute(batch: Rows) -> list[list[float]]:
        full = [*batch, *[batch[0]] * (ALONE_ROWS - len(batch)), [0] * width]
        ids, _ = pad_rows(full, 0, model.device)
        log_probs = model.model(ids).logits.float().log_softmax(-1)
        found = log_probs[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0].tolist()
        return [row[: len(ids) - 1] for row, ids in zip(found, batch, strict=False)]

    with torch.inference_mode():
        scores: list[list[float]] = []
        for start in range(0, len(rows), ALONE_ROWS):
            scores += compute(rows[start : start + ALONE_ROWS])
        half = rows[: ALONE_ROWS // 2][::-1]  # in other places, beside others
        if len(rows) > 1 and compute(half) != scores[: len(half)][::-1]:
            return [log_likelihood(model, [row], 1)[0] for row in rows]
    return scores


def endings(model: Model, texts: Rows, possible: Sequence[Rows], budget: int) -> list[list[float]]:
    """Return for each text the log-probability of each of its possible endings.

    The head runs at the endings alone, and what a text and several endings begin with is read once.
    """
    endings_by_text: dict[tuple[int, ...], list[Sequence[int]]] = {}  # by what is read
    for text, ends in zip(texts, possible, strict=True):
        for end in ends:
            endings_by_text.setdefault((*text, *end[:-1]), []).append(end)
    reads, endings_of = [*endings_by_text], [*endings_by_text.values()]
    counts = [sum(map(len, ends)) for ends in endings_of]

    def compute(batch: list[int]) -> list[list[float]]:
        sums = []
        for part in split_by_logits(batch, counts, model.config.vocab_size):
            targets = []
            for row, i in enumerate(part):
                for end in endings_of[i]:
                    begin = len(reads[i]) - len(end)
                    targets += [(row, begin + offset, token) for offset, token in enumerate(end)]
            scores = iter(_token_log_probs(model, [reads[i] for i in part], targets))
            sums += [[sum(islice(scores, len(end))) for end in endings_of[i]] for i in part]
        return sums

    with torch.inference_mode():
        computed = compute_in_batches([len(read) for read in reads], budget, compute)
    remaining = dict(zip(reads, map(iter, computed), strict=True))
    return [
        [next(remaining[(*text, *end[:-1])]) for end in ends]
        for text, ends in zip(texts, possible, strict=True)
    ]


def continuations(
    model: Model, prefix: Sequence[int], suffixes: Rows, budget: int, source: Sequence[int] = ()
) -> tuple[list[float], list[list[float]]]:
    """Return log-probabilities of a prefix, and of many suffixes after it.

    Memory is bounded however many suffixes there are.
    """
    if not model.keeps_states:
        rows = log_likelihood(model, [[*prefix, *suffix] for suffix in suffixes], budget)
        return rows[0][: len(prefix) - 1], [row[len(prefix) - 1 :] for row in rows]
    with torch.inference_mode():
        encoder_output = _encoded(model, source) if source else {}
        ids = torch.tensor([list(prefix)], device=model.device)
        with narrow_head(body(model), range(len(prefix))):
            out = model.model(**decoder_inputs(model, ids), **encoder_output, use_cache=True)
        logits = out.logits[0].float()
        last = logits[-1].log_softmax(-1)
        first_scores = last[
            torch.tensor([suffix[0] for suffix in suffixes], device=model.device)
        ].tolist()

        def compute(batch: list[int]) -> list[list[float]]:
            scores = []
            for part in split_by_logits(
                batch, [len(suffix) for suffix in suffixes], logits.shape[-1]
            ):
                scores += _after(model, out[CACHE], [suffixes[i] for i in part], encoder_output)
            return scores

        later_scores = compute_in_batches([len(suffix) for suffix in suffixes], budget, compute)
    scores = [[first, *later] for first, later in zip(first_scores, later_scores, strict=True)]
    return target_log_probs(logits[:-1], list(prefix[1:])) if len(prefix) > 1 else [], scores


def _after(
    model: Model, cache: Any, suffixes: Rows, encoder_output: dict[str, Any]
) -> list[list[float]]:
    """Return the log-probabilities of the tokens of each suffix but its first, after `cache`."""
    if all(len(suffix) == 1 for suffix in suffixes):
        return [[] for _ in suffixes]
    repeated = copy.deepcopy(cache)
    repeated.batch_repeat_interleave(len(suffixes))
    if encoder_output:
        hidden = encoder_output["encoder_outputs"].last_hidden_state.expand(len(suffixes), -1, -1)
        encoder_output = {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}
    inputs, targets = [suffix[:-1] for suffix in suffixes], [suffix[1:] for suffix in suffixes]
    given = {CACHE: repeated, "use_cache": True, **encoder_output}
    return _scores(model, inputs, targets, **given)


def _scores(model: Model, inputs: Rows, targets: Rows, **inputs_: Any) -> list[list[float]]:
    """Return the log-probability of each target, the token after the input of the same index."""
    targets_ = [
        (i, position, token) for i, row in enumerate(targets) for position, token in enumerate(row)
    ]
    scores = iter(_token_log_probs(model, inputs, targets_, **inputs_))
    return [[next(scores) for _ in row] for row in targets]


def _token_log_probs(
    model: Model, inputs: Rows, targets: Sequence[tuple[int, int, int]], **extra: Any
) -> list[float]:
    """Return the log-probability of each target `(input, position, token after that position)`.

    Padding is on the right, where no token attends to it.
    """
    ids, _ = pad_rows(inputs, model.tokenizer.pad_token_id or 0, model.device)
    length = ids.shape[1]
    with narrow_head(body(model), [i * length + position for i, position, _ in targets]):
        logits = model.model(**decoder_inputs(model, ids), **extra).logits[0].float()
    return target_log_probs(logits, [token for _, _, token in targets])


def body(model: Model) -> torch.nn.Module:
    """Return the part of the network that its head works on."""
    network = model.model
    decoder: torch.nn.Module = network.get_decoder()  # OPT's head passes its base model by
    if decoder is network:  # Llama 4's name for its body is not where its body is
        decoder = next(p for p in network.children() if isinstance(p, PreTrainedModel))
    return decoder


def decoder_inputs(model: Model, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return token ids under the argument name by which the model takes what it writes."""
    return {"decoder_input_ids" if model.model.config.is_encoder_decoder else "input_ids": ids}


def _encoded(model: Model, source: Sequence[int]) -> dict[str, Any]:
    ids = torch.tensor([list(source)], device=model.device)
    hidden = model.model.get_encoder()(input_ids=ids).last_hidden_state
    return {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}
