"""What a report reads by itself, with its person's rights: the incident with steps for it, or the queue of a shift.

Pure: `calls_for` says what to read next, the surface reads it at the gateway, and `Reading` is what came. As a turn a
reading is evidence like any other, with its audit id.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.tool_schemas import SEVERITIES

Json = Mapping[str, Any]

QUEUE, DETAIL, KNOWLEDGE = "query_incidents", "get_incident_detail", "search_knowledge_base"
MOST_READ = 100
"""Incidents of a list; how many of how many is told."""
LOOKED, MOST_STEPS, MOST_OF_PLAYBOOK = 12, 4, 2
_INCIDENT = (
    *("number", "title", "severity", "status", "owner", "created_time", "updated_time", "closed_time"),
    *("classification", "alert_count"),
)
_PARTS = {
    "alerts": ("name", "severity", "status", "start_time", "product", "remediation_steps"),
    "comments": ("time", "author", "message"),
    "timeline": ("time", "event"),
}
_HIT = ("citation", "document_id", "title", "section", "text")
_STEP = re.compile(r"^\s*\d+[.)]\s+(.+(?:\n(?!\s*(?:\d+[.)]|[-*|#]|$)).+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reading:
    """One call of a tool with what it gave, as this person may see it."""

    tool: str
    arguments: Json
    audit_id: str
    at: str
    result: Json

    @property
    def rows(self) -> Sequence[Json]:
        """The rows of a query."""
        found: Sequence[Json] = self.result.get("rows", ())
        return found

    @property
    def total(self) -> int | None:
        """How many rows there are, of which these may be a part; None where it is not known."""
        found: int | None = self.result.get("coverage", {}).get("rows_total")
        return found

    def cells(self) -> Iterator[tuple[str, Any]]:
        """Pointer and value of each cell that a report may tell."""
        for place, row in enumerate(self.rows):
            yield from _cells(row, _INCIDENT, f"/rows/{place}")
            for part, names in _PARTS.items():
                for number, each in enumerate(row.get(part) or ()):
                    yield from _cells(each, names, f"/rows/{place}/{part}/{number}")
            for kind, entities in (row.get("entities") or {}).items():
                for number, each in enumerate(entities):
                    yield from _cells(each, ("name",), f"/rows/{place}/entities/{kind}/{number}")
        for place, hit in [(place, hit) for place, hit in enumerate(self.result.get("hits", ())) if steps_in(hit)][:1]:
            yield from _cells(hit, _HIT, f"/hits/{place}")

    def as_answer(self, call_id: str) -> dict[str, Any]:
        """The reading in the form of an answer without words."""
        coverage = self.result.get("coverage")
        call = {"name": self.tool, "arguments": dict(self.arguments), "status": "ok", "detail": "", "call_id": call_id}
        return {
            "answer": "",
            "tools": [{**call, "audit_id": self.audit_id, "coverage": coverage}],
            "coverage": [] if coverage is None else [coverage],
            "evidence": [
                {"text": str(value), "call_id": call_id, "tool": self.tool, "pointer": pointer, "value": value}
                for pointer, value in self.cells()
            ],
        }


def _cells(row: Json, names: Sequence[str], place: str) -> Iterator[tuple[str, Any]]:
    return ((f"{place}/{name}", row[name]) for name in names if name in row)


Calls = Generator[tuple[str, dict[str, Any]], Json | None]


def calls_for(incident: str, since: str, workspace: str) -> Calls:
    """Tool and arguments of each call; it is sent the result, or None where the call was refused."""
    where = {"workspace": workspace} if workspace else {}
    if not incident:
        yield QUEUE, {"status": "Open", "order": "severity", "limit": MOST_READ, **where}
        yield QUEUE, {"time_field": "updated", "start_time": since, "order": "updated", "limit": MOST_READ, **where}
        return
    found = yield DETAIL, {"incident": incident, "detail": "full", **where}
    rows = (found or {}).get("rows", ())
    if len(rows) == 1 and (alerts := by_weight(rows[0].get("alerts") or ())):
        query = str(alerts[0].get("name", ""))[:500]
        hits = ((yield KNOWLEDGE, {"query": query, "collection": "playbooks", "limit": 1}) or {}).get("hits", ())
        if hits:
            yield KNOWLEDGE, {"document": str(hits[0]["document_id"]), "limit": LOOKED}


def by_weight(alerts: Sequence[Json]) -> list[Json]:
    """Alerts, the most severe first, of those the newest."""
    newest = sorted(alerts, key=lambda alert: str(alert.get("start_time") or ""), reverse=True)
    return sorted(newest, key=lambda alert: -rank(str(alert.get("severity"))))


def rank(severity: str) -> int:
    """The place of a severity, the highest last; -1 for any other text."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1


def next_steps(readings: Sequence[Reading]) -> Iterator[tuple[str, str]]:
    """Steps with where they stand: those of the weightiest alerts, then those of the playbook that fits best."""
    told: dict[str, str] = {}
    alerts = [
        alert for each in readings if each.tool == DETAIL for row in each.rows for alert in row.get("alerts") or ()
    ]
    for alert in by_weight(alerts):
        for step in alert.get("remediation_steps") or ():
            told.setdefault(str(step), f"Alert “{alert.get('name')}”")
    yield from list(told.items())[:MOST_STEPS]
    hits = [(hit, steps) for each in readings for hit in each.result.get("hits", ()) if (steps := steps_in(hit))]
    for hit, steps in hits[:1]:
        yield from ((step, str(hit.get("citation", ""))) for step in steps[:MOST_OF_PLAYBOOK])


def steps_in(hit: Json) -> list[str]:
    """The steps of a numbered list in a part of a playbook."""
    found = _STEP.findall(str(hit.get("text", "")))
    return [" ".join(re.sub(r"\*+|`", "", step).split()) for step in found]
