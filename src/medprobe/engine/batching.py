"""Batches that hold a budget of tokens: texts of like length together, no needless padding."""

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from medprobe.core.errors import BadInput
from medprobe.core.progress import report_progress


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of items in batches, longest first; a batch's size times its longest item is at most
    `budget` tokens (an item longer than that has a batch of its own).

    >>> batches([2, 9, 3, 1], budget=6)
    [[1], [2, 0], [3]]
    """
    made: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if made and lengths[made[-1][0]] * (len(made[-1]) + 1) <= budget:
            made[-1].append(i)
        else:
            made.append([i])
    return made


def in_batches(
    lengths: Sequence[int], budget: int, compute: Callable[[list[int]], Any]
) -> list[Any]:
    """Run `compute` on batches of items and return its results in the order of the items.

    `compute` gets the indices of a batch's items, longest first, and returns one result for each.
    Where the memory does not hold a batch, it and all later ones are made half as large. Raises
    BadInput where it does not hold a single item.
    """
    results: list[Any] = [None] * len(lengths)
    waiting = batches(lengths, budget)[::-1]
    while waiting:
        batch = waiting.pop()
        try:
            computed = compute(batch)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(batch) == 1:
                problem = f"the memory does not hold one text of {lengths[batch[0]]} tokens"
                raise BadInput("engine", problem, "use a machine with more") from error
            rest = [*batch, *(i for later in reversed(waiting) for i in later)]
            half = max(lengths[i] for i in batch) * len(batch) // 2
            smaller = batches([lengths[i] for i in rest], half)
            waiting = [[rest[i] for i in part] for part in smaller][::-1]
            continue
        for i, result in zip(batch, computed, strict=True):
            results[i] = result
        report_progress(sum(lengths[i] for i in batch), "tokens")
    return results


def out_of_memory(error: BaseException) -> bool:
    """Did this error come from a device or a machine out of memory? (Frees what can be freed.)"""
    if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not (
        isinstance(error, RuntimeError)
        and ("can't allocate memory" in str(error) or "out of memory" in str(error))
    ):
        return False
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return True


def padded(
    rows: Sequence[Sequence[int]], fill: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """`(ids, mask)`, both [rows, longest], of token ids padded on the right with `fill`."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, fill)
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)
