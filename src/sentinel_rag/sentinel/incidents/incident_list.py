"""The tool query_incidents: newest versions, exact totals, and the window by one of three times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sentinel_rag.contracts.query_results import QueryResult, TimeWindow
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.arguments import severities_from, window_from
from sentinel_rag.sentinel.incidents import incidents
from sentinel_rag.sentinel.incidents.entity_search import EntityIncidents, incidents_naming
from sentinel_rag.sentinel.incidents.incident_resolution import MOST_NAMED, left_out_note, merges_of
from sentinel_rag.sentinel.logs.kql_literals import list_literal, read_name, readings_summary, string_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import WorkspaceView, build_result, delay_notes, lower_bound, ordered


async def query_incidents(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Checked arguments in, incidents out; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
    result = await _incidents(view, arguments)
    owner = arguments.get("owner", incidents.UNASSIGNED)
    if result.coverage.rows_total != 0 or owner.casefold() == incidents.UNASSIGNED:
        return result
    names = await view.logs.query(incidents.owners(), TimeWindow())
    reading = read_name("owner", owner, map(str, names.column("Name")))
    if reading.used is not None:
        result = await _incidents(view, {**arguments, "owner": reading.used})
    return replace(
        result,
        summary={**result.summary, **readings_summary(reading)},
        notes=(*result.notes, reading.note("SecurityIncident")),
    )


async def _incidents(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    chosen = window_from(arguments, view.clock())
    window = chosen.window
    naming = await incidents_naming(view, arguments) if "entity" in arguments else EntityIncidents()
    time_column = incidents.TIME_COLUMNS[arguments["time_field"]]
    base = incidents.newest_versions(window, (*conditions(arguments), *naming.conditions))
    span = incidents.incident_span(window)
    (rows_answer, counts_answer), statistics = await together(
        lambda: view.logs.query_all(
            (
                (
                    incidents.listed(
                        base,
                        window,
                        arguments["order"],
                        arguments["limit"] + arguments["offset"],
                        time_column=time_column,
                    ),
                    span,
                ),
                (incidents.counted(base, window, time_column=time_column), span),
            )
        ),
        lambda: view.statistics.read(incidents.INCIDENT_TABLE, time_column),
    )
    records = list(islice(rows_answer.records(), arguments["offset"], None))
    room = incidents.description_room(len(records))
    rows = [incidents.incident_row(record, description=room) for record in records]
    whole = naming.whole and not counts_answer.partial
    totals = IncidentTotals.from_counts(counts_answer)
    notes = [
        *chosen.notes,
        *await delay_notes(view, incidents.INCIDENT_TABLE, window),
        *naming.notes,
        *incidents.reopened_note(rows),
    ]
    if "entity_kind" in arguments and "entity" not in arguments:
        notes.append(note("kind_without_entity"))
    answers = [rows_answer, counts_answer, *naming.answers]
    if totals.merged:
        told, merge_answers = await merged_note(view, base, window, totals.merged, time_column=time_column)
        notes.append(told)
        answers += merge_answers
    if totals.updated and whole:
        notes.append(note("updated_before_window", count=totals.updated))
    return build_result(
        incidents.INCIDENT_COLUMNS,
        rows,
        tables=(incidents.INCIDENT_TABLE, *naming.tables),
        window=window,
        time_column=time_column,
        rows_total=totals.total if whole else None,
        answers=answers,
        statistics=statistics,
        summary={
            **(
                {
                    "by_severity": totals.by_severity,
                    "by_status": totals.by_status,
                    "updated_in_window": totals.updated,
                    **({"merged": totals.merged} if totals.merged else {}),
                }
                if whole
                else lower_bound(totals.total, arguments["offset"] + len(rows))
            ),
            **readings_summary(naming.reading),
        },
        notes=notes,
        shown_query=incidents.chosen(base, window, time_column=time_column),
    )


def conditions(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """KQL predicates on the newest version, from checked arguments."""
    found: list[str] = []
    severities = severities_from(arguments)
    if severities != SEVERITIES:
        found.append(f"Severity in~ {list_literal(severities)}")
    status = arguments.get("status")
    if status == "Open":
        found.append('Status in~ ("New", "Active")')
    elif status is not None:
        found.append(f"Status =~ {string_literal(status)}")
    if arguments.get("time_field") == "closed":
        found.append('Status =~ "Closed"')  # a reopened incident still carries the time of its first closing
    if "classification" in arguments:
        found.append(f'Status =~ "Closed" and Classification =~ {string_literal(arguments["classification"])}')
    if "closed_by" in arguments:
        found.append(incidents.closer_condition(arguments["closed_by"]))
    if "title_contains" in arguments:
        found.extend(incidents.title_conditions(arguments["title_contains"]))
    if "owner" in arguments:
        found.append(incidents.owner_condition(arguments["owner"]))
    return tuple(found)


class IncidentTotals:
    """Counts over all matching incidents, returned or not; `merged` ones are in none of the others."""

    def __init__(self, by_severity: dict[str, int], by_status: dict[str, int], updated: int, merged: int) -> None:
        self.by_severity = by_severity
        self.by_status = by_status
        self.updated = updated
        self.merged = merged
        self.total = sum(by_status.values())

    @classmethod
    def from_counts(cls, answer: LogsTable) -> IncidentTotals:
        """From the answer to `incidents.counted`."""
        by_severity: Counter[str] = Counter()
        by_status: Counter[str] = Counter()
        updated = merged = 0
        for record in answer.records():
            updated += record["Updated"]
            merged += record["Merged"]
            if record["Merged"] and not record["Incidents"]:
                continue  # of this severity and status there are merged ones only
            by_severity[record["Severity"] or "Unknown"] += record["Incidents"]
            by_status[record["Status"] or "Unknown"] += record["Incidents"]
        return cls(
            ordered(by_severity, reversed(SEVERITIES)),
            ordered(by_status, ("New", "Active", "Closed")),
            updated,
            merged,
        )

    @property
    def open(self) -> int:
        return self.by_status.get("New", 0) + self.by_status.get("Active", 0)


async def incident_totals(view: WorkspaceView, window: TimeWindow) -> tuple[IncidentTotals, LogsTable]:
    """Totals of all incidents created in `window`, with the answer they came from."""
    base = incidents.newest_versions(window)
    answer = await view.logs.query(incidents.counted(base, window), incidents.incident_span(window))
    return IncidentTotals.from_counts(answer), answer


async def merged_note(
    view: WorkspaceView, base: str, window: TimeWindow, count: int, *, time_column: str = incidents.INCIDENT_TIME
) -> tuple[CodedNote, tuple[LogsTable, ...]]:
    """What to say of the `count` merged incidents that `base` and `window` would count, and the answers it is from."""
    kql = incidents.merged_ones(base, window, MOST_NAMED, time_column=time_column)
    answer = await view.logs.query(kql, incidents.incident_span(window))
    merges, answers = await merges_of(view.logs, answer.records())
    return left_out_note(merges, count), (answer, *answers)
