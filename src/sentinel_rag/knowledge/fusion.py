"""Two rankings to one: their scores, each stretched between 0 and 1, are added by weight.

By scores and not by places (reciprocal ranks), since places do not tell a near miss from one that is far behind: a
question in plain words has a first place by words too, and it means little. Measured against reciprocal ranks in
`python -m bench knowledge_quality`. Convex combination: Bruch, Gai and Ingber, ACM TOIS 2023.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

WORDS = 0.45
"""The part of words in the sum; the rest is that of meaning. From 0.35 to 0.5 hardly anything changes."""
DOCUMENT = 0.3
"""The part of a chunk's score that its document's best chunk gives: what speaks for the document by words in one
chunk and by meaning in another speaks for both."""


def fused(
    words: Mapping[T, float], meaning: Mapping[T, float], documents: Mapping[T, Hashable]
) -> list[tuple[T, float]]:
    """Every item of two rankings (item to score, higher is better, of any scale) with its sum, from 0 to 1, best first.
    `documents` tells what items belong together. Where a ranking is empty the other one decides alone. Among equals the
    one that fits better by meaning, and then the one that came first, comes first."""
    part = WORDS if words and meaning else float(bool(words))
    legs = ((part, stretched(words)), (1.0 - part, stretched(meaning)))
    items = list(dict.fromkeys((*meaning, *words)))
    best: list[dict[Hashable, float]] = [{}, {}]
    for (_, scores), best_of in zip(legs, best, strict=True):
        for item, score in scores.items():
            best_of[documents[item]] = max(score, best_of.get(documents[item], 0.0))
    sums = {
        item: sum(
            weight * ((1.0 - DOCUMENT) * scores.get(item, 0.0) + DOCUMENT * best_of.get(documents[item], 0.0))
            for (weight, scores), best_of in zip(legs, best, strict=True)
        )
        for item in items
    }
    return sorted(sums.items(), key=lambda pair: -pair[1])


def stretched(scores: Mapping[T, float]) -> dict[T, float]:
    """The scores between 0 and 1: the best is 1, and 0 lies one average step below the last, since the last was found
    and what a ranking lacks was not."""
    if not scores:
        return {}
    best, last = max(scores.values()), min(scores.values())
    if best == last:
        return dict.fromkeys(scores, 1.0)
    zero = last - (best - last) / len(scores)
    return {item: (score - zero) / (best - zero) for item, score in scores.items()}
