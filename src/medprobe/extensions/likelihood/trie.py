"""A trie of token sequences: names with a common prefix share its nodes.

A node has one token: what is unlikely ends there. Each distinct sequence ends in a leaf of its own,
which has no token where another sequence continues after its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from medprobe.engine.slots import Slot

Tokens = tuple[int, ...]

ROOT: Final = 0
NO_TOKEN: Final = -1


@dataclass(frozen=True)
class Trie:
    """A trie whose nodes have numbers, level by level, so that children follow one another.

    Nodes of a level are in the order of their parents, children in that of their tokens; one
    without a token is the first. The root has no token.

    >>> trie = Trie.build([[5, 6], [5, 6, 7, 8], [9]])
    >>> trie.tokens[trie.children_of(np.array([ROOT]))[1]].tolist()
    [5, 9]
    """

    parents: np.ndarray  # [nodes]
    tokens: np.ndarray  # NO_TOKEN where a node has none, [nodes]
    first_children: np.ndarray  # [nodes + 1]; the last child is before the next node's first
    levels: np.ndarray  # the first node of each level, and the number of nodes
    leaf_by_row: np.ndarray  # the leaf in which each sequence ends

    @classmethod
    def build(cls, sequences: Sequence[Sequence[int]]) -> "Trie":
        """Return the trie of these sequences, none of them empty; equal ones share a leaf."""
        lengths = np.fromiter(map(len, sequences), np.int32, len(sequences))
        flat = np.fromiter(chain.from_iterable(sequences), np.int32, int(lengths.sum()))
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        width = int(flat.max()) + 2
        leaf_by_row = np.zeros(len(sequences), np.int32)
        rows, places = np.arange(len(sequences)), np.zeros(len(sequences), np.int64)
        parents, tokens, levels = [np.zeros(1, np.int32)], [np.full(1, NO_TOKEN, np.int32)], [0, 1]
        while len(rows):  # sequences that go on below their node, and its place in the last level
            depth = len(levels) - 2
            goes_on = lengths[rows] > depth
            keys = places * width
            keys[goes_on] += flat[starts[rows[goes_on]] + depth] + 1
            distinct, places = np.unique(keys, return_inverse=True)
            parents.append((levels[-2] + distinct // width).astype(np.int32))
            tokens.append((distinct % width - 1).astype(np.int32))
            leaf_by_row[rows] = levels[-1] + places  # so far
            levels.append(levels[-1] + len(distinct))
            longest = np.zeros(len(distinct), np.int32)
            np.maximum.at(longest, places, lengths[rows])
            is_inner = longest[places] > depth + 1
            rows, places = rows[is_inner], places[is_inner]
        above = np.concatenate(parents)
        first_children = np.searchsorted(above[1:], np.arange(len(above) + 1)) + 1
        return cls(
            above, np.concatenate(tokens), first_children.astype(np.int32), np.array(levels),
            leaf_by_row,
        )  # fmt: skip

    @cached_property
    def is_leaf(self) -> np.ndarray:
        """Which nodes are leaves, [nodes]."""
        return np.diff(self.first_children) == 0

    @cached_property
    def name_counts(self) -> np.ndarray:
        """How many sequences end in each node, [nodes]."""
        return np.bincount(self.leaf_by_row, minlength=len(self.parents)).astype(np.int32)

    @cached_property
    def max_depths(self) -> np.ndarray:
        """Tokens from the root to the farthest leaf below each node, [nodes]."""
        return self._from_leaves(np.maximum, 0)

    @cached_property
    def min_depths(self) -> np.ndarray:
        """Tokens from the root to the nearest leaf below each node, [nodes]."""
        return self._from_leaves(np.minimum, np.iinfo(np.int32).max)

    def _from_leaves(self, choose: np.ufunc, start: int) -> np.ndarray:
        depths = np.full(len(self.parents), start, np.int32)
        for level, (low, high) in list(enumerate(pairwise(self.levels)))[:0:-1]:
            here, leaves = depths[low:high], self.is_leaf[low:high]
            here[leaves] = level - (self.tokens[low:high][leaves] == NO_TOKEN)
            choose.at(depths, self.parents[low:high], here)
        return depths

    @cached_property
    def forks(self) -> np.ndarray:
        """The nearest node at or below each node that has not exactly one child, [nodes]."""
        forks = np.arange(len(self.parents), dtype=np.int32)
        single = np.diff(self.first_children) == 1
        for low, high in [*pairwise(self.levels)][::-1]:
            nodes = low + np.flatnonzero(single[low:high])
            forks[nodes] = forks[self.first_children[nodes]]
        return forks

    def depths(self, nodes: np.ndarray) -> np.ndarray:
        """Return the levels of nodes: the root's is 0."""
        return np.searchsorted(self.levels, nodes, side="right") - 1

    def sizes(self, nodes: np.ndarray) -> np.ndarray:
        """Return how many tokens are on the way from the root to each node."""
        return np.maximum(self.depths(nodes) - (self.tokens[nodes] == NO_TOKEN), 0)

    def children_of(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many children each node has, and the numbers of all of them."""
        starts = self.first_children[nodes]
        counts = self.first_children[nodes + 1] - starts
        return counts, ranges(starts, counts)

    def rows_of(self, leaf: int) -> list[int]:
        """Return the indices of the sequences that end in a leaf."""
        order, leaves = self._by_leaf
        low, high = np.searchsorted(leaves, [leaf, leaf + 1])
        rows: list[int] = order[low:high].tolist()
        return rows

    @cached_property
    def _by_leaf(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.leaf_by_row, kind="stable").astype(np.int32)
        return order, self.leaf_by_row[order]

    def leaves_of(self, rows: Sequence[int]) -> Tokens:
        """Return the leaves in which the sequences with these indices end, in sorted order."""
        return tuple(np.unique(self.leaf_by_row[list(rows)]).tolist())

    def spell(self, node: int) -> Tokens:
        """Return the tokens on the way from the root to a node."""
        nodes = np.array([node])
        return tuple(self.last_tokens(nodes, self.sizes(nodes)).tolist())

    def last_tokens(self, nodes: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the last so many tokens on the way to each node, one after the other."""
        spelled, ends = np.empty(counts.sum(), dtype=int), np.cumsum(counts)
        nodes = np.where(self.tokens[nodes] == NO_TOKEN, self.parents[nodes], nodes)
        for place in range(int(counts.max(initial=0))):
            goes_on = counts > place
            spelled[ends[goes_on] - 1 - place] = self.tokens[nodes[goes_on]]
            nodes = self.parents[nodes]
        return spelled


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return so many numbers from each start on, one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


class TriePrompt(NamedTuple):
    """A slot, the trie of the names that can fill it, and what an encoder reads."""

    slot: Slot
    trie: Trie
    source: Tokens
