"""The nearest among some vectors of length one, by comparing with every one."""

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
