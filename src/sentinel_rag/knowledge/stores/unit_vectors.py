"""Vectors at length 1, so that a dot product is the cosine; shared by the stores.

One that has that length already is left as it is, to the bit: it can go from store to store.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
_SAME_LENGTH = 1e-6


def unit(vectors: Vectors) -> Vectors:
    """The vectors, shape (n, dimensions), at length 1; a zero one stays zero. Raises ValueError for one that is not
    finite."""
    given = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    if not np.isfinite(given).all():
        raise ValueError("a vector holds a value that is no number")
    lengths = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    kept = (lengths == 0) | (np.abs(lengths - 1) < _SAME_LENGTH)
    return np.divide(given, np.where(kept, 1.0, lengths)).astype(np.float32)
