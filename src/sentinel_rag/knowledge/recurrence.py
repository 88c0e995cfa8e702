"""Incidents that recur: the same title and entities every hour, closed the same way. One of them is a hit, the others
are counted with it, so that a noisy rule does not push what else fits out of an answer.
"""

from __future__ import annotations

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import StoredChunk

_SHARED = 0.8
"""Entities in common, of all that the two have. A process id or a port differs each time."""


def recurs(one: StoredChunk, other: StoredChunk) -> bool:
    """Whether the two are of different incidents that tell the same. One that was closed otherwise tells something else
    (the real one among forty false alarms), and without entities nothing says that it is the same."""
    if one.collection is not Collection.INCIDENTS or other.collection is not Collection.INCIDENTS:
        return False
    if one.document_id == other.document_id or one.facets.classification != other.facets.classification:
        return False
    if " ".join(one.title.split()).casefold() != " ".join(other.title.split()).casefold():
        return False
    mine = {name.casefold() for name in one.facets.entities}
    theirs = {name.casefold() for name in other.facets.entities}
    return bool(mine) and len(mine & theirs) >= _SHARED * len(mine | theirs)
