"""The first page of a report out of the rows that its answers rest on: incidents as they were last told, what happened,
who and what is involved, and what was done.

Nothing is inferred: a state is that of the newest row or change that a conversation read, a moment that of a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.contracts.tool_schemas import SEVERITIES, WRITING_TOOLS
from sentinel_rag.surfaces.rendering.marks import STATE_WORDS
from sentinel_rag.surfaces.reports.model import Deed, EvidenceRow, Facts, Front, KnownIncident, Moment, ReportTurn

MOST_SAID = 5
"""Sentences of an answer that stand on the first page."""
_FIELDS = ("title", "severity", "status", "owner")
_ENTITY = re.compile(r"/rows/\d+/entities/([^/]+)/\d+")
_CHANGE = re.compile(r"/rows/\d+/changes/\d+")
_ALERT = re.compile(r"/rows/\d+/alerts/\d+|/rows/\d+")
_KINDS = ("account", "host", "mailbox", "ip", "url", "file")
"""What the first page tells; hashes, processes and the like stand in the list of evidence."""
_FOUND = STATE_WORDS[SentenceState.VALUES_FOUND]
_IDS = ("audit_id", "approval_id")
_ALONE = "get_incident_detail"


def about(incident: str, turns: Sequence[ReportTurn]) -> list[ReportTurn]:
    """The questions whose calls named the incident."""
    return [turn for turn in turns if incident in _named(turn)]


def records_of(turns: Sequence[ReportTurn], records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records of the calls of these questions, and of what people decided about them."""
    own = {str(call["audit_id"]) for turn in turns for call in (turn.answer or {}).get("tools", ())}
    kept = [entry for entry in records if str(entry["record"]["audit_id"]) in own]
    asked = {str(entry["record"].get("approval_id") or "") for entry in kept} - {""}
    ids = own | asked
    return [entry for entry in records if ids & {str(entry["record"].get(name) or "") for name in _IDS}]


def _named(turn: ReportTurn) -> set[str]:
    calls = (turn.answer or {}).get("tools", ())
    return {str(call["arguments"].get("incident", "")).lstrip("#") for call in calls}


def front_of(
    turns: Sequence[ReportTurn], facts: Sequence[Facts], rows: Sequence[EvidenceRow], deeds: Sequence[Deed]
) -> Front:
    """The first page of these questions."""
    incidents = _incidents(rows)
    for turn, fact in zip(turns, facts, strict=True):
        number = next(iter(sorted(_named(turn) - {""})), "")
        alone = [call["name"] for call in (turn.answer or {}).get("tools", ())]
        if number in incidents and set(alone) == {_ALONE}:
            said = tuple(each.text.replace("`", "") for each in fact.sentences if each.state == _FOUND)[:MOST_SAID]
            incidents[number] = replace(incidents[number], said=said or incidents[number].said)
    ranked = sorted(incidents.values(), key=lambda each: (not each.open, _rank(each.severity), -_number(each.number)))
    done = [Moment(deed.at, "done" if deed.done else "asked", deed.what) for deed in deeds]
    happened = sorted({(moment.at, moment.text): moment for moment in (*_alerts(rows), *done)}.values(), key=_at)
    return Front(tuple(ranked), tuple(happened), tuple(_scope(rows)), tuple(deeds))


def _incidents(rows: Iterable[EvidenceRow]) -> dict[str, KnownIncident]:
    """Each incident with what the last row about it told, and the changes that were made since."""
    found: dict[str, KnownIncident] = {}
    changed = ""
    for row in rows:
        values = dict(row.fields)
        number = str(values.get("number", ""))
        if number and ("title" in values or number in found):
            told: dict[str, Any] = {name: str(values[name] or "") for name in _FIELDS if name in values}
            found[number] = replace(found.get(number, KnownIncident(number)), **told)
            changed = number if row.tool in WRITING_TOOLS else ""
        elif row.tool in WRITING_TOOLS and _CHANGE.fullmatch(row.place) and changed:
            name = str(values.get("field", ""))
            if name in _FIELDS:
                found[changed] = replace(found[changed], **_change(name, values))
    return found


def _change(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(values.get("after") or "")}


def _alerts(rows: Iterable[EvidenceRow]) -> Iterator[Moment]:
    for row in rows:
        values = dict(row.fields)
        at = values.get("start_time") or values.get("time")
        if _ALERT.fullmatch(row.place) and isinstance(at, str) and values.get("name"):
            severity = f" ({values['severity']})" if values.get("severity") else ""
            yield Moment(at, "alert", f"{values['name']}{severity}", row.number)


def _scope(rows: Iterable[EvidenceRow]) -> Iterator[tuple[str, tuple[str, ...]]]:
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        match, name = _ENTITY.fullmatch(row.place), dict(row.fields).get("name")
        if match and match[1] in _KINDS and name:
            found.setdefault(match[1], {})[str(name)] = None
    for kind in sorted(found, key=_KINDS.index):
        yield kind, tuple(found[kind])


def _rank(severity: str) -> int:
    return -SEVERITIES.index(severity) if severity in SEVERITIES else 1


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _at(moment: Moment) -> str:
    return moment.at
