"""The report of a conversation as values, built of its turns and of the gateway's record of its session: evidence,
deeds, front page, charts, in the order in which the next shift reads it.

Pure. Rows of evidence are numbered once for the whole report; what nobody answered, saw whole or decided is an open
question. Texts are raw here; each form makes them safe where it writes them. Arguments are taken from the answers,
which hold what the agent had, and never from the journal: a record may hold what the policy hides from the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.evidence import Outcome, Sentence, SentenceState
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.surfaces.rendering.visible import (
    STATE_WORDS,
    WRONG,
    Marked,
    Note,
    field_name,
    marked,
    plain,
    reason_of,
    safe,
    sources_of,
)
from sentinel_rag.surfaces.reports.readings import DETAIL, QUEUE, Reading, next_steps, rank


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


def brief(moment: datetime | str, timezone: str) -> str:
    """`both` to the minute."""
    return _SECONDS.sub(" UTC", both(moment, timezone))


_SECONDS = re.compile(r":\d\d UTC")


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
    since: str = ""
    """When the shift began; empty where the report is of a conversation."""
    team: bool = False
    """Whether it tells what everybody had done, and not this person alone."""
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
    severity: str = ""
    """Of an alert."""


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
    waits: bool = False
    """Whether somebody has yet to decide."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the call was made with, as the answer told it."""
    asked_by: str = ""
    """Whose question it came from, where the gateway's list of approvals tells it."""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """An incident as it was last told."""

    number: str
    title: str = ""
    severity: str = ""
    status: str = ""
    owner: str = ""
    created_time: str = ""
    updated_time: str = ""
    closed_time: str = ""
    classification: str = ""
    alert_count: str = ""
    said: tuple[str, ...] = ()
    """The first sentences of the last answer about it alone."""

    @property
    def open(self) -> bool:
        """Whether it was open when it was last told."""
        return self.status in ("New", "Active")


@dataclass(frozen=True, slots=True)
class Queue:
    """The open incidents as they were read, by severity, and the numbers of those that changed in the shift."""

    total: int | None
    by_severity: Mapping[str, int]
    open: tuple[str, ...]
    changed: tuple[str, ...]
    changed_total: int | None


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
    comments: tuple[TimelineEntry, ...] = ()
    """On the incident that was read, the newest first; `where` is who wrote it."""
    steps: tuple[tuple[str, str], ...] = ()
    """What to do next, with where it stands."""
    alerts: tuple[Mapping[str, Any], ...] = ()
    """Of the incident that was read."""
    queue: Queue | None = None


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
        for trace in _calls_of(turn):
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


MOST_SHOWN = 3
"""Numbers behind one line; a count may rest on hundreds of rows, which all stand in the list of evidence."""


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """`rows` of all turns; `pieces` of one turn: the text of each value with the number of its row; `numbers` by turn,
    call and place."""

    rows: tuple[EvidenceRow, ...]
    pieces: Mapping[int, Sequence[tuple[str, str]]]
    numbers: Mapping[tuple[int, str, str], str]


def numbered(turns: Sequence[ReportTurn]) -> NumberedEvidence:
    """Every row that an answer rests on, `E1` on, in the order of the answers."""
    rows: list[EvidenceRow] = []
    numbers: dict[tuple[int, str, str], str] = {}
    pieces: dict[int, list[tuple[str, str]]] = {}
    audit_ids: dict[str, str] = {}
    for turn in turns:
        answer = turn.answer or {}
        # A sentence may cite what an earlier question read.
        audit_ids |= {trace["call_id"]: trace["audit_id"] for trace in answer.get("tools", ())}
        found: dict[tuple[str, str], _Row] = {}
        for source in sources_of(sentences_of(turn)):
            cited = source.citation
            found[cited.call_id, cited.pointer] = _Row(cited.tool, dict(source.cells))
        pieces[turn.number] = []
        for piece in answer.get("evidence", ()):
            place = piece["pointer"].rpartition("/")[0]
            row = found.setdefault((piece["call_id"], place), _Row(piece["tool"]))
            row.fields[field_name(piece["pointer"], place)] = piece["value"]
            row.texts.append(str(piece["text"]))
        for (call_id, place), row in found.items():
            number = f"E{len(rows) + 1}"
            audit_id = str(audit_ids.get(call_id, ""))
            fields = tuple(row.fields.items())
            rows.append(EvidenceRow(number, turn.number, row.tool, call_id, audit_id, place, fields))
            numbers[turn.number, call_id, place] = number
            pieces[turn.number] += [(text, number) for text in row.texts]
    return NumberedEvidence(tuple(rows), pieces, numbers)


