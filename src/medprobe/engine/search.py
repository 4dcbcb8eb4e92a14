"""Exact nearest neighbours. faiss finds who may be among the best k, double precision decides, and
equal scores are ordered by name: the result depends neither on the order of the names nor on how
many queries are asked at once, nor on which other names the index holds.
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


class Index:
    """Names and their vectors, held once: whoever ranks some of the names searches among those."""

    def __init__(self, distance: Distance = "l2") -> None:
        self.distance = distance
        self.names: list[str] = []
        self.places: dict[str, int] = {}
        self.order = np.empty(0, dtype=int)  # each name's place in the sorted names
        self.largest = 0.0  # squared norm
        self.flat: Any = None

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def add(self, names: Sequence[str], vectors: Vectors) -> None:
        """Add names that are not there, their vectors [n, d] in float32."""
        vectors = np.ascontiguousarray(_unit(vectors) if self.distance == "cosine" else vectors)
        self.flat = self.flat or faiss.IndexFlatL2(vectors.shape[1])
        self.flat.add(vectors)
        self.places |= {name: place for place, name in enumerate(names, start=len(self.names))}
        self.names += names
        by_name = sorted(range(len(self.names)), key=self.names.__getitem__)
        self.order = np.argsort(by_name)
        self.largest = max(self.largest, float((vectors**2).sum(1).max()))

    def nearest(
        self, queries: Vectors, among: Sequence[str], k: int
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The best k of the names `among`, all of them in the index, for each query [q, d]:
        `(places [q, k] in names, scores [q, k])`, best first.

        Scores are negative squared distances (`l2`) or cosines, higher is better; equal ones stand
        in the order of their names. Where there are fewer than k names, all are returned.
        """
        if self.distance == "cosine":
            queries = _unit(queries)
        chosen = np.zeros(len(self.names), dtype=bool)
        chosen[[self.places[name] for name in among]] = True
        count = int(chosen.sum())
        selector: Any = faiss.IDSelectorBitmap  # its stubs know the C++ constructor only
        parameters: Any = faiss.SearchParameters
        only = parameters(sel=selector(np.packbits(chosen, bitorder="little")))
        places, scores = self._search(queries, count, only, min(k, count), k + MARGIN)
        if self.distance == "cosine":
            scores = 1 + scores / 2  # |a - b|² = 2 - 2 cos(a, b) for unit vectors
        return places, scores

    def _search(
        self, queries: Vectors, count: int, only: Any, k: int, fetch: int
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """`nearest` among the `count` names that faiss is let see, from the `fetch` that it finds.

        A query whose k-th neighbour is not certainly nearer than all that faiss left out asks
        again for more.
        """
        fetch = min(fetch, count)
        vectors = faiss.rev_swig_ptr(self.flat.get_xb(), self.flat.ntotal * self.flat.d)
        vectors = vectors.reshape(-1, self.flat.d)
        places = np.empty((len(queries), k), dtype=int)
        scores = np.empty((len(queries), k))
        step = max(1, PAIRS // fetch)
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            rough, fetched = self.flat.search(part, fetch, params=only)
            apart = vectors[fetched].astype(np.float64) - part[:, None].astype(np.float64)
            exact = np.einsum("qnd,qnd->qn", apart, apart)
            order = np.lexsort((self.order[fetched], exact))[:, :k]
            part_places = np.take_along_axis(fetched, order, axis=1)
            part_scores = -np.take_along_axis(exact, order, axis=1)
            slack = ROUNDING * ((part**2).sum(1) + self.largest)
            doubtful = -part_scores[:, -1] + slack >= rough[:, -1]
            if fetch < count and doubtful.any():
                more = self._search(part[doubtful], count, only, k, fetch * 4)
                part_places[doubtful], part_scores[doubtful] = more
            places[start : start + step] = part_places
            scores[start : start + step] = part_scores
        return places, scores


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
