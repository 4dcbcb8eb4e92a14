"""Exact nearest neighbours. faiss finds who may be among the best k, double precision decides, and
equal scores are ordered by name: the result depends neither on the order of the candidates nor on
how many queries are asked at once.
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


def nearest(
    queries: Vectors, candidates: Vectors, names: Sequence[str], k: int, distance: Distance = "l2"
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The best k candidates of each query: `(indices [q, k], scores [q, k])`, best first.

    `queries` is [q, d], `candidates` [n, d], both float32; `names` has the n candidates' names.
    Scores are negative squared distances (`l2`) or cosines, higher is better; equal ones stand in
    the order of their names. Where there are fewer than k candidates, all are returned.
    """
    if distance == "cosine":
        queries, candidates = _unit(queries), _unit(candidates)
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=int)
    ordered = np.ascontiguousarray(candidates[by_name])  # an index in here is a name's rank
    index = faiss.IndexFlatL2(ordered.shape[1])
    index.add(ordered)
    indices, scores = _search(queries, ordered, index, min(k, len(names)), k + MARGIN)
    if distance == "cosine":
        scores = 1 + scores / 2  # |a - b|² = 2 - 2 cos(a, b) for unit vectors
    return by_name[indices], scores


def _search(
    queries: Vectors, candidates: Vectors, index: faiss.IndexFlatL2, k: int, fetch: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """`nearest` for candidates in the order of their names, from the `fetch` that faiss finds.

    A query whose k-th neighbour is not certainly nearer than all that faiss left out asks again
    for more.
    """
    fetch = min(fetch, len(candidates))
    indices = np.empty((len(queries), k), dtype=int)
    scores = np.empty((len(queries), k))
    largest = float((candidates**2).sum(1).max())
    step = max(1, PAIRS // fetch)
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        rough, fetched = index.search(part, fetch)
        apart = candidates[fetched].astype(np.float64) - part[:, None].astype(np.float64)
        exact = np.einsum("qnd,qnd->qn", apart, apart)
        order = np.lexsort((fetched, exact))[:, :k]
        part_indices = np.take_along_axis(fetched, order, axis=1)
        part_scores = -np.take_along_axis(exact, order, axis=1)
        slack = ROUNDING * ((part**2).sum(1) + largest)
        doubtful = -part_scores[:, -1] + slack >= rough[:, -1]
        if fetch < len(candidates) and doubtful.any():
            more = _search(part[doubtful], candidates, index, k, fetch * 4)
            part_indices[doubtful], part_scores[doubtful] = more
        indices[start : start + step] = part_indices
        scores[start : start + step] = part_scores
    return indices, scores


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
