"""Vectors at length one, and the nearest among some of them by comparing with every one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


def nearest(
    vectors: Vectors, query: Vectors, slots: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Vectors]:
    """The `limit` best of `slots` (ascending) by dot product, as positions in `slots`, best first, and their scores.
    Exact: every one of them is compared. Ties go to the earlier slot."""
    if len(slots) == 0 or limit <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    # Row by row: a product with the whole matrix wakes BLAS's threads, which then spin and take more than they give.
    if len(slots) == len(vectors):
        scores = np.vecdot(vectors, query)
    elif len(slots) > len(vectors) // 4:  # reading all in order is cheaper than picking a quarter
        scores = np.vecdot(vectors, query)[slots]
    else:
        scores = np.vecdot(vectors[slots], query)
    if len(scores) > limit:
        best = np.argpartition(scores, len(scores) - limit)[-limit:]
        # argpartition chooses among equals at the edge by chance; the earlier slot shall win.
        edge = scores[best].min()
        above = best[scores[best] > edge]
        equal = np.flatnonzero(scores == edge)[: limit - len(above)]
        best = np.concatenate((above, equal))
    else:
        best = np.arange(len(scores))
    order = np.lexsort((best, -scores[best]))
    return best[order].astype(np.int64), scores[best[order]]


def unit(vectors: Vectors) -> Vectors:
    """The vectors at length 1; a zero one stays zero. Raises ValueError for one that is not finite."""
    given = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    if not np.isfinite(given).all():
        raise ValueError("a vector holds a value that is no number")
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    return np.divide(given, np.where(lengths == 0, 1, lengths), dtype=np.float32)
