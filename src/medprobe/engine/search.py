"""Exact nearest neighbours.

A matrix product in single precision selects the names that can be among the best k. Double
precision decides, and equal scores go by name. The result depends neither on the order of the
names, nor on how many queries are searched at once, nor on which other names the index holds.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

Distance = Literal["l2", "cosine"]
Vectors = np.ndarray[Any, np.dtype[np.float32]]

ROUNDING: Final = 5e-5  # float32 distances err by less than this share of the squared norms
AT_ONCE: Final = 2**23  # float32 distances held at a time: 32 MiB


class NameIndex:
    """Names and their vectors, stored once; a search can be limited to some of the names."""

    def __init__(self, distance: Distance = "l2") -> None:
        self.distance = distance
        self.names: list[str] = []
        self.positions: dict[str, int] = {}
        self.vectors: Vectors = np.empty((0, 0), np.float32)

    def __contains__(self, name: str) -> bool:
        return name in self.positions

    def add(self, names: Sequence[str], vectors: Vectors) -> None:
        """Add new names.

        Args:
            names: Names that the index does not hold.
            vectors: float32 [names, hidden].
        """
        vectors = _unit(vectors) if self.distance == "cosine" else vectors
        self.vectors = np.concatenate([self.vectors, vectors]) if self.names else vectors
        self.positions |= {name: place for place, name in enumerate(names, start=len(self.names))}
        self.names += names

    def nearest(
        self, queries: Vectors, names: Sequence[str], k: int
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the best k of some names for each query.

        Args:
            queries: [queries, hidden].
            names: The names to search, all of them in the index.
            k: Where there are fewer names, all are returned.

        Returns:
            `(positions, scores)`, both [queries, k], best first; positions count in `names` of the
            index. Scores are negative squared distances (`l2`) or cosines; equal ones go by name.
        """
        if self.distance == "cosine":
            queries = _unit(queries)
        positions = np.array([self.positions[name] for name in sorted({*names})])
        vectors, k = self.vectors[positions], min(k, len(positions))
        norms = (vectors**2).sum(axis=1)
        places, distances = np.empty((len(queries), k), dtype=int), np.empty((len(queries), k))
        step = max(1, AT_ONCE // len(vectors))
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            estimates = norms - 2 * block @ vectors.T  # each less the squared norm of its query
            slack = 2 * ROUNDING * ((block**2).sum(axis=1) + norms.max())
            limits = np.partition(estimates, k - 1, axis=1)[:, k - 1] + slack
            for i, query in enumerate(block):
                near = np.flatnonzero(estimates[i] <= limits[i])
                differences = vectors[near].astype(np.float64) - query.astype(np.float64)
                exact = np.einsum("nd,nd->n", differences, differences)
                order = np.argsort(exact, kind="stable")[:k]
                places[start + i], distances[start + i] = positions[near[order]], exact[order]
        # |a - b|² = 2 - 2 cos(a, b) for unit vectors
        return places, 1 - distances / 2 if self.distance == "cosine" else -distances


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
