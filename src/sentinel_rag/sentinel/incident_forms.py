"""How much of an incident get_incident_detail tells: all of it, or as much as fits into a number of bytes.

An answer has the richest of a few fixed forms that fits. None drops a count, and each says of what it left out how much
there is. What a row holds is the business of `incident_detail`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.alerts import RowBudget, row_budget
from sentinel_rag.sentinel.results import WHOLE_DESCRIPTION

COMPACT_BYTES = 20_000
"""JSON bytes of all rows of a compact answer; columns, coverage and notes come on top and stay below 4 kB."""

FULL_BYTES = 2_000_000
"""JSON bytes of all rows of a full answer: incidents of hundreds of alerts fit, and a gateway takes four times that."""

_NO_LIMIT = 1_000_000
WHOLE_ALERT = RowBudget(
    entities=_NO_LIMIT, description=WHOLE_DESCRIPTION, entity_properties=True, remediation_steps=True
)


@dataclass(frozen=True, slots=True)
class RowForm:
    """What one row may show. `alert` None gives alerts the room that their number leaves (`row_budget`)."""

    alerts: int = _NO_LIMIT
    alert: RowBudget | None = None
    entities: int = 100
    properties: bool = True
    events: int = 200
    comments: int = _NO_LIMIT
    comment: int = _NO_LIMIT
    values: int = _NO_LIMIT
    description: int = _NO_LIMIT
    bookmarks: int = 20
    bookmark_text: int = 2000

    def alert_budget(self, count: int) -> RowBudget:
        return self.alert or row_budget(count)


FULL = RowForm(alert=WHOLE_ALERT, entities=_NO_LIMIT, events=_NO_LIMIT, bookmarks=_NO_LIMIT, bookmark_text=_NO_LIMIT)
_BRIEF = RowBudget(entities=4, description=120, entity_properties=False, remediation_steps=False, sparse=True)
_BARE = RowBudget(entities=0, description=0, entity_properties=False, remediation_steps=False, sparse=True)
_FORMS = (
    FULL,
    RowForm(),
    RowForm(alert=_BRIEF, entities=100, events=100, comments=20, comment=2000, description=2000, bookmark_text=300),
    RowForm(alert=_BRIEF, entities=20, events=60, comments=12, comment=1000, description=1000, bookmark_text=150),
    RowForm(
        alert=_BRIEF,
        entities=20,
        properties=False,
        events=60,
        comments=12,
        comment=1000,
        values=100,
        description=1000,
        bookmark_text=100,
    ),
    *(
        RowForm(
            alerts,
            _BARE,
            entities,
            False,
            2 * alerts,
            max(1, alerts // 4),
            20 * alerts,
            2 * alerts,
            20 * alerts,
            bookmarks=max(1, alerts // 4),
            bookmark_text=2 * alerts + 20,
        )
        for alerts, entities in ((40, 12), (30, 10), (22, 8), (16, 7), (11, 5), (7, 3), (4, 2), (2, 1))
    ),
)


@dataclass(frozen=True, slots=True)
class FormedRow:
    """A row, what it leaves out of what there is (name -> how many), and whether it has the form FULL, in which only
    a text may be cut."""

    row: dict[str, JsonValue]
    left_out: Mapping[str, int]
    full: bool


def richest(build: Callable[[RowForm], FormedRow], *, share: int) -> FormedRow:
    """The first form of the row whose JSON has at most `share` bytes; the barest if none has."""
    told = build(FULL)
    for form in _FORMS:
        told = build(form)
        if len(json.dumps(told.row, ensure_ascii=False).encode()) <= share:
            break
    return told


def left_out_note(number: object, left_out: Mapping[str, int], *, detail: str) -> str:
    """For the reader of a row that is not all: what is missing and how to have it."""
    parts = ", ".join(f"{count} {_NAMES.get(name, name)}" for name, count in left_out.items())
    more = "ask with detail full, or query_alerts" if detail == "compact" else "ask query_alerts"
    return (
        f"{detail.capitalize()} form of incident {number}: left out are {parts}. The counts are of all; {more} with "
        "this incident or an alert_id, for the rest."
    )


_NAMES = {
    "alerts": "alerts",
    "alert_entities": "entities of alerts",
    "alert_fields": "fields of alerts (page, provider, description, remediation steps)",
    "entities": "entities",
    "entity_properties": "properties of entities",
    "timeline": "events of the timeline",
    "comments": "comments",
    "bookmarks": "bookmarks",
    "values": "labels, techniques and ids",
    "remediation_steps": "remediation steps",
    "cut_texts": "texts cut short",
}
