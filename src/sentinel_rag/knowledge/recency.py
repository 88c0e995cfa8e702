"""How much an incident's age counts in search: a little, so that of two that fit alike the recent one comes first.

Names, addresses and tools of a campaign are of use for weeks; how a case was judged and closed is of use for years. So
an old incident never loses more than `WEIGHT` of its score in a ranking (BM25, cosine): one that fits better by more
than that stays ahead however old it is. Playbooks do not age.
"""

from __future__ import annotations

import math
from datetime import datetime

HALF_LIFE_DAYS = 30.0
"""After so many days half of what age can take is taken; after the 90 days that are read in by default, seven
eighths."""
WEIGHT = 0.1


def recency_factor(created: datetime | None, now: datetime) -> float:
    """What the score of an incident is multiplied with, from `1 - WEIGHT` to 1. An unknown time counts as long ago, one
    in the future as now."""
    if created is None:
        return 1.0 - WEIGHT
    age_days = max(0.0, (now - created).total_seconds() / 86_400)
    # Beyond this, the power is 0 anyway; so far back is no number of days that a float holds well.
    return 1.0 - WEIGHT * (1.0 - math.pow(0.5, min(age_days / HALF_LIFE_DAYS, 1_000.0)))
