"""Incidents that Defender merged into others: how one is known, and where its alerts went.

Defender closes the source, labels it `Redirected` and moves its alerts. The row of the log seldom names the target, so
it is found by which incident came to hold the source's alerts. A merged incident is no closed one: whoever counts
leaves it out. Above are the tools; where a target stands in a row is known in `_named_target` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow, format_time
from sentinel_rag.sentinel.incidents import INCIDENT_TABLE, is_merged, newest_versions
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.log_tables import LogsTable, parse_dynamic

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

    def note(self) -> str:
        """The sentence for a reader."""
        when = "" if self.at is None else f" at {format_time(self.at)}"
        head = (
            f"Incident {self.source} was merged by Microsoft Defender{when} (label Redirected), not closed by a person"
        )
        way = f", by way of {', '.join(map(str, self.through))}" if self.through else ""
        if self.circle:
            ring = " → ".join(map(str, (self.source, *self.through)))
            return f"{head}: the ways lead in a circle ({ring}), so which incident is left the log does not tell."
        if self.into is None:
            named = f" its Defender id is {self.defender_id}, which this log does not have." if self.defender_id else ""
            return f"{head}: into which incident the log does not tell{way}.{named}"
        if self.told_by == "row":
            return f"{head}, into incident {self.into}{way}."
        share = f"{self.moved} of its {self.alerts} alert{'s' if self.alerts != 1 else ''}"
        return (
            f"{head}, into incident {self.into}{way}. The log does not name the target: it is told by "
            f"{share}, which incident {(*self.through, self.into)[0]} holds since."
        )


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


def left_out_note(merges: Mapping[int, Merge], count: int) -> str:
    """The sentence beside counts: how many merged incidents are not among them, and where the first of them went."""
    were = "incident was merged into another" if count == 1 else "incidents were merged into others"
    told = [
        f"{merge.source} into {merge.into}"
        if merge.into is not None
        else f"{merge.source} into one the log does not tell"
        for merge in merges.values()
    ]
    more = f" and {count - len(told)} more" if count > len(told) else ""
    return (
        f"{count} {were} by Microsoft Defender ({', '.join(told)}{more}); merged incidents are not "
        "listed and not counted, neither as open nor as closed."
    )


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
