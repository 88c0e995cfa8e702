"""The one incident that an action is for, and the way to change it.

A tool that reads may show every incident that a reference could mean; one that writes must know. Above are the actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.sentinel.failures import QueryFailedError, invalid_argument
from sentinel_rag.sentinel.incident_resolution import Resolution, resolve_incident
from sentinel_rag.sentinel.incidents import INCIDENT_TABLE, INCIDENT_TIME
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.results import Stopwatch, build_result, shortened
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.workspace_view import WorkspaceView


@dataclass(frozen=True, slots=True)
class Target:
    """An incident by its GUID, with everything that the answer's coverage needs: nothing is read after a write."""

    name: str
    label: str
    rest: SentinelRest
    matched_by: str
    reference: str
    notes: tuple[str, ...]
    answers: tuple[LogsTable, ...]
    statistics: TableStatistics
    stopwatch: Stopwatch
    workspace: str

    def result(
        self, columns: Any, row: Mapping[str, Any], *, summary: Mapping[str, Any], notes: tuple[str, ...]
    ) -> QueryResult:
        """The answer of an action: one row, the incident or its comment afterwards."""
        return build_result(
            columns,
            (row,),
            workspace=self.workspace,
            tables=(INCIDENT_TABLE,),
            window=TimeWindow(),
            time_column=INCIDENT_TIME,
            rows_total=1,
            answers=self.answers,
            statistics=self.statistics,
            stopwatch=self.stopwatch,
            summary={"matched_by": self.matched_by, "reference": self.reference, **summary},
            notes=(*notes, *self.notes),
        )


async def target_incident(view: WorkspaceView, reference: str) -> Target:
    """The incident that `reference` means. Raises QueryFailedError: none, several, or a workspace that is read only."""
    stopwatch = Stopwatch()
    if view.rest is None:
        raise QueryFailedError(
            QueryError(
                code=QueryErrorCode.WORKSPACE_NOT_FOUND,
                message=f"Workspace {view.logs.name} is read only here: its Resource ID is not configured.",
                next_step="Set SENTINEL_WORKSPACE_RESOURCE_ID (docs/settings.md) and start again.",
            )
        )
    resolution = await resolve_incident(view, reference)
    record = _only(resolution)
    statistics = await view.statistics.read(INCIDENT_TABLE, INCIDENT_TIME)
    merge = resolution.merges.get(record["IncidentNumber"])
    if merge is not None:
        raise invalid_argument(
            "incident",
            f"{merge.note()} Nothing was changed.",
            allowed=() if merge.into is None else (str(merge.into),),
            next_step="Make the change to the incident that it was merged into.",
        )
    name = str(record["IncidentName"] or "")
    label = f"Incident {record['IncidentNumber']}" if record["IncidentNumber"] is not None else f"Incident {name}"
    if not name:
        raise invalid_argument("incident", f"{label} has no GUID in the log, so Sentinel cannot be told which it is.")
    return Target(
        name=name,
        label=label,
        rest=view.rest,
        matched_by=resolution.matched_by,
        reference=reference,
        notes=resolution.notes,
        answers=resolution.answers,
        statistics=statistics,
        stopwatch=stopwatch,
        workspace=view.logs.name,
    )


def _only(resolution: Resolution) -> Mapping[str, Any]:
    records = resolution.records
    if not records:
        raise invalid_argument(
            "incident",
            " ".join(resolution.notes) or f"No incident has the reference {resolution.reference[:80]!r}.",
            next_step="query_incidents lists the incidents that there are.",
        )
    if len(records) > 1:
        shown = "; ".join(
            f"{record['IncidentNumber']} ({shortened(record['Title'], 60)}, {record['IncidentName']})"
            for record in records[:10]
        )
        raise invalid_argument(
            "incident",
            f"{resolution.reference[:80]!r} may mean {len(records)} incidents: {shown}. Nothing was changed.",
            allowed=tuple(str(record["IncidentName"]) for record in records[:10]),
            next_step="Ask which one is meant, then name it by its GUID.",
        )
    return records[0]
