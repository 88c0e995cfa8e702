"""Which incident an alert belongs to: SecurityAlert does not say, SecurityIncident.AlertIds does.

`ExtendedProperties.IncidentId` of an alert is the Defender id and often another incident's Sentinel number, so it is
never used here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sentinel_rag.sentinel.incidents import INCIDENT_TABLE, IS_MERGED, MERGED
from sentinel_rag.sentinel.kql_literals import list_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.workspace_view import WorkspaceView

MOST_IDS_IN_A_QUERY = 1000
"""Of about 40 characters each; the text of a query is bounded."""


@dataclass(frozen=True, slots=True)
class IncidentLinks:
    """Incident numbers by alert id (lower case), the most recently changed incident first, and each one's status."""

    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    statuses: Mapping[int, str] = field(default_factory=dict)
    answer: LogsTable | None = None

    def number_of(self, alert_id: str) -> int | None:
        numbers = self.numbers.get(alert_id, ())
        return numbers[0] if numbers else None

    def several(self) -> tuple[str, ...]:
        """Alert ids that more than one incident names."""
        return tuple(alert_id for alert_id, numbers in self.numbers.items() if len(numbers) > 1)


async def incident_links(view: WorkspaceView, alert_ids: Iterable[str] | None = None) -> IncidentLinks:
    """Links of the given alerts; of all alerts for None, and for more ids than a query should carry."""
    wanted = None if alert_ids is None else {alert_id for alert_id in alert_ids if alert_id}
    if wanted is not None and not wanted:
        return IncidentLinks()
    narrowed = ""
    if wanted is not None and len(wanted) <= MOST_IDS_IN_A_QUERY:
        narrowed = f"\n| where AlertId in~ {list_literal(sorted(wanted))}"
    answer = await view.logs.query(
        f"{INCIDENT_TABLE}\n"
        "| summarize arg_max(TimeGenerated, AlertIds, Status, Labels) by IncidentNumber\n"
        f"| extend Merged = {IS_MERGED}\n"
        "| mv-expand AlertId = AlertIds to typeof(string)\n"
        "| where isnotempty(AlertId) and isnotnull(IncidentNumber)" + narrowed + "\n"
        "| project AlertId, IncidentNumber, Status, Merged, TimeGenerated\n"
        "| order by Merged asc, TimeGenerated desc, IncidentNumber desc"
    )
    numbers: dict[str, list[int]] = defaultdict(list)
    statuses: dict[int, str] = {}
    for record in answer.records():
        alert_id, number = str(record["AlertId"]).lower(), record["IncidentNumber"]
        stale = record["Merged"] and numbers[alert_id]  # the alert moved on with the merge
        if (wanted is None or alert_id in wanted) and number not in numbers[alert_id] and not stale:
            numbers[alert_id].append(number)
        statuses[number] = MERGED if record["Merged"] else record["Status"]
    return IncidentLinks({key: tuple(found) for key, found in numbers.items() if found}, statuses, answer)
