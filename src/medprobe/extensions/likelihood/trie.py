"""A trie of token sequences: names with a common prefix share its nodes.

A node has one token: what is unlikely ends there. Each distinct sequence ends in a leaf of its own,
which has no token where another sequence continues after its end.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from medprobe.engine.slots import Slot

Tokens = tuple[int, ...]

ROOT: Final = 0


@dataclass(frozen=True)
class Trie:
    """A trie whose nodes have numbers.

    Each node comes before those below it, and these before its next sibling. The root has no
    tokens.

    >>> trie = Trie.build([[5, 6], [5, 6, 7, 8], [9]])
    >>> [trie.edges[child] for child in trie.children[ROOT]]
    [(5,), (9,)]
    """

    parents: tuple[int, ...]
    edges: tuple[Tokens, ...]  # the token of each node behind its parent's, if it has one
    children: tuple[np.ndarray, ...]  # their numbers; a leaf has none
    rows: tuple[tuple[int, ...], ...]  # of a leaf: the indices of the sequences that end there
    name_counts: np.ndarray  # of a leaf: how many sequences end there, [nodes]
    edge_lengths: np.ndarray  # tokens of each edge, [nodes]
    starts: np.ndarray  # tokens from the root to each node's own, [nodes]
    max_depths: np.ndarray  # tokens from the root to the farthest leaf below, [nodes]
    ends: np.ndarray  # one more than the last node below each, [nodes]
    size: int  # tokens of all distinct sequences

    @classmethod
    def build(cls, sequences: Sequence[Sequence[int]]) -> "Trie":
        """Return the trie of these sequences, none of them empty; equal ones share a leaf."""
        equal: dict[Tokens, list[int]] = defaultdict(list)
        for i, sequence in enumerate(sequences):
            equal[tuple(sequence)].append(i)
        keys = sorted(equal)
        parents, edges, rows = [ROOT], [()], [()]  # type: tuple[list[int], list[Tokens], list[Tokens]]
        waiting = [(ROOT, 0, part) for part in _branches(keys, 0, 0, len(keys))][::-1]
        while waiting:
            parent, depth, (low, high) = waiting.pop()
            first, node = keys[low], len(edges)
            end = min(depth + 1, len(first))
            parents.append(parent)
            edges.append(first[depth:end])
            is_leaf = high - low == 1 and end == len(first)
            rows.append(tuple(equal[first]) if is_leaf else ())
            if not is_leaf:
                waiting += [(node, end, part) for part in _branches(keys, end, low, high)][::-1]
        children: list[list[int]] = [[] for _ in edges]
        ends = list(range(1, len(edges) + 1))
        depths_below = [0] * len(edges)  # tokens to the farthest leaf, the node's own left out
        for node in range(len(edges) - 1, ROOT, -1):
            parent = parents[node]
            children[parent].append(node)
            ends[parent] = max(ends[parent], ends[node])
            depths_below[parent] = max(depths_below[parent], depths_below[node] + len(edges[node]))
        depths = [0] * len(edges)
        for node in range(1, len(edges)):
            depths[node] = depths[parents[node]] + len(edges[node])
        return cls(
            parents=tuple(parents),
            edges=tuple(edges),
            children=tuple(np.array(items[::-1], dtype=int) for items in children),
            rows=tuple(rows),
            name_counts=np.array([len(items) for items in rows]),
            edge_lengths=np.array([len(edge) for edge in edges]),
            starts=np.array(depths) - [len(edge) for edge in edges],
            max_depths=np.array(depths) + np.array(depths_below),
            ends=np.array(ends),
            size=sum(map(len, keys)),
        )

    @cached_property
    def is_leaf(self) -> np.ndarray:
        """Which nodes are leaves, [nodes]."""
        return self.name_counts > 0

    @cached_property
    def min_depths(self) -> np.ndarray:
        """Tokens from the root to the nearest leaf below each node, [nodes]."""
        depths = np.where(self.is_leaf, self.max_depths, np.iinfo(int).max)
        for node in range(len(depths) - 1, ROOT, -1):
            depths[self.parents[node]] = min(depths[self.parents[node]], depths[node])
        return depths

    def leaves(self, node: int) -> np.ndarray:
        """Return the leaves below a node, or the leaf itself."""
        return node + np.flatnonzero(self.is_leaf[node : self.ends[node]])

    def leaves_of(self, rows: Sequence[int]) -> Tokens:
        """Return the leaves in which the sequences with these indices end, in sorted order."""
        return tuple(sorted({self._leaf_by_row[row] for row in rows}))

    @cached_property
    def _leaf_by_row(self) -> dict[int, int]:
        return {row: node for node, rows in enumerate(self.rows) for row in rows}

    def path(self, node: int, top: int = ROOT) -> list[int]:
        """Return the nodes from `top` down to `node`, both included, without the root."""
        nodes = []
        while node != top:
            nodes.append(node)
            node = self.parents[node]
        return [*([top] if top != ROOT else []), *nodes[::-1]]

    def paths(self, leaves: Sequence[int]) -> np.ndarray:
        """Return the nodes from the root down to these leaves, without the root, sorted."""
        return np.array(sorted({node for leaf in leaves for node in self.path(leaf)}), dtype=int)

    def tokens(self, node: int, top: int = ROOT) -> Tokens:
        """Return the tokens from the first of `top` to the end of `node`."""
        return tuple(token for member in self.path(node, top) for token in self.edges[member])


@dataclass(frozen=True)
class TriePrompt:
    """A slot, the trie of the names that can fill it, and what an encoder reads."""

    slot: Slot
    trie: Trie
    source: Tokens

    @property
    def before(self) -> int:
        """Tokens before the slot that are scored."""
        return len(self.slot.before) - self.slot.forced

    def tokens(self, top: int, node: int) -> Tokens:
        """Return the tokens from the first of `top` on; a leaf's include the prompt's end."""
        if node == ROOT:
            return self.slot.before
        tokens = self.trie.tokens(node, top)
        return tokens + self.slot.after if self.trie.is_leaf[node] else tokens

    def first_tokens(self, node: int) -> list[int]:
        """Return the first token of each child; -1 where it has none."""
        end = self.slot.after[:1] or (-1,)
        return [(self.trie.edges[child] or end)[0] for child in self.trie.children[node].tolist()]


def _branches(keys: Sequence[Tokens], depth: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the sorted keys[low:high] with the same token at `depth` or their end."""
    start = low
    for i in range(low + 1, high + 1):
        if i == high or keys[i][depth : depth + 1] != keys[start][depth : depth + 1]:
            yield start, i
            start = i