def sentences_of(turn: ReportTurn) -> tuple[Sentence, ...]:
    """What the check says of the answer's sentences; nothing of an answer that was kept before they were compared."""
    return tuple(map(Sentence.from_dict, (turn.answer or {}).get("sentences", ())))


def said_in(turn: ReportTurn, evidence: NumberedEvidence) -> Marked:
    """The text of the answer with the numbers of what it rests on: behind each sentence, and where sentences were not
    compared behind each line that holds a value of the evidence."""
    text = str((turn.answer or {}).get("answer", turn.text))
    if sentences := sentences_of(turn):
        return marked(text, sentences, lambda cited: evidence.numbers[turn.number, cited.call_id, cited.pointer])
    pieces = evidence.pieces[turn.number]
    named = [(safe(piece), number) for piece, number in pieces if piece]
    words = [(re.compile(rf"(?<!\w){re.escape(piece)}(?!\w)"), piece, number) for piece, number in named]
    notes: list[Note] = []
    shown, at = safe(text), 0
    for line in shown.split("\n"):
        at += len(line) + 1
        behind = (number for word, piece, number in words if piece in line and word.search(line))
        if numbers := tuple(dict.fromkeys(behind)):
            notes.append(Note(at - 1 - len(line) + len(line.rstrip()), numbers))
    return Marked(shown, notes=tuple(notes))


def table_of(table: Mapping[str, Any], pieces: Sequence[tuple[str, str]]) -> ReportTable:
    """A table with the row of a result behind each of its rows: the one that most of its cells come from."""
    numbers: dict[str, list[str]] = {}
    for piece, number in pieces:
        numbers.setdefault(piece, []).append(number)
    behind: list[str] = []
    for row in table["rows"]:
        votes: dict[str, int] = {}
        for cell in row:
            for number in dict.fromkeys(numbers.get(cell, ())):
                votes[number] = votes.get(number, 0) + 1
        behind.append(max(votes, key=lambda number: votes[number]) if votes else "")
    rows = tuple(tuple(map(str, row)) for row in table["rows"])
    return ReportTable(str(table["title"]), tuple(map(str, table["columns"])), rows, tuple(behind))


@dataclass(slots=True)
class _Row:
    tool: str
    fields: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)


_DENIED = "den"
SUCCESS = "success"
"""The outcome on record of a call that did what it was for."""


def _records_of(approval: Json) -> Iterator[Json]:
    """What the gateway's list tells of an approval, as records: what others asked has none here."""
    told = {"audit_id": approval["approval_id"], "approval_id": approval["approval_id"], "tool": approval["tool"]}
    outcome = approval.get("outcome") or {}
    yield {**told, "kind": "approval_asked", "at": approval["asked_at"]}
    if ruling := approval.get("decision"):
        yield {
            **told,
            **ruling,
            "kind": "approval_decided",
            "key_id": ruling.get("name") or ruling["by"],
            "decision": approval["state"],
        }
    if approval.get("used_at"):
        ran = {"kind": "intent", "at": approval["used_at"], "effect": approval["effect"]}
        yield {**told, **ran, "outcome": outcome.get("status")}


