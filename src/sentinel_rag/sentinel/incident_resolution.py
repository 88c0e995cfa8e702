"""Which incidents a reference means, asked of the workspace.

The Defender id of one incident is often the Sentinel number of another, so a number is looked up as both and what it
was is told; an id of an alert leads to the incidents that name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.incident_references import IncidentReference, ReferenceKind, parse_reference
from sentinel_rag.sentinel.incidents import alert_ids_of, is_merged, newest_versions
from sentinel_rag.sentinel.kql_literals import string_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.merged_incidents import Merge, merges_of
from sentinel_rag.sentinel.newest_alerts import ALERT_TABLE
from sentinel_rag.sentinel.workspace_view import WorkspaceView


@dataclass(frozen=True, slots=True)
class Resolution:
    """The newest versions that the reference may mean. `matched_by` is empty when there is none."""

    reference: str
    records: tuple[Mapping[str, Any], ...]
    matched_by: str
    notes: tuple[str, ...]
    answers: tuple[LogsTable, ...]
    number: str = ""
    """The number that a bare number is."""
    merges: Mapping[int, Merge] = field(default_factory=dict)
    """Where those of the records went that Defender merged into others, by number."""

    @property
    def whole(self) -> bool:
        """Whether every incident that it may mean was told."""
        return not any(answer.partial for answer in self.answers)

    def merge_notes(self) -> tuple[str, ...]:
        """A sentence for each of the records that was merged."""
        return tuple(merge.note() for merge in self.merges.values())

    def of_sentinel(self) -> Resolution:
        """Of a number that means two incidents, the one whose Sentinel number it is: for what must not be mixed."""
        taken = tuple(each for each in self.records if str(each["IncidentNumber"]) == self.number)
        if len(self.records) < 2 or not taken:
            return self
        note = f"Taken as the Sentinel number {self.number}; the other one is asked for by its own number."
        merges = {number: merge for number, merge in self.merges.items() if str(number) == self.number}
        return replace(self, records=taken, merges=merges, notes=(*self.notes, note))


async def resolve_incident(view: WorkspaceView, text: str) -> Resolution:
    """Every incident that `text` may mean, in its newest version, and where merged ones went. Raises
    QueryFailedError."""
    found = await _resolved_reference(view, text)
    if found.matched_by == "alert_id" and not all(map(is_merged, found.records)):
        # The alert moved on with the merge; a row of the source that still names it has not caught up.
        left = tuple(record for record in found.records if not is_merged(record))
        found = _resolved(text, left, found.matched_by, *found.answers)
    if not found.records and not found.whole:
        unknown = f"Only a part of the incidents was told; whether {text[:200]} is one of the others is not known."
        found = replace(found, notes=(unknown,))
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
    by_number = [record for record in records if record["IncidentNumber"] == int(number)]
    by_provider = [record for record in records if record not in by_number]
    if by_number and by_provider:
        others = ", ".join(str(record["IncidentNumber"]) for record in by_provider)
        note = (
            f"{number} is ambiguous: it is the Sentinel number of one incident and the Defender id of "
            f"Sentinel incident {others}."
        )
        return Resolution(text, (*by_number, *by_provider), "incident_number", (note,), (answer,), number)
    if by_provider:
        numbers = ", ".join(str(record["IncidentNumber"]) for record in by_provider)
        note = f"{number} is no Sentinel incident number; it is the Defender id of Sentinel incident {numbers}."
        return Resolution(text, tuple(by_provider), "provider_incident_id", (note,), (answer,))
    if by_number:
        return Resolution(text, tuple(by_number), "incident_number", (), (answer,))
    note = f"No incident has the Sentinel number or the Defender id {number}."
    return Resolution(text, (), "", (note,), (answer,))


def _resolved(text: str, records: tuple[Mapping[str, Any], ...], matched_by: str, *answers: LogsTable) -> Resolution:
    if not records:
        return Resolution(text, (), "", (f"No incident of this workspace has the reference {text[:200]}.",), answers)
    notes: tuple[str, ...] = ()
    if matched_by == "alert_id" and len(records) > 1:
        notes = (f"The alert belongs to {len(records)} incidents.",)
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
        note = f"No incident and no alert of this workspace has the id {value}."
        return Resolution(text, (), "", (note,), (answer, alert_answer))
    condition = " or ".join(f"tostring(AlertIds) contains {string_literal(alert_id)}" for alert_id in ids)
    incident_answer = await view.logs.query(newest_versions(TimeWindow(), (condition,)))
    records = tuple(record for record in incident_answer.records() if not set(ids).isdisjoint(alert_ids_of(record)))
    if not records:
        note = f"{value} is an alert of this workspace, but no incident names it."
        return Resolution(text, (), "", (note,), (incident_answer, answer, alert_answer))
    return Resolution(text, records, "alert_id", (), (incident_answer, answer, alert_answer))
