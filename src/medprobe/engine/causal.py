"""Log-likelihoods under models that write from left to right: causal ones, and decoders.

What many texts begin with is read once; its keys and values serve all of them.
"""

import copy
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from transformers.modeling_outputs import BaseModelOutput

from medprobe.core.errors import BadInput
from medprobe.engine.batching import in_batches, padded
from medprobe.engine.heads import bounded, narrowed, of_targets
from medprobe.engine.load import Model

Rows = Sequence[Sequence[int]]  # token ids, one a text


def start_ids(model: Model) -> list[int]:
    """What a text begins with, so that its first word has a probability too: the tokenizer's token
    for the beginning of a text, or else for its end, as GPT-2 has it."""
    tokenizer = model.tokenizer
    for token in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return [token]
    raise BadInput(model.name, "its tokenizer has no token to begin a text with")


def log_likelihood(model: Model, rows: Rows, budget: int) -> list[list[float]]:
    """The log-probability of each token given those before it, the first left out.

    Let rows begin with `start_ids`. exp(-mean) of a row's numbers is its perplexity. What a row
    gets does not depend on the others, nor on `budget` (tokens in a batch).
    """

    def compute(batch: list[int]) -> list[list[float]]:
        scores = []
        for part in bounded(batch, [len(row) for row in rows], model.config.vocab_size):
            scores += _scores(model, [rows[i][:-1] for i in part], [rows[i][1:] for i in part])
        return scores

    with torch.inference_mode():
        return in_batches([len(row) for row in rows], budget, compute)


def endings(model: Model, texts: Rows, possible: Sequence[Rows], budget: int) -> list[list[float]]:
    """For each text the log-probability of each of its possible endings, none of them empty.

    The head runs at the endings alone, and what a text and several endings begin with is read once.
    `budget` is tokens in a batch.
    """
    asked: dict[tuple[int, ...], list[Sequence[int]]] = {}  # by what is read
    for text, ends in zip(texts, possible, strict=True):
        for end in ends:
            asked.setdefault((*text, *end[:-1]), []).append(end)
    reads, ends_of = [*asked], [*asked.values()]
    counts = [sum(map(len, ends)) for ends in ends_of]

    def compute(batch: list[int]) -> list[list[float]]:
        found = []
        for part in bounded(batch, counts, model.config.vocab_size):
            wanted = [
                (row, len(reads[i]) - len(end) + at, token)
                for row, i in enumerate(part)
                for end in ends_of[i]
                for at, token in enumerate(end)
            ]
            scores = iter(_of_tokens(model, [reads[i] for i in part], wanted))
            found += [[sum(islice(scores, len(end))) for end in ends_of[i]] for i in part]
        return found

    with torch.inference_mode():
        computed = in_batches([len(read) for read in reads], budget, compute)
    left = dict(zip(reads, map(iter, computed), strict=True))
    return [
        [next(left[(*text, *end[:-1])]) for end in ends]
        for text, ends in zip(texts, possible, strict=True)
    ]


def continuations(
    model: Model, prefix: Sequence[int], rests: Rows, budget: int, source: Sequence[int] = ()
) -> tuple[list[float], list[list[float]]]:
    """The log-probabilities of the prefix's tokens, the first left out, and for each of many
    continuations those of its tokens after the prefix.

    An encoder-decoder model reads `source` once, and prefix and rests are what its decoder writes.
    Both prefix and rests must not be empty. `budget` is the tokens of rests in a batch: memory is
    bounded however many continuations there are.
    """
    with torch.inference_mode():
        more = _encoded(model, source) if source else {}
        ids = torch.tensor([list(prefix)], device=model.device)
        with narrowed(body(model), range(len(prefix))):
            out = model.model(**written(model, ids), **more, use_cache=True)
        logits = out.logits[0].float()
        last = logits[-1].log_softmax(-1)
        firsts = last[torch.tensor([rest[0] for rest in rests], device=model.device)].tolist()

        def compute(batch: list[int]) -> list[list[float]]:
            scores = []
            for part in bounded(batch, [len(rest) for rest in rests], logits.shape[-1]):
                scores += _after(model, out.past_key_values, [rests[i] for i in part], more)
            return scores

        seconds = in_batches([len(rest) for rest in rests], budget, compute)
    scores = [[first, *others] for first, others in zip(firsts, seconds, strict=True)]
    return of_targets(logits[:-1], list(prefix[1:])) if len(prefix) > 1 else [], scores


def _after(model: Model, cache: Any, rests: Rows, more: dict[str, Any]) -> list[list[float]]:
    """Scores of the tokens of each rest but its first, after what `cache` holds."""
    if all(len(rest) == 1 for rest in rests):
        return [[] for _ in rests]
    repeated = copy.deepcopy(cache)
    repeated.batch_repeat_interleave(len(rests))
    if more:
        hidden = more["encoder_outputs"].last_hidden_state.expand(len(rests), -1, -1)
        more = {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}
    inputs, targets = [rest[:-1] for rest in rests], [rest[1:] for rest in rests]
    return _scores(model, inputs, targets, past_key_values=repeated, use_cache=True, **more)


def _scores(model: Model, inputs: Rows, targets: Rows, **more: Any) -> list[list[float]]:
    """The log-probability of each target, the token after the input of the same index."""
    wanted = [(i, at, token) for i, row in enumerate(targets) for at, token in enumerate(row)]
    scores = iter(_of_tokens(model, inputs, wanted, **more))
    return [[next(scores) for _ in row] for row in targets]


def _of_tokens(
    model: Model, inputs: Rows, wanted: Sequence[tuple[int, int, int]], **more: Any
) -> list[float]:
    """The log-probability of each `(input, place in it, token)`: of the token after that place.

    Padding stands to the right, where no token sees it.
    """
    ids, _ = padded(inputs, model.tokenizer.pad_token_id or 0, model.device)
    length = ids.shape[1]
    with narrowed(body(model), [i * length + at for i, at, _ in wanted]):
        logits = model.model(**written(model, ids), **more).logits[0].float()
    return of_targets(logits, [token for _, _, token in wanted])


def body(model: Model) -> torch.nn.Module:
    """What the head stands on."""
    found: torch.nn.Module = model.model.get_decoder()  # OPT's head passes its base model by
    return found


def written(model: Model, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Token ids under the name by which the model takes what it writes."""
    return {"decoder_input_ids" if model.model.config.is_encoder_decoder else "input_ids": ids}


def _encoded(model: Model, source: Sequence[int]) -> dict[str, Any]:
    ids = torch.tensor([list(source)], device=model.device)
    hidden = model.model.get_encoder()(input_ids=ids).last_hidden_state
    return {"encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}
