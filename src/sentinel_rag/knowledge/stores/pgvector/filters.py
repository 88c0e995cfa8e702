"""`Wanted` as SQL over `document d`, in one place for words, vectors and loading, so that they cannot differ.

One text for all filters: one that is not set is NULL, which the planner folds away, since nothing is prepared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sentinel_rag.knowledge.documents import EVERYONE
from sentinel_rag.knowledge.stores.pgvector.wire import storable
from sentinel_rag.knowledge.stores.port import Wanted

CONDITIONS = """
d.readers && %(readers)s::text[] AND d.collection = ANY(%(collections)s::text[])
AND (%(severities)s::text[] IS NULL OR d.severity = ANY(%(severities)s::text[]))
AND (%(statuses)s::text[] IS NULL OR d.status = ANY(%(statuses)s::text[]))
AND (%(classifications)s::text[] IS NULL OR d.classification = ANY(%(classifications)s::text[]))
AND (%(techniques)s::text[] IS NULL OR d.techniques && %(techniques)s::text[])
AND (%(tactics)s::text[] IS NULL OR d.tactics && %(tactics)s::text[])
AND (%(since)s::double precision IS NULL OR d.time >= %(since)s::double precision)
AND (%(until)s::double precision IS NULL OR d.time <= %(until)s::double precision)
"""


def values_of(wanted: Wanted) -> Mapping[str, object]:
    """The parameters of `CONDITIONS`. Permission is always among them."""
    return {
        "readers": sorted(storable(name) for name in {EVERYONE, *wanted.readers}),
        "collections": sorted(each.value for each in wanted.collections),
        "severities": _folded(wanted.severities),
        "statuses": _folded(wanted.statuses),
        "classifications": _folded(wanted.classifications),
        # A technique is stored with its parent, so one comparison finds sub-techniques.
        "techniques": sorted(storable(each.upper()) for each in wanted.techniques) or None,
        "tactics": sorted(map(storable, wanted.tactics)) or None,
        "since": None if wanted.since is None else wanted.since.timestamp(),
        "until": None if wanted.until is None else wanted.until.timestamp(),
    }


def filter_text(text: str) -> str:
    """A severity, status or classification as it is compared: without regard to case."""
    return storable(text.casefold())


def _folded(values: Iterable[str]) -> list[str] | None:
    return sorted(map(filter_text, values)) or None
