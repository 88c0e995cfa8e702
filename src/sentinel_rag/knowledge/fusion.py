"""Reciprocal rank fusion: several rankings to one by places alone, since their scores have different scales.

Cormack, Clarke and Büttcher, SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

K = 60
"""What dampens the first places; the paper's value, and no better one was found on our sets."""


def fused(rankings: Sequence[Sequence[T]], *, k: int = K) -> list[tuple[T, float]]:
    """Every item of the rankings with the sum of 1 / (k + place), best first. Among equals the one that an earlier
    ranking has first comes first."""
    scores: dict[T, float] = {}
    for ranking in rankings:
        for place, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + place)
    return sorted(scores.items(), key=lambda pair: -pair[1])