def deeds_of(
    records: Sequence[Json], turns: Sequence[ReportTurn], people: Mapping[str, str], approvals: Sequence[Json] = ()
) -> tuple[ReportedDeed, ...]:
    """In order of time. `records` are in the form of `sentinel audit show --json`, `approvals` in that of the gateway's
    list: they tell in words what was asked, and also of calls whose records are not this person's to read."""
    asked = {str(call["audit_id"]): call["arguments"] for turn in turns for call in _calls_of(turn)}
    asked |= {str(each["approval_id"]): each["arguments"] or {} for each in approvals}
    stories: dict[str, list[Json]] = {}
    for entry in records:
        record = entry["record"]
        told = {**record, "outcome": entry.get("outcome")}
        stories.setdefault(str(record.get("approval_id") or record["audit_id"]), []).append(told)
    listed = {str(each["approval_id"]): each for each in approvals}
    for name, approval in listed.items():
        stories[name] = [*_records_of(approval), *stories.get(name, ())]  # the records know more
    found = (deed for name, story in stories.items() for deed in _deed(story, asked, people, listed.get(name, {})))
    return tuple(sorted(found, key=lambda deed: deed.at))


def _deed(
    story: Sequence[Json], asked: Mapping[str, Json], people: Mapping[str, str], approval: Json
) -> Iterator[ReportedDeed]:
    kinds = {str(record["kind"]): record for record in story}
    ran, refused = kinds.get("intent"), kinds.get("refusal")
    decided, lapsed = kinds.get("approval_decided"), kinds.get("approval_lapsed")
    call = ran or refused or kinds.get("approval_asked")
    if call is None or (ran is not None and ran.get("effect") == READ):
        return
    tool = str(call.get("tool") or call.get("requested_tool") or "")
    given = next((asked[at] for record in story if (at := str(record["audit_id"])) in asked), {})
    came, waits = approval.get("outcome") or {}, False
    if ran is not None:
        outcome = str(ran["outcome"] or "unknown")
        came_of_it, done = ("done" if outcome == SUCCESS else f"ended: {outcome}"), outcome == SUCCESS
    elif decided is not None:
        denied = str(decided["decision"]).startswith(_DENIED)
        why = f"approved, and did not run ({came.get('reason')})" if came else "approved, not yet done"
        came_of_it, done = ("not done: denied" if denied else why), False
    elif lapsed is not None or approval.get("state") == "expired":
        came_of_it, done = "not done: nobody came in time", False
    elif refused is not None and not refused.get("approval_id"):
        came_of_it, done = f"refused: {refused['reason']}", False
    else:
        came_of_it, done, waits = "waits for a decision", False, True
    what = str(approval.get("title") or "") or (f"{tool}: {with_what}" if (with_what := _with(given)) else tool)
    yield ReportedDeed(
        str(call["at"]),
        what,
        _decision(decided, people),
        came_of_it,
        done,
        waits,
        given,
        str(approval.get("person") or ""),
    )


def _calls_of(turn: ReportTurn) -> Sequence[Mapping[str, Any]]:
    made: Sequence[Mapping[str, Any]] = (turn.answer or {}).get("tools", ())
    return made


