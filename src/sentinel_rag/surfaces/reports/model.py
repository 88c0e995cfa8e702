"""A report as values, in the order in which the next shift reads it, with what the gateway's journal says of a session.

Texts are raw here; each form makes them safe where it writes them. Arguments are taken from the answers, which hold
what the agent had, and never from the journal: a record may hold what the policy hides from the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.surfaces.rendering.marks import Marked
from sentinel_rag.surfaces.rendering.visible import plain


def both(moment: datetime | str, timezone: str) -> str:
    """`2026-11-28 02:10:05 UTC (03:10 Europe/Berlin)`; in UTC alone where nobody knows the zone. A text that is no time
    stays as it is."""
    try:
        known = (parse_time(moment) if isinstance(moment, str) else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return str(moment)
    shown = f"{known:%Y-%m-%d %H:%M:%S} UTC"
    if timezone in ("", "UTC"):
        return shown
    try:
        local = known.astimezone(ZoneInfo(timezone))
        day = "" if local.date() == known.date() else f"{local:%Y-%m-%d} "
    except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError):
        return shown
    return f"{shown} ({day}{local:%H:%M} {timezone})"


@dataclass(frozen=True, slots=True)
class ReportTurn:
    """One question. `answer` is in the form of `ask --json`; None where only `text` was kept, or nothing came."""

    number: int
    asked_at: str
    question: str
    outcome: str
    text: str = ""
    answer: Mapping[str, Any] | None = None
    conversation: str = ""
    """Where it was asked, in a report of several conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Who exports what, when. `timezone` is an IANA name; `revealed` says that values which the policy hides from the
    agent were drawn in for this person."""

    conversation_id: str
    exported_by: str
    exported_at: datetime
    timezone: str
    workspace: str = ""
    revealed: bool = False
    journal_head: str = ""
    """Number and hash of the newest audit record at the time of the export; empty where it could not be read."""
    notes: tuple[str, ...] = ()
    incident: str = ""
    """The one incident that the report is about, by its number; empty for all of a shift."""
    people: Mapping[str, str] = field(default_factory=dict)
    """Names of people and programs by the ids of their keys, as far as they are known."""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One row of one result, as far as answers rest on it. `number` is its name in the report, such as `E3`."""

    number: str
    turn: int
    tool: str
    call_id: str
    audit_id: str
    place: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of an answer; `evidence` has one entry a row, empty where no single row of a result stands behind it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """A sentence of an answer, what the check says of it, and the evidence that it cites."""

    text: str
    state: str
    reason: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What one question brought."""

    turn: int
    asked_at: str
    question: str
    outcome: str
    said: Marked
    """The text of the answer; its sources are the numbers of evidence rows."""
    sentences: tuple[Stated, ...]
    tables: tuple[ReportTable, ...]
    footnote: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Something that happened: in the data, in the conversation, or at the gateway."""

    at: str
    where: str
    text: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A call that changed or sent something, a refused one, or a decision of a person about one."""

    at: str
    tool: str
    what: str
    came_of_it: str
    audit_id: str
    approval_id: str = ""


@dataclass(frozen=True, slots=True)
class ReportedDeed:
    """One thing that was asked for, from its beginning to its end."""

    at: str
    what: str
    decided: str
    """Who approved or denied it and when; empty where no person was asked."""
    came_of_it: str
    done: bool
    """Whether it was carried out."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the call was made with, as the answer told it."""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """An incident as it was last told."""

    number: str
    title: str = ""
    severity: str = ""
    status: str = ""
    owner: str = ""
    said: tuple[str, ...] = ()
    """The first sentences of the last answer about it alone."""

    @property
    def open(self) -> bool:
        """Whether it was open when it was last told."""
        return self.status in ("New", "Active")


@dataclass(frozen=True, slots=True)
class Front:
    """What stands on the first page."""

    incidents: tuple[KnownIncident, ...]
    """The most severe first, open ones before closed ones."""
    happened: tuple[TimelineEntry, ...]
    """What the data tells and what was done, in order of time."""
    scope: tuple[tuple[str, tuple[str, ...]], ...]
    """Names of accounts, hosts and the like, by their kinds."""
    deeds: tuple[ReportedDeed, ...]


