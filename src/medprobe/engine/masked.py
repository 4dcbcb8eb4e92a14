"""Masked language models: log-probabilities of tokens at chosen positions.

The head runs at the asked positions only (`heads`), whatever the architecture.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import torch

from medprobe.engine.batching import in_batches, padded
from medprobe.engine.heads import bounded, narrowed
from medprobe.engine.load import Model

Rows = Sequence[Sequence[int]]  # one a text: of token ids, or of positions in it
Kept = TypeVar("Kept")

ROWS_AT_ONCE: Final = 4096  # masked copies of texts that exist at a time


def log_probs(
    model: Model,
    rows: Rows,
    positions: Rows,
    budget: int,
    keep: Callable[[int, torch.Tensor], Kept],
) -> list[Kept]:
    """Run each row of token ids and return what `keep` makes of the log-probabilities at its
    positions, in the order of the rows.

    `keep` gets the row's index and a float32 tensor of shape (positions of the row, vocabulary) on
    the model's device, a view into a batch: it should return what is needed of it, not the tensor.
    What a row gets depends neither on the rows beside it, nor on padding, nor on `budget` (tokens
    in a batch).

    >>> log_probs(model, [[101, 12436, 103, 102]], [[2]], 8192, lambda row, found: found.shape)
    [torch.Size([1, 30522])]
    """

    vocabulary = model.model.config.vocab_size

    def compute(batch: list[int]) -> list[Kept]:
        found = []
        for part in bounded(batch, [len(row) for row in positions], vocabulary):
            logits = logits_at(model, [rows[i] for i in part], [positions[i] for i in part])
            counts = [len(positions[i]) for i in part]
            parts = logits.log_softmax(-1).split(counts)
            found += [keep(i, log_prob) for i, log_prob in zip(part, parts, strict=True)]
        return found

    with torch.inference_mode():
        return in_batches([len(row) for row in rows], budget, compute)


def pseudo_log_likelihood(
    model: Model, rows: Rows, groups: Sequence[Rows], budget: int
) -> list[list[float]]:
    """The log-probabilities of masked tokens given all else (Salazar et al., ACL 2020).

    `groups` has for each row of token ids the positions to mask, those of one group together:
    groups of one position give the pseudo-log-likelihood, groups that are words its whole-word
    variant. Returns for each row one number a position, in the order of its groups; their sum is
    the row's score, and exp(-mean) its pseudo-perplexity.
    """
    mask = model.tokenizer.mask_token_id
    work = [(i, group) for i, row_groups in enumerate(groups) for group in row_groups]
    found: list[list[float]] = [[] for _ in rows]
    for start in range(0, len(work), ROWS_AT_ONCE):
        chunk = work[start : start + ROWS_AT_ONCE]
        masked = [[mask if p in group else t for p, t in enumerate(rows[i])] for i, group in chunk]
        wanted = [[rows[i][position] for position in group] for i, group in chunk]

        def keep(item: int, log_prob: torch.Tensor, wanted: Rows = wanted) -> list[float]:
            tokens = torch.tensor(wanted[item], device=log_prob.device)
            scores: list[float] = log_prob.gather(1, tokens[:, None])[:, 0].tolist()
            return scores

        scores = log_probs(model, masked, [group for _, group in chunk], budget, keep)
        for (i, _), of_group in zip(chunk, scores, strict=True):
            found[i] += of_group
    return found


def logits_at(model: Model, rows: Rows, positions: Rows) -> torch.Tensor:
    """The head's output at the positions of all rows, (positions, vocabulary), in one batch."""
    ids, attention = padded(rows, model.tokenizer.pad_token_id, model.device)
    length = ids.shape[1]
    places = [i * length + position for i, row in enumerate(positions) for position in row]
    with narrowed(model.model.base_model, places):
        logits: torch.Tensor = model.model(ids, attention_mask=attention).logits
    return logits[0].float()