def _with(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {plain(value)}" for name, value in arguments.items() if name != "workspace")


def _decision(decided: Mapping[str, Any] | None, people: Mapping[str, str]) -> str:
    if decided is None:
        return ""
    word = "denied" if str(decided["decision"]).startswith(_DENIED) else "approved"
    who = person(decided["key_id"], people) + (f" ({decided['actor']})" if decided.get("actor") else "")
    comment = f": {decided['comment']}" if decided.get("comment") else ""
    return f"{word} by {who}{comment}"


MOST_SAID = 5
"""Sentences of an answer that stand on the first page."""
_FIELDS = (
    *("title", "severity", "status", "owner", "created_time", "updated_time", "closed_time"),
    *("classification", "alert_count"),
)
_ENTITY = re.compile(r"/rows/\d+/entities/([^/]+)/\d+")
_CHANGE = re.compile(r"/rows/\d+/changes/\d+")
_ALERT = re.compile(r"/rows/\d+/alerts/\d+|/rows/\d+")
_KINDS = ("account", "host", "mailbox", "ip", "url", "file")
"""What the first page tells; hashes, processes and the like stand in the list of evidence."""
_FOUND = STATE_WORDS[SentenceState.VALUES_FOUND]
_IDS = ("audit_id", "approval_id")


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
    return {str(call["arguments"].get("incident", "")).lstrip("#") for call in _calls_of(turn)}


def front_of(
    turns: Sequence[ReportTurn],
    facts: Sequence[TurnFacts],
    rows: Sequence[EvidenceRow],
    deeds: Sequence[ReportedDeed],
    readings: Sequence[Reading] = (),
) -> Front:
    """The first page of these questions, and of what was read for it."""
    incidents = _incidents(rows)
    for turn, fact in zip(turns, facts, strict=True):
        number = next(iter(sorted(_named(turn) - {""})), "")
        alone = [call["name"] for call in _calls_of(turn)]
        if number in incidents and set(alone) == {DETAIL}:
            said = tuple(each.text.replace("`", "") for each in fact.sentences if each.state == _FOUND)[:MOST_SAID]
            # Of two answers about it, the one that tells more: a question about a detail does not displace the whole.
            incidents[number] = replace(incidents[number], said=max(incidents[number].said, said, key=len))
    read_at = {str(row["number"]): each.at for each in readings for row in each.rows if "number" in row}
    for deed in deeds:
        number = str(deed.arguments.get("incident", "")).lstrip("#")
        about = [turn.asked_at for turn in turns if number in _named(turn)]
        read = max((*about, read_at.get(number, "")))
        # What ran at the yes of a person stands in no answer; what was read after it is newer.
        if deed.done and number in incidents and deed.at > read:
            changed: dict[str, Any] = {name: str(deed.arguments[name]) for name in _FIELDS if name in deed.arguments}
            incidents[number] = replace(incidents[number], **changed)
    ranked = sorted(incidents.values(), key=_priority)
    done = [TimelineEntry(deed.at, "done" if deed.done else "asked", deed.what) for deed in deeds]
    details = [row for each in readings if each.tool == DETAIL for row in each.rows]
    asked = {str(each.arguments.get("message")): each.asked_by for each in deeds if each.done}
    told = [[str(each.get(name) or "") for name in _COMMENT] for row in details for each in row.get("comments") or ()]
    comments = [TimelineEntry(at, asked.get(text) or author, text) for at, author, text in told]
    return Front(
        incidents=tuple(ranked),
        happened=tuple(sorted((*_alerts(rows), *_changes(details), *done), key=lambda moment: moment.at)),
        scope=tuple(_scope(rows)),
        deeds=tuple(deeds),
        comments=tuple(sorted(comments, key=lambda each: each.at, reverse=True)),
        steps=tuple(next_steps(readings)),
        alerts=tuple(alert for row in details for alert in row.get("alerts") or ()),
        queue=_queue([each for each in readings if each.tool == QUEUE]),
    )


def _priority(incident: KnownIncident) -> tuple[bool, int, int]:
    number = int(incident.number) if incident.number.isdigit() else 0
    return not incident.open, -rank(incident.severity), -number


_COMMENT = ("time", "author", "message")
_TOLD_ELSEWHERE = ("Alert: ", "First activity", "Last activity", "Comment by ")
"""How events of an incident begin that stand on the page as alerts and comments."""


def _changes(details: Iterable[Json]) -> Iterator[TimelineEntry]:
    for event in (event for row in details for event in row.get("timeline") or ()):
        if event["time"] and not str(event["event"]).startswith(_TOLD_ELSEWHERE):
            yield TimelineEntry(str(event["time"]), "sentinel", str(event["event"]))


def _queue(readings: Sequence[Reading]) -> Queue | None:
    found = {"changed" if "time_field" in each.arguments else "open": each for each in readings}
    if (queue := found.get("open")) is None:
        return None
    changed = found.get("changed")
    return Queue(
        queue.total,
        queue.result.get("summary", {}).get("by_severity", {}),
        tuple(str(row["number"]) for row in queue.rows),
        tuple(str(row["number"]) for row in changed.rows) if changed else (),
        changed.total if changed else None,
    )


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
                after: dict[str, Any] = {name: str(values.get("after") or "")}
                found[changed] = replace(found[changed], **after)
    return found


def _alerts(rows: Iterable[EvidenceRow]) -> Iterable[TimelineEntry]:
    """Each alert once, as the row tells it that tells its severity."""
    found: dict[tuple[str, str], TimelineEntry] = {}
    for row in rows:
        values = dict(row.fields)
        at, name = values.get("start_time") or values.get("time"), str(values.get("name") or "")
        if _ALERT.fullmatch(row.place) and isinstance(at, str) and name:
            severity = str(values.get("severity") or "")
            if (at, name) not in found or (severity and not found[at, name].severity):
                words = f"{name} ({severity})" if severity else name
                found[at, name] = TimelineEntry(at, "alert", words, row.number, severity)
    return found.values()


def _scope(rows: Iterable[EvidenceRow]) -> Iterator[tuple[str, tuple[str, ...]]]:
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        match, name = _ENTITY.fullmatch(row.place), dict(row.fields).get("name")
        if match and match[1] in _KINDS and name:
            found.setdefault(match[1], {})[str(name)] = None
    for kind in sorted(found, key=_KINDS.index):
        yield kind, tuple(found[kind])


MOST_BARS = 40
_NUMBER = re.compile(r"[0-9]{1,12}(?:[.,][0-9]{1,6})?")
_NOT_COUNTS = re.compile(r"(?:number|id|\bno\b|port|code|#)", re.IGNORECASE)
_SETTLED = (Outcome.ANSWERED, Outcome.DENIED)
"""What became of the option that somebody chose; a call that waits is told of its own."""
_ENDED = {
    Outcome.NO_DATA: "no data matched",
    Outcome.DENIED: "it was denied",
    Outcome.TOOL_FAILED: "it failed",
    "stopped": "it was stopped before its answer",
}


SHOW = "sentinel approvals show "


def open_questions(
    turns: Sequence[ReportTurn], waiting: Mapping[str, str], asked_a_person: Set[str] = frozenset()
) -> tuple[str, ...]:
    """Sentences, in the order of the questions. `waiting` are approvals that nobody has decided, with what they are for
    where it is known; refused calls with the audit ids `asked_a_person` are told with their approvals and are no open
    questions of their own."""
    found: list[str] = []
    for place, turn in enumerate(turns):
        named = f"Question {turn.number} ({turn.question.strip()})"
        first = next((line for line in _text(turn).splitlines() if line.strip()), "")
        later = turns[place + 1 : place + 2]
        following = next((each for each in later if each.conversation == turn.conversation), None)
        if turn.outcome == Outcome.CLARIFICATION and (following is None or following.outcome not in _SETTLED):
            found.append(f"{named}: asked back, and not answered: {first}")
        elif turn.outcome in _ENDED and not _waits_or_is_decided(turn, asked_a_person):
            found.append(f"{named}: {_ENDED[turn.outcome]}" + (f": {first}" if first else "."))
        for sentence in sentences_of(turn):
            if sentence.state in WRONG:
                said = " ".join(sentence.text.split())
                found.append(f"{named}: {STATE_WORDS[sentence.state]}: {said} ({reason_of(sentence)})")
        for coverage in (turn.answer or {}).get("coverage", ()):
            total, seen = coverage["rows_total"], coverage["rows_returned"]
            if coverage["partial"]:
                why = coverage["partial_reason"] or "the service did not say why"
                found.append(f"{named}: the data is partial: {why}")
            elif total is not None and seen < total:
                found.append(f"{named}: {seen} of {total} rows were seen.")
    found += [f"Approval {each} waits for a decision: {what or SHOW + each[:8]}" for each, what in waiting.items()]
    return tuple(dict.fromkeys(found))


def _waits_or_is_decided(turn: ReportTurn, asked_a_person: Set[str]) -> bool:
    denied = [str(each["audit_id"]) for each in (turn.answer or {}).get("tools", ()) if each["status"] == "denied"]
    return turn.outcome == Outcome.DENIED and bool(denied) and set(denied) <= asked_a_person


def _text(turn: ReportTurn) -> str:
    return str((turn.answer or {}).get("answer", turn.text))


KNOWLEDGE_TOOL = "search_knowledge_base"
HIDDEN = "⟦"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_TOLD_OF = ("citation", "incident_number", "title", "alert_name", "name", "severity", "status", "host", "account", "ip")


def hand_over(
    head: Head,
    turns: Sequence[ReportTurn],
    records: Sequence[Json],
    readings: Sequence[Reading] = (),
    approvals: Sequence[Json] = (),
) -> HandOver:
    """The report of `turns`; `records` are those of the session and its approvals, oldest first, in the form of
    `sentinel audit show --json` (none where the person may not read them). `readings` are what was read for it, and
    `approvals` those that it tells of, in the form of the gateway's list."""
    details = [row for each in readings if each.tool == DETAIL for row in each.rows]
    if len(details) == 1:  # it may have been named by its id at Defender
        head = replace(head, incident=str(details[0]["number"]))
    if head.incident:
        turns = about(head.incident, turns)
        records = records_of(turns, records)
        approvals = [
            each
            for each in approvals
            if str((each["arguments"] or {}).get("incident", "")).lstrip("#") == head.incident
        ]
    if head.since:
        records = [entry for entry in records if str(entry["record"]["at"]) >= head.since]
        approvals = [each for each in approvals if each["state"] == "pending" or _newest(each) >= head.since]
    # What was read last tells how things are.
    every = (
        *turns,
        *(ReportTurn(0, each.at, "", "", answer=each.as_answer(f"r{n}")) for n, each in enumerate(readings, 1)),
    )
    evidence = numbered(every)
    facts = tuple(_facts(turn, evidence) for turn in turns)
    actions = actions_of(records, turns, head.people)
    deeds = deeds_of(records, turns, head.people, approvals)
    known = {str(each["approval_id"]): each for each in approvals}
    waits = {name: "" for name in waiting(records) if name not in known}
    waits |= {name: str(each["title"]) for name, each in known.items() if each["state"] == "pending"}
    return HandOver(
        head=head,
        front=front_of(turns, facts, evidence.rows, deeds, readings),
        facts=facts,
        evidence=evidence.rows,
        timeline=_timeline(turns, evidence.rows, actions),
        charts=charts_of(table for fact in facts for table in fact.tables),
        open_questions=open_questions(turns, waits, of_approvals(records)),
        actions=actions,
        calls=tuple(_calls(every)),
        knowledge=tuple(_knowledge(evidence.rows)),
        hidden=sum(HIDDEN in turn.text or HIDDEN in plain(turn.answer) for turn in every),
    )


def _newest(approval: Json) -> str:
    """When something last became of it: a shift may decide what the one before asked."""
    return max(
        str(approval["asked_at"]), str((approval["decision"] or {}).get("at", "")), str(approval["used_at"] or "")
    )


def charts_of(tables: Iterable[ReportTable]) -> tuple[Chart, ...]:
    """A chart for each table of counts: two columns or more, of which one holds counts alone."""
    return tuple(chart for table in tables if (chart := _chart(table)) is not None)


def _chart(table: ReportTable) -> Chart | None:
    if not 2 <= len(table.rows) <= MOST_BARS:
        return None
    width = range(len(table.columns))
    counts = [place for place in width if all(_NUMBER.fullmatch(row[place]) for row in table.rows)]
    counts = [place for place in counts if not _NOT_COUNTS.search(table.columns[place])]
    labels = [place for place in width if place not in counts and any(row[place].strip() for row in table.rows)]
    labels = [place for place in labels if not re.fullmatch(r"\[\d+\]", table.rows[0][place])]
    if not counts or not labels:
        return None
    bars = tuple((row[labels[0]], float(row[counts[0]].replace(",", ""))) for row in table.rows)
    return Chart(table.title or f"{table.columns[counts[0]]} by {table.columns[labels[0]]}", bars)


def _facts(turn: ReportTurn, evidence: NumberedEvidence) -> TurnFacts:
    answer = turn.answer or {}
    return TurnFacts(
        turn.number,
        turn.asked_at,
        turn.question,
        turn.outcome,
        said_in(turn, evidence),
        tuple(_stated(each, turn.number, evidence) for each in sentences_of(turn)),
        tuple(table_of(table, evidence.pieces[turn.number]) for table in answer.get("tables", ())),
        tuple(map(str, answer.get("footnote", ()))),
    )


def _stated(sentence: Sentence, turn: int, evidence: NumberedEvidence) -> Stated:
    numbers = (evidence.numbers[turn, cited.call_id, cited.pointer] for cited in sentence.citations)
    said = " ".join(sentence.text.split())
    return Stated(said, STATE_WORDS[sentence.state], reason_of(sentence), tuple(dict.fromkeys(numbers)))


def _timeline(
    turns: Sequence[ReportTurn], rows: Sequence[EvidenceRow], actions: Sequence[Action]
) -> tuple[TimelineEntry, ...]:
    found = [TimelineEntry(turn.asked_at, "question", turn.question, f"question {turn.number}") for turn in turns]
    found += [
        TimelineEntry(each.at, "gateway", f"{each.tool} {each.came_of_it}".strip(), each.audit_id) for each in actions
    ]
    said: set[tuple[str, str]] = set()
    for row in rows:
        for moment in _of_row(row):
            if (moment.at, moment.text) not in said:
                said.add((moment.at, moment.text))
                found.append(moment)
    return tuple(sorted(found, key=lambda moment: moment.at))


def _of_row(row: EvidenceRow) -> Iterator[TimelineEntry]:
    values = dict(row.fields)
    about = ", ".join(f"{name} {plain(values[name])}" for name in _TOLD_OF if name in values)
    for name, value in row.fields:
        if isinstance(value, str) and _TIME.fullmatch(value):
            yield TimelineEntry(value, "data", f"{name}: {about}" if about else f"{name} ({row.tool})", row.number)


def _calls(turns: Sequence[ReportTurn]) -> Iterator[ReportedCall]:
    for turn in turns:
        for trace in (turn.answer or {}).get("tools", ()):
            coverage = trace["coverage"] or {}
            total = coverage.get("rows_total")
            rows = f"{coverage['rows_returned']} of {'?' if total is None else total}" if coverage else ""
            yield ReportedCall(
                turn.number,
                str(trace["name"]),
                plain(trace["arguments"]),
                str(trace["status"]),
                rows,
                trace["audit_id"],
            )


def _knowledge(rows: Sequence[EvidenceRow]) -> Iterator[tuple[str, str]]:
    """Evidence number and source of each hit of the knowledge base that an answer rests on."""
    for row in rows:
        if row.tool == KNOWLEDGE_TOOL and row.place.startswith("/hits"):
            values = dict(row.fields)
            names = ("citation", "document_id", "title", "section")
            yield row.number, ", ".join(plain(values[name]) for name in names if values.get(name)) or row.place