@dataclass(frozen=True, slots=True)
class ReportedCall:
    """One tool call of an answer."""

    turn: int
    tool: str
    arguments: str
    status: str
    rows: str
    audit_id: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Labelled counts, for a bar chart."""

    title: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """The whole report. `hidden` counts texts in which values are still hidden."""

    head: Head
    front: Front
    facts: tuple[TurnFacts, ...]
    evidence: tuple[EvidenceRow, ...]
    timeline: tuple[TimelineEntry, ...]
    charts: tuple[Chart, ...]
    open_questions: tuple[str, ...]
    actions: tuple[Action, ...]
    calls: tuple[ReportedCall, ...]
    knowledge: tuple[tuple[str, str], ...] = field(default=())
    hidden: int = 0


Json = Mapping[str, Any]

READ = "read"


def actions_of(records: Sequence[Json], turns: Sequence[ReportTurn], people: Mapping[str, str]) -> tuple[Action, ...]:
    """Everything but calls that only read and were allowed, in the order of the journal. `records` are in the form of
    `sentinel audit show --json`; without any, what the answers tell of refused calls is all there is."""
    if not records:
        return tuple(_refused(turns))
    asked = asked_for(turns)
    found = (_action(entry["record"], entry.get("outcome"), asked, people) for entry in records)
    return tuple(action for action in found if action is not None)


def asked_for(turns: Sequence[ReportTurn]) -> dict[str, str]:
    """The arguments of each call by its audit id."""
    return {
        str(trace["audit_id"]): plain(trace["arguments"])
        for turn in turns
        for trace in (turn.answer or {}).get("tools", ())
    }


def person(key_id: object, people: Mapping[str, str]) -> str:
    """Whose key it is; its id where nobody knows."""
    return people.get(str(key_id), str(key_id))


def of_approvals(records: Sequence[Json]) -> frozenset[str]:
    """Audit ids of refused calls that a person was asked about: what became of them is told of the approval."""
    entries = [entry["record"] for entry in records]
    return frozenset(
        str(record["audit_id"]) for record in entries if record["kind"] == "refusal" and record.get("approval_id")
    )


def _refused(turns: Sequence[ReportTurn]) -> Iterator[Action]:
    for turn in turns:
        for trace in (turn.answer or {}).get("tools", ()):
            if trace["status"] == "denied":
                said = f"denied ({trace['detail']})" if trace["detail"] else "denied"
                yield Action(turn.asked_at, trace["name"], plain(trace["arguments"]), said, trace["audit_id"])


def waiting(records: Sequence[Json]) -> tuple[str, ...]:
    """Ids of approvals that nobody has decided, and whose time is not known to be over."""
    asked = [str(entry["record"]["audit_id"]) for entry in records if entry["record"]["kind"] == "approval_asked"]
    over = {
        str(entry["record"]["audit_id"])
        for entry in records
        if entry["record"]["kind"] in ("approval_decided", "approval_lapsed")
    }
    return tuple(each for each in asked if each not in over)


def _action(record: Json, outcome: str | None, asked: Mapping[str, str], people: Mapping[str, str]) -> Action | None:
    kind, tool = str(record["kind"]), str(record.get("tool") or record.get("requested_tool") or "")
    audit_id, at = str(record["audit_id"]), str(record["at"])
    approval = str(record.get("approval_id") or "")
    what = asked.get(audit_id, "")
    if kind == "intent" and record.get("effect") != READ:
        by = " after approval" if approval else ""
        return Action(at, tool, what, f"allowed{by}; outcome: {outcome or 'unknown'}", audit_id, approval)
    if kind == "refusal":
        rule = f", rule {record['rule_id']}" if record.get("rule_id") else ""
        waits = "; waits for approval" if approval else ""
        return Action(at, tool, what, f"denied ({record['reason']}{rule}){waits}", audit_id, approval)
    if kind == "approval_asked":
        return Action(at, tool, what, f"a person was asked: {record['why']}", audit_id, audit_id)
    if kind == "approval_decided":
        word = "denied" if str(record["decision"]).startswith("den") else "approved"
        who = person(record["key_id"], people) + (f" ({record['actor']})" if record.get("actor") else "")
        comment = f": {record['comment']}" if record.get("comment") else ""
        return Action(at, tool, what, f"{word} by {who}{comment}", audit_id, audit_id)
    if kind == "approval_lapsed":
        return Action(at, tool, what, f"nobody came in time (it was {record['state']})", audit_id, audit_id)
    return None
