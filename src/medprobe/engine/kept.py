"""Keys and values of tokens, kept for what is read behind them.

A token's keys and values in all layers are one row of a table, and a text that was read is the list
of its rows: texts share the rows of what they begin with, and any texts of one length make a cache
that a model reads on from.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from transformers import DynamicCache

KEPT_BYTES: Final = 2**30


class Kept:
    """A table that holds as many tokens as fit into `KEPT_BYTES`, or `least` where that is more."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.table: torch.Tensor | None = None
        self.free: list[int] = []
        self.shapes: list[tuple[int, int]] = []  # heads and their size: of keys, of values, …

    def store(self, states: torch.Tensor, shapes: list[tuple[int, int]]) -> np.ndarray | None:
        """Keep the states of some tokens, [tokens, width], as `flat` makes them; returns their
        rows, or None where there is no room."""
        if self.table is None:
            width = states.shape[1] * states.element_size()
            room = max(KEPT_BYTES // width, self.least)
            self.table, self.shapes = states.new_empty(room, states.shape[1]), shapes
            self.free = list(range(room))[::-1]
        if len(states) > len(self.free):
            return None
        rows = np.array([self.free.pop() for _ in states], dtype=int)
        self.table[torch.from_numpy(rows).to(states.device)] = states
        return rows

    def room(self, tokens: int) -> bool:
        """Is there room for so many, and as many again for what is read behind them?"""
        return self.table is not None and len(self.free) >= 2 * tokens

    def release(self, rows: np.ndarray) -> None:
        self.free += rows.tolist()

    def cache(self, texts: Sequence[np.ndarray]) -> DynamicCache:
        """The cache of texts that are given by their rows, all of one length."""
        assert self.table is not None
        rows = torch.from_numpy(np.stack(texts)).to(self.table.device)
        return unflat(self.table[rows], self.shapes)


def flat(cache: Any, tokens: int) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    """The keys and values of the last tokens of a cache, [texts, tokens, width], and the shape of
    each part of the width."""
    parts = [part for layer in cache.layers for part in (layer.keys, layer.values)]
    last = [part[:, :, part.shape[2] - tokens :].transpose(1, 2) for part in parts]
    shapes = [(part.shape[2], part.shape[3]) for part in last]
    return torch.cat([part.flatten(2) for part in last], dim=-1), shapes


def unflat(states: torch.Tensor, shapes: Sequence[tuple[int, int]]) -> DynamicCache:
    """The cache of states [texts, tokens, width]."""
    widths = [heads * size for heads, size in shapes]
    parts = [
        part.unflatten(-1, shape).transpose(1, 2)
        for part, shape in zip(states.split(widths, dim=-1), shapes, strict=True)
    ]
    return DynamicCache(list(zip(parts[::2], parts[1::2], strict=True)))
