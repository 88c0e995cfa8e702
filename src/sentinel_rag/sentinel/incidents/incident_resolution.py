"""Which incident is meant: by number, name or words, merged ones by the incident that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from sentinel_rag.contracts.query_results import TimeWindow, invalid_argument
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts.newest_alerts import ALERT_TABLE
from sentinel_rag.sentinel.incidents.incidents import INCIDENT_TABLE, alert_ids_of, is_merged, newest_versions
from sentinel_rag.sentinel.logs.kql_literals import list_literal, string_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, LogsWorkspace, parse_dynamic
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = re.compile(r"(?:(?:incident|inc)(?:[\s:_-]*(?:number|no\.?|id))?[\s:_-]*)?#?\s*(\d{1,10})", re.IGNORECASE)
_WHOLE_GUID = re.compile(rf"\{{?({_GUID})\}}?")
_SENTINEL_URL = re.compile(rf"/Incidents/({_GUID})", re.IGNORECASE)
_DEFENDER_URL = re.compile(r"security\.microsoft\.com/incidents?2?/(\d+)", re.IGNORECASE)
_ALERT_URL = re.compile(r"security\.microsoft\.com/alerts/([A-Za-z0-9_-]+)", re.IGNORECASE)
_ALERT_ID = re.compile(r"[A-Za-z0-9_-]{8,100}")
_LARGEST_NUMBER = 2**31 - 1  # IncidentNumber is an int


class ReferenceKind(StrEnum):
    """What the text is by its form; a number may turn out to be either of two things."""

    NUMBER = "number"
    GUID = "guid"
    SENTINEL_URL = "sentinel_url"
    DEFENDER_URL = "defender_url"
    ALERT_ID = "alert_id"


@dataclass(frozen=True, slots=True)
class IncidentReference:
    kind: ReferenceKind
    value: str


def parse_reference(text: str) -> IncidentReference:
    """The form of a reference. Raises QueryFailedError INVALID_ARGUMENT for text that is none of the forms."""
    text = text.strip().strip("'\"`")
    if "://" in text or "security.microsoft.com" in text or "portal.azure.com" in text:
        url = unquote(text)
        for pattern, kind in (
            (_SENTINEL_URL, ReferenceKind.SENTINEL_URL),
            (_DEFENDER_URL, ReferenceKind.DEFENDER_URL),
            (_ALERT_URL, ReferenceKind.ALERT_ID),
        ):
            match = pattern.search(url)
            if match:
                return IncidentReference(kind, match[1])
    guid = _WHOLE_GUID.fullmatch(text)
    if guid:
        return IncidentReference(ReferenceKind.GUID, guid[1].lower())
    number = _NUMBER.fullmatch(text)
    if number and int(number[1]) <= _LARGEST_NUMBER:
        return IncidentReference(ReferenceKind.NUMBER, str(int(number[1])))
    if _ALERT_ID.fullmatch(text) and re.search(r"\d", text) and re.search(r"[A-Za-z]", text):
        return IncidentReference(ReferenceKind.ALERT_ID, text)
    raise invalid_argument(
        "incident",
        f"{text[:80]!r} is no reference to an incident.",
        next_step="Give a Sentinel number (55 or #55), a Defender id, a GUID, the portal's URL or an alert id; "
        "query_incidents with title_contains finds incidents by words.",
    )


# Defender closes the source, labels it `Redirected` and moves its alerts. The row of the log seldom names the target,
# so it is found by which incident came to hold the source's alerts. A merged incident is no closed one: whoever counts
# leaves it out.
MOST_NAMED = 20
"""Merged incidents of a list that are named with their targets; the others are counted."""
_MOST_HOPS = 10
_SLACK = timedelta(hours=1)
"""The log may have the target's row before the one that closes the source; it follows Defender by minutes."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Where a merged incident went. `into` is None where the log does not tell, or the ways lead in a circle.

    `told_by` is "row" (the row names its target), "alerts" (`moved` of its `alerts` are in the target) or empty.
    """

    source: int
    at: datetime | None
    into: int | None = None
    through: tuple[int, ...] = ()
    told_by: str = ""
    moved: int = 0
    alerts: int = 0
    circle: bool = False
    defender_id: str = ""

    def note(self) -> CodedNote:
        """What a reader is told of it."""
        values: dict[str, Any] = {"source": self.source, "at": self.at}
        if self.circle:
            return note("merged_in_a_circle", **values, ring=" → ".join(map(str, (self.source, *self.through))))
        values["through"] = self.through
        if self.into is None:
            return note("merged_somewhere", **values, defender_id=self.defender_id)
        values["into"] = self.into
        if self.told_by == "row":
            return note("merged_by_row", **values)
        holder = (*self.through, self.into)[0]
        return note("merged_by_alerts", **values, moved=self.moved, alerts=self.alerts, holder=holder)


async def merges_of(
    logs: LogsWorkspace, records: Iterable[Mapping[str, Any]]
) -> tuple[dict[int, Merge], tuple[LogsTable, ...]]:
    """The merges of those of `records` that are merged, by number, and the answers that told them."""
    rows = {record["IncidentNumber"]: record for record in records if is_merged(record)}
    rows.pop(None, None)
    steps: dict[int, Merge] = {}
    answers: list[LogsTable] = []
    wanted = list(rows)
    pending = wanted
    for _ in range(_MOST_HOPS):
        if not pending:
            break
        holders, named = await logs.query_all(
            (
                (_holders_query(pending), None),
                (_named_query(filter(None, (_named_target(rows[number]) for number in pending))), None),
            )
        )
        answers += [holders, named]
        targets = list(named.records())
        held = list(holders.records())
        for record in (*targets, *held):
            rows.setdefault(record["IncidentNumber"], record)
        steps |= {number: _step(rows[number], targets, held) for number in pending}
        pending = [
            step.into
            for step in steps.values()
            if step.into is not None and step.into not in steps and is_merged(rows[step.into])
        ]
        pending = list(dict.fromkeys(pending))
    return {number: _followed(steps[number], steps) for number in wanted if number in steps}, tuple(answers)


def left_out_note(merges: Mapping[int, Merge], count: int) -> CodedNote:
    """The sentence beside counts: how many merged incidents are not among them, and where the first of them went."""
    told = [
        f"{merge.source} into {merge.into}"
        if merge.into is not None
        else f"{merge.source} into one the log does not tell"
        for merge in merges.values()
    ]
    return note("merged_left_out", count=count, told=told, more=max(count - len(told), 0) or None)


def _followed(step: Merge, steps: Mapping[int, Merge]) -> Merge:
    """`step` to the end of the chain that begins with it."""
    through: list[int] = []
    last = step
    while last.into is not None and last.into in steps:
        through.append(last.into)
        last = steps[last.into]
        if last.source == step.source or last.source in through[:-1]:
            return Merge(step.source, step.at, through=tuple(through), circle=True)
    return Merge(
        step.source,
        step.at,
        last.into,
        tuple(through),
        step.told_by if last is step or step.told_by == last.told_by else "alerts",
        step.moved,
        step.alerts,
        defender_id=last.defender_id,
    )


def _step(source: Mapping[str, Any], named: Sequence[Mapping[str, Any]], held: Sequence[Mapping[str, Any]]) -> Merge:
    """The next incident on the way of `source`."""
    number = source["IncidentNumber"]
    at = source["ClosedTime"] or source["LastModifiedTime"] or source["TimeGenerated"]
    target = _named_target(source)
    for record in named:
        if target and target == str(record["ProviderIncidentId"]) and record["IncidentNumber"] != number:
            return Merge(number, at, record["IncidentNumber"], told_by="row")
    own = [record for record in held if record["Source"] == number]
    alerts = next((record["Shared"] for record in own if record["IncidentNumber"] == number), 0)
    fitting = [
        ((not _before(record["First"], at), record["Shared"], -_seconds(record["First"])), record)
        for record in own
        if record["IncidentNumber"] != number and (not _before(record["First"], at) or not is_merged(record))
    ]
    if not fitting:
        return Merge(number, at, defender_id=target)
    found = max(fitting, key=lambda each: each[0])[1]
    return Merge(number, at, found["IncidentNumber"], told_by="alerts", moved=found["Shared"], alerts=alerts)


def _before(first: datetime | None, merged: datetime | None) -> bool:
    """Whether an incident held the alerts long before the source was merged, so that not the merge gave it them."""
    return first is not None and merged is not None and first < merged - _SLACK


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def _named_target(record: Mapping[str, Any]) -> str:
    """The Defender id of the incident that the row names as its target; empty if it names none."""
    additional = parse_dynamic(record.get("AdditionalData"))
    value = additional.get("redirectIncidentId") if isinstance(additional, Mapping) else None
    return str(value) if value else ""


_PROJECTED = (
    "IncidentNumber, ProviderIncidentId, Status, Labels, ClosedTime, LastModifiedTime, TimeGenerated, AdditionalData"
)


def _holders_query(numbers: Sequence[int]) -> str:
    """KQL: each incident that ever held alerts of `numbers`, with how many and since when; sources are among them."""
    return (
        f"let Held = {INCIDENT_TABLE}\n"
        "| mv-expand AlertId = AlertIds to typeof(string)\n"
        "| where isnotempty(AlertId) and isnotnull(IncidentNumber)\n"
        "| summarize First = min(TimeGenerated) by IncidentNumber, AlertId = tolower(AlertId);\n"
        "Held\n"
        f"| join kind=inner (Held | where IncidentNumber in {list_literal(numbers)}\n"
        "    | project AlertId, Source = IncidentNumber) on AlertId\n"
        "| summarize Shared = dcount(AlertId), First = min(First) by Source, IncidentNumber\n"
        f"| join kind=inner ({newest_versions(TimeWindow())}\n    | project {_PROJECTED}) on IncidentNumber\n"
        f"| project Source, Shared, First, {_PROJECTED}"
    )


def _named_query(defender_ids: Iterable[str]) -> str:
    condition = f"ProviderIncidentId in {list_literal(sorted(set(defender_ids)))}"
    return f"{newest_versions(TimeWindow(), (condition,))}\n| project {_PROJECTED}"


# The Defender id of one incident is often the Sentinel number of another, so a number is looked up as both and what it
# was is told; an id of an alert leads to the incidents that name it.
@dataclass(frozen=True, slots=True)
class Resolution:
    """The newest versions that the reference may mean. `matched_by` is empty when there is none."""

    reference: str
    records: tuple[Mapping[str, Any], ...]
    matched_by: str
    notes: tuple[CodedNote, ...]
    answers: tuple[LogsTable, ...]
    number: str = ""
    """The number that a bare number is."""
    merges: Mapping[int, Merge] = field(default_factory=dict)
    """Where those of the records went that Defender merged into others, by number."""

    @property
    def whole(self) -> bool:
        """Whether every incident that it may mean was told."""
        return not any(answer.partial for answer in self.answers)

    def merge_notes(self) -> tuple[CodedNote, ...]:
        """A sentence for each of the records that was merged."""
        return tuple(merge.note() for merge in self.merges.values())

    def of_sentinel(self) -> Resolution:
        """Of a number that means two incidents, the one whose Sentinel number it is, to read. A change asks which."""
        taken = tuple(each for each in self.records if str(each["IncidentNumber"]) == self.number)
        if len(self.records) < 2 or not taken:
            return self
        told = note("taken_as_sentinel_number", number=self.number)
        merges = {number: merge for number, merge in self.merges.items() if str(number) == self.number}
        return replace(self, records=taken, merges=merges, notes=(*self.notes, told))


async def resolve_incident(view: WorkspaceView, text: str) -> Resolution:
    """Every incident that `text` may mean, in its newest version, and where merged ones went. Raises
    QueryFailedError."""
    found = await _resolved_reference(view, text)
    if found.matched_by == "alert_id" and not all(map(is_merged, found.records)):
        # The alert moved on with the merge; a row of the source that still names it has not caught up.
        left = tuple(record for record in found.records if not is_merged(record))
        found = _resolved(text, left, found.matched_by, *found.answers)
    if not found.records and not found.whole:
        found = replace(found, notes=(note("reference_not_looked_through", reference=text[:200]),))
    merges, answers = await merges_of(view.logs, found.records)
    return replace(found, merges=merges, answers=(*found.answers, *answers))


async def _resolved_reference(view: WorkspaceView, text: str) -> Resolution:
    reference = parse_reference(text)
    answer = await view.logs.query(newest_versions(TimeWindow(), (_condition(reference),)))
    records = tuple(answer.records())
    match reference.kind:
        case ReferenceKind.NUMBER:
            return _resolve_number(text, reference.value, records, answer)
        case ReferenceKind.DEFENDER_URL:
            return _resolved(text, records, "url", answer)
        case ReferenceKind.SENTINEL_URL:
            return _resolved(text, records, "url", answer)
        case ReferenceKind.GUID:
            if records:
                by_name = any(str(record["IncidentName"]).lower() == reference.value for record in records)
                return _resolved(text, records, "incident_name" if by_name else "alert_id", answer)
        case ReferenceKind.ALERT_ID:
            if records:
                return _resolved(text, records, "alert_id", answer)
    return await _resolve_alert(view, text, reference.value, answer)


def _condition(reference: IncidentReference) -> str:
    literal = string_literal(reference.value)
    match reference.kind:
        case ReferenceKind.NUMBER:
            return f"IncidentNumber == {int(reference.value)} or ProviderIncidentId == {literal}"
        case ReferenceKind.DEFENDER_URL:
            return f"ProviderIncidentId == {literal}"
        case ReferenceKind.SENTINEL_URL:
            return f"IncidentName =~ {literal} or IncidentUrl contains {literal}"
        case ReferenceKind.GUID:
            return f"IncidentName =~ {literal} or tostring(AlertIds) contains {literal}"
        case ReferenceKind.ALERT_ID:
            # With its quotes, so that a short id does not match inside a longer one.
            return f"tostring(AlertIds) contains {string_literal(chr(34) + reference.value + chr(34))}"


def _resolve_number(text: str, number: str, records: tuple[Mapping[str, Any], ...], answer: LogsTable) -> Resolution:
    by_number = tuple(record for record in records if record["IncidentNumber"] == int(number))
    by_provider = tuple(record for record in records if record not in by_number)
    others = [record["IncidentNumber"] for record in by_provider]
    if by_number and by_provider:
        told = note("number_ambiguous", number=number, others=others)
        return Resolution(text, (*by_number, *by_provider), "incident_number", (told,), (answer,), number)
    if by_provider:
        told = note("number_of_defender", number=number, incidents=others)
        return Resolution(text, by_provider, "provider_incident_id", (told,), (answer,))
    if by_number:
        return Resolution(text, by_number, "incident_number", (), (answer,))
    return Resolution(text, (), "", (note("number_unknown", number=number),), (answer,))


def _resolved(text: str, records: tuple[Mapping[str, Any], ...], matched_by: str, *answers: LogsTable) -> Resolution:
    if not records:
        return Resolution(text, (), "", (note("reference_unknown", reference=text[:200]),), answers)
    several = matched_by == "alert_id" and len(records) > 1
    notes = (note("alert_of_several_incidents", count=len(records)),) if several else ()
    return Resolution(text, records, matched_by, notes, answers)


async def _resolve_alert(view: WorkspaceView, text: str, value: str, answer: LogsTable) -> Resolution:
    """An id that no incident names as it stands: the vendor's id of an alert, or an alert without an incident."""
    literal = string_literal(value)
    alert_answer = await view.logs.query(
        f"{ALERT_TABLE}\n"
        f"| where SystemAlertId =~ {literal} or VendorOriginalId =~ {literal} or AlertLink contains {literal}\n"
        "| summarize arg_max(TimeGenerated, AlertName) by SystemAlertId\n| take 5"
    )
    ids = [str(record["SystemAlertId"]).lower() for record in alert_answer.records()]
    if not ids:
        return Resolution(text, (), "", (note("id_unknown", id=value),), (answer, alert_answer))
    condition = " or ".join(f"tostring(AlertIds) contains {string_literal(alert_id)}" for alert_id in ids)
    incident_answer = await view.logs.query(newest_versions(TimeWindow(), (condition,)))
    records = tuple(record for record in incident_answer.records() if not set(ids).isdisjoint(alert_ids_of(record)))
    if not records:
        told = note("alert_without_incident", id=value)
        return Resolution(text, (), "", (told,), (incident_answer, answer, alert_answer))
    return Resolution(text, records, "alert_id", (), (incident_answer, answer, alert_answer))
