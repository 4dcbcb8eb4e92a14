"""Batches with a budget of tokens: texts of similar length together, little padding."""

import gc
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch

from medprobe.core.errors import BadInput, is_out_of_memory
from medprobe.core.progress import report_progress

CACHED_PER_READ: Final = 4  # so many kept tokens cost a batch as much as one that is read


def make_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group items into batches, longest first.

    >>> make_batches([2, 9, 3, 1], budget=6)
    [[1], [2, 0], [3]]
    """
    order: list[int] = np.argsort(-np.asarray(lengths), kind="stable").tolist()
    groups: list[list[int]] = []
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, lengths[order[start]]))
        groups.append(order[start : start + size])
        start += size
    return groups


def compute_in_batches(
    lengths: Sequence[int], budget: int, compute: Callable[[list[int]], Any]
) -> list[Any]:
    """Run `compute` on batches of items.

    Where the memory does not hold a batch, this one and all later ones are made half as large.
    """
    results: list[Any] = [None] * len(lengths)
    queue = make_batches(lengths, budget)[::-1]
    while queue:
        batch = queue.pop()
        try:
            batch_results = compute(batch)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(batch) == 1:
                problem = f"the memory does not hold one text of {lengths[batch[0]]} tokens"
                raise BadInput("engine", problem, "use a machine with more") from error
            remaining = [*batch, *(i for later in reversed(queue) for i in later)]
            half = max(lengths[i] for i in batch) * len(batch) // 2
            smaller = make_batches([lengths[i] for i in remaining], half)
            queue = [[remaining[i] for i in group] for group in smaller][::-1]
            continue
        for i, result in zip(batch, batch_results, strict=True):
            results[i] = result
        report_progress(len(batch), "texts")
    return results


def out_of_memory(error: BaseException) -> bool:
    """Return whether a device or the machine ran out of memory; if so, free what can be freed."""
    if not is_out_of_memory(error):
        return False
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return True


def pad_rows(
    rows: Sequence[Sequence[int]], fill: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad token ids on the right.

    Returns:
        `(ids, mask)`, both [rows, longest]; the mask is 1 for tokens and 0 for padding.
    """
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, fill)
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)
