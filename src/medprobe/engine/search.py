"""Exact nearest neighbours.

faiss selects who may be among the best k, double precision decides, and equal scores go by name.
The result depends neither on the order of the names, nor on how many queries are searched at once,
nor on which other names the index holds.

The vectors of an encoder that was not rewired lie close together, far from the origin. There
faiss's distances would tell few of them apart, so it gets them relative to their centre.
"""

from collections.abc import Sequence
from typing import Any, Literal

import faiss
import numpy as np

Distance = Literal["l2", "cosine"]
Vectors = np.ndarray[Any, np.dtype[np.float32]]

MARGIN = 16  # neighbours fetched beyond k at first
ROUNDING = 5e-5  # faiss's float32 distances err by less than this share of the squared norms
PAIRS = 8192  # vectors compared at once in double precision


class NameIndex:
    """Names and their vectors, stored once; a search can be limited to some of the names."""

    def __init__(self, distance: Distance = "l2") -> None:
        self.distance = distance
        self.names: list[str] = []
        self.positions: dict[str, int] = {}
        self.name_order = np.empty(0, dtype=int)  # each name's place in the sorted names
        self.vectors: Vectors = np.empty((0, 0), dtype=np.float32)
        self.centre: Vectors = np.empty(0, dtype=np.float32)  # of the names that came first
        self.largest_norm = 0.0  # squared norm relative to the centre
        self.faiss_index: Any = None  # of the names that were searched last
        self.searched = np.empty(0, dtype=int)  # their positions

    def __contains__(self, name: str) -> bool:
        return name in self.positions

    def add(self, names: Sequence[str], vectors: Vectors) -> None:
        """Add new names.

        Args:
            names: Names that the index does not hold.
            vectors: float32 [names, hidden].
        """
        vectors = np.ascontiguousarray(_unit(vectors) if self.distance == "cosine" else vectors)
        if not self.names:
            self.vectors = vectors[:0]
            self.centre = vectors.mean(0, dtype=np.float64).astype(np.float32)
        squared_norms = ((vectors - self.centre) ** 2).sum(1)
        self.vectors = np.concatenate([self.vectors, vectors])
        self.positions |= {name: place for place, name in enumerate(names, start=len(self.names))}
        self.names += names
        by_name = sorted(range(len(self.names)), key=self.names.__getitem__)
        self.name_order = np.argsort(by_name)
        self.largest_norm = max(self.largest_norm, float(squared_norms.max()))

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
        self._select(np.unique([self.positions[name] for name in names]))
        places, scores = self._search(queries, min(k, len(self.searched)), k + MARGIN)
        if self.distance == "cosine":
            scores = 1 + scores / 2  # |a - b|² = 2 - 2 cos(a, b) for unit vectors
        return places, scores

    def _select(self, positions: np.ndarray[Any, Any]) -> None:
        """Give faiss the names to search: among all, by a selector, it is fifteen times slower."""
        if not np.array_equal(positions, self.searched):
            centred = self.vectors[positions]
            centred -= self.centre
            self.faiss_index, self.searched = faiss.IndexFlatL2(centred.shape[1]), positions
            self.faiss_index.add(centred)

    def _search(
        self, queries: Vectors, k: int, count_fetched: int
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return `nearest` within the names that faiss has.

        faiss first fetches a few neighbours. A query whose k-th neighbour is not certainly nearer
        than all that faiss left out is searched again with more of them.
        """
        count = len(self.searched)
        count_fetched = min(count_fetched, count)
        places = np.empty((len(queries), k), dtype=int)
        scores = np.empty((len(queries), k))
        step = max(1, PAIRS // count_fetched)
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            centred = block - self.centre
            distances, found_rows = self.faiss_index.search(centred, count_fetched)
            neighbours = self.searched[found_rows]
            found = self.vectors[neighbours].astype(np.float64)
            differences = found - block[:, None].astype(np.float64)
            exact = np.einsum("qnd,qnd->qn", differences, differences)
            order = np.lexsort((self.name_order[neighbours], exact))[:, :k]
            part_places = np.take_along_axis(neighbours, order, axis=1)
            part_scores = -np.take_along_axis(exact, order, axis=1)
            slack = ROUNDING * ((centred**2).sum(1) + self.largest_norm)
            uncertain = -part_scores[:, -1] + slack >= distances[:, -1]
            if count_fetched < count and uncertain.any():
                wider = self._search(block[uncertain], k, count_fetched * 4)
                part_places[uncertain], part_scores[uncertain] = wider
            places[start : start + step] = part_places
            scores[start : start + step] = part_scores
        return places, scores


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
