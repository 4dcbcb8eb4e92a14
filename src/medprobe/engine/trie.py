"""A trie of token sequences: what many names begin with is one node.

Runs of tokens without a branch are one node (a radix trie). Each distinct sequence ends in a leaf
of its own, which has no tokens where another sequence goes on from its end.
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
EDGE: Final = 2  # tokens of a node at most: what is unlikely ends early


@dataclass(frozen=True)
class Trie:
    """Nodes by number, each before those below it, and these before its next sibling; the root has
    no tokens.

    >>> trie = Trie.of([[5, 6], [5, 6, 7, 8], [9]])
    >>> [trie.edges[child] for child in trie.children[ROOT]]
    [(5, 6), (9,)]
    """

    parents: tuple[int, ...]
    edges: tuple[Tokens, ...]  # the tokens of each node behind its parent's
    children: tuple[np.ndarray, ...]  # their numbers; a leaf has none
    rows: tuple[tuple[int, ...], ...]  # of a leaf: the indices of the sequences that end there
    names: np.ndarray  # of a leaf: how many sequences end there, [nodes]
    spans: np.ndarray  # tokens of each edge, [nodes]
    starts: np.ndarray  # tokens from the root to each node's own, [nodes]
    longest: np.ndarray  # tokens from the root to the farthest leaf below, [nodes]
    ends: np.ndarray  # one more than the last node below each, [nodes]
    size: int  # tokens of all distinct sequences

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Trie":
        """The trie of these sequences, none of them empty; equal ones share a leaf."""
        equal: dict[Tokens, list[int]] = defaultdict(list)
        for i, sequence in enumerate(sequences):
            equal[tuple(sequence)].append(i)
        keys = sorted(equal)
        parents, edges, rows = [ROOT], [()], [()]  # type: tuple[list[int], list[Tokens], list[Tokens]]
        waiting = [(ROOT, 0, part) for part in _branches(keys, 0, 0, len(keys))][::-1]
        while waiting:
            parent, depth, (low, high) = waiting.pop()
            first, last = keys[low], keys[high - 1]
            end = depth
            most = min(len(first), len(last), depth + EDGE)
            while end < most and first[end] == last[end]:
                end += 1
            node = len(edges)
            parents.append(parent)
            edges.append(first[depth:end])
            whole = high - low == 1 and end == len(first)
            rows.append(tuple(equal[first]) if whole else ())
            if not whole:
                waiting += [(node, end, part) for part in _branches(keys, end, low, high)][::-1]
        children: list[list[int]] = [[] for _ in edges]
        ends = list(range(1, len(edges) + 1))
        below = [0] * len(edges)  # tokens to the farthest leaf, the node's own left out
        for node in range(len(edges) - 1, ROOT, -1):
            parent = parents[node]
            children[parent].append(node)
            ends[parent] = max(ends[parent], ends[node])
            below[parent] = max(below[parent], below[node] + len(edges[node]))
        depths = [0] * len(edges)
        for node in range(1, len(edges)):
            depths[node] = depths[parents[node]] + len(edges[node])
        return cls(
            parents=tuple(parents),
            edges=tuple(edges),
            children=tuple(np.array(of_node[::-1], dtype=int) for of_node in children),
            rows=tuple(rows),
            names=np.array([len(of_node) for of_node in rows]),
            spans=np.array([len(edge) for edge in edges]),
            starts=np.array(depths) - [len(edge) for edge in edges],
            longest=np.array(depths) + np.array(below),
            ends=np.array(ends),
            size=sum(map(len, keys)),
        )

    @cached_property
    def leaf(self) -> np.ndarray:
        """Which nodes are leaves, [nodes]."""
        return self.names > 0

    def leaves(self, node: int) -> np.ndarray:
        """The leaves below a node, or the leaf itself."""
        return node + np.flatnonzero(self.leaf[node : self.ends[node]])

    def way(self, node: int, top: int = ROOT) -> list[int]:
        """The nodes from `top` to this one below it, both of them, the root left out."""
        nodes = []
        while node != top:
            nodes.append(node)
            node = self.parents[node]
        return [*([top] if top != ROOT else []), *nodes[::-1]]

    def tokens(self, node: int, top: int = ROOT) -> Tokens:
        """The tokens from the first of `top` to this node's end."""
        return tuple(token for of_node in self.way(node, top) for token in self.edges[of_node])


@dataclass(frozen=True)
class Prompt:
    """A slot, the trie of what may stand in it, and what an encoder reads."""

    slot: Slot
    trie: Trie
    source: Tokens

    @property
    def before(self) -> int:
        """Tokens before the slot that are scored: all but the first."""
        return len(self.slot.before) - 1

    def tokens(self, top: int, node: int) -> Tokens:
        """The tokens from the first of `top` on; a leaf's go on to the end of the prompt."""
        if node == ROOT:
            return self.slot.before
        tokens = self.trie.tokens(node, top)
        return tokens + self.slot.after if self.trie.leaf[node] else tokens

    def firsts(self, node: int) -> list[int]:
        """The first token of each child; -1 where it has none."""
        children = self.trie.children[node].tolist()
        return [next(iter(self.tokens(child, child)), -1) for child in children]


def _branches(keys: Sequence[Tokens], depth: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The ranges of keys[low:high], sorted, that agree in the token at `depth`, or end there."""
    start = low
    for i in range(low + 1, high + 1):
        if i == high or keys[i][depth : depth + 1] != keys[start][depth : depth + 1]:
            yield start, i
            start = i
