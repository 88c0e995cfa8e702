"""Incidents as they are now: SecurityIncident is a log of versions, and only the newest of each counts.

`newest_versions` collapses the log before anything is filtered; whoever filters first counts an incident once for
each state that it ever had. This module owns that KQL and the shape of an incident row, not any tool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, TimeWindow
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts.alerts import Alert
from sentinel_rag.sentinel.alerts.newest_alerts import SEVERITY_RANK
from sentinel_rag.sentinel.arguments import since_before, within
from sentinel_rag.sentinel.logs.kql_literals import MOST_IDS_IN_A_QUERY, MOST_READ, list_literal, string_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, json_cell, parse_dynamic
from sentinel_rag.sentinel.workspace_view import (
    FEW_ROWS,
    LONGEST_DESCRIPTION,
    WHOLE_DESCRIPTION,
    WorkspaceView,
    shortened,
)

INCIDENT_TABLE = "SecurityIncident"
INCIDENT_TIME = "CreatedTime"
TIME_COLUMNS = {"created": INCIDENT_TIME, "closed": "ClosedTime", "updated": "LastModifiedTime"}
"""The column that a window applies to, by `time_field`."""

UNASSIGNED = "unassigned"

MERGED = "Merged"
"""The status told of an incident that Defender merged into another; the service's own word for it is Closed."""
MERGE_LABEL = "Redirected"
IS_MERGED = (
    '(Status =~ "Closed" and tostring(Labels) matches regex '
    f'@\'(?i)"labelName\\\\*"\\s*:\\s*\\\\*"{MERGE_LABEL}\\\\*"\')'
)
"""KQL for `is_merged`; some exports encode Labels twice, so that its quotes have backslashes before them."""

INCIDENT_COLUMNS = (
    Column("number", "long"),
    Column("title", "string"),
    Column("severity", "string"),
    Column("status", "string"),
    Column("created_time", "datetime"),
    Column("updated_time", "datetime"),
    Column("closed_time", "datetime"),
    Column("owner", "string"),
    Column("classification", "string"),
    Column("alert_count", "long"),
    Column("provider_incident_id", "string"),
    Column("incident_name", "guid"),
    Column("provider", "string"),
    Column("url", "string"),
    Column("description", "string"),
    Column("classification_comment", "string"),
)

_PROJECTED = (
    "IncidentNumber, Title, Severity, Status, CreatedTime, LastModifiedTime, TimeGenerated, ClosedTime, Owner, "
    "Classification, AlertIds, AdditionalData, Labels, ProviderIncidentId, IncidentName, ProviderName, "
    "IncidentUrl, Description, ClassificationComment = column_ifexists('ClassificationComment', '')"
)
_ORDERS = {
    "newest": "CreatedTime desc, IncidentNumber desc",
    "oldest": "CreatedTime asc, IncidentNumber asc",
    "severity": "Rank desc, IsOpen desc, CreatedTime desc, IncidentNumber desc",
    "updated": "LastModifiedTime desc, IncidentNumber desc",
}


def incident_span(window: TimeWindow) -> TimeWindow:
    """The TimeGenerated span to read for incidents created in, or changed in, `window`.

    It has no end: the newest version of an incident of last month may be of today. It begins a day early, since an
    export may stamp a version a little before its creation.
    """
    return since_before(window, timedelta(days=1))


def newest_versions(window: TimeWindow, conditions: tuple[str, ...] = ()) -> str:
    """KQL for the newest version of each incident that meets `conditions`, with the versions written in `window`."""
    changed = f", VersionsInWindow = countif({within('TimeGenerated', window)})" if window != TimeWindow() else ""
    lines = [INCIDENT_TABLE, f"| summarize arg_max(TimeGenerated, *){changed} by IncidentNumber"]
    lines += [f"| where {condition}" for condition in conditions]
    return "\n".join(lines)


def listed(base: str, window: TimeWindow, order: str, limit: int, *, time_column: str = INCIDENT_TIME) -> str:
    """KQL for the first `limit` incidents created in `window`, or closed or updated by `time_column`."""
    return "\n".join(
        (
            base,
            f"| where {within(_moment(time_column), window)} and not({IS_MERGED})",
            f"| extend Rank = {SEVERITY_RANK.format('Severity')}, IsOpen = iff(Status =~ 'Closed', 0, 1)",
            f"| order by {_ORDERS[order]}",
            f"| take {limit}",
            f"| project {_PROJECTED}",
        )
    )


def chosen(base: str, window: TimeWindow, *, time_column: str = INCIDENT_TIME) -> str:
    """KQL for all incidents that `listed` takes a page of: what a person runs to find the number that was told."""
    columns = "IncidentNumber, Title, Severity, Status, CreatedTime, ClosedTime, Owner, ProviderIncidentId"
    return "\n".join(
        (base, f"| where {within(_moment(time_column), window)} and not({IS_MERGED})", f"| project {columns}")
    )


def counted(base: str, window: TimeWindow, *, time_column: str = INCIDENT_TIME) -> str:
    """KQL for counts by Severity and Status: of `window` by `time_column`, and older ones that changed in it.

    Merged incidents are counted for themselves.
    """
    updated = "countif(false)"
    if window.start is not None and time_column == INCIDENT_TIME:
        created_since = within(INCIDENT_TIME, TimeWindow(window.start, None))
        updated = f"countif(not(Merged) and VersionsInWindow > 0 and not({created_since}))"
    return "\n".join(
        (
            base,
            f"| extend Merged = {IS_MERGED}, Inside = {within(_moment(time_column), window)}",
            f"| summarize Incidents = countif(Inside and not(Merged)), Merged = countif(Inside and Merged), "
            f"Updated = {updated} by Severity, Status",
        )
    )


def merged_ones(base: str, window: TimeWindow, most: int, *, time_column: str = INCIDENT_TIME) -> str:
    """KQL for the newest `most` merged incidents of `window`, whole."""
    return "\n".join(
        (
            base,
            f"| where {IS_MERGED} and {within(_moment(time_column), window)}",
            "| order by TimeGenerated desc, IncidentNumber desc",
            f"| take {most}",
        )
    )


def is_merged(record: Mapping[str, Any]) -> bool:
    """Whether Defender merged the incident into another: it is closed and carries the label of that."""
    labels = parse_dynamic(record.get("Labels"))
    names = {
        str(label.get("labelName")).casefold()
        for label in (labels if isinstance(labels, list) else ())
        if isinstance(label, Mapping)
    }
    return str(record["Status"]).casefold() == "closed" and MERGE_LABEL.casefold() in names


def _moment(time_column: str) -> str:
    """The column as an expression; a version that was never modified has changed when it was written."""
    return "coalesce(LastModifiedTime, TimeGenerated)" if time_column == TIME_COLUMNS["updated"] else time_column


def title_conditions(words: str) -> tuple[str, ...]:
    """Every word of `words` occurs in the title, in any case and order."""
    return tuple(f"Title contains {string_literal(word)}" for word in words.split())


def owner_condition(text: str) -> str:
    """Name or address of the owner contains `text`, or there is none for `unassigned`.

    The names of the keys in Owner's JSON do not count.
    """
    owner = 'strcat(tostring(Owner.assignedTo), " ", tostring(Owner.email), " ", tostring(Owner.userPrincipalName))'
    if text.casefold() == UNASSIGNED:
        return f'trim(" ", {owner}) == ""'
    return f"{owner} contains {string_literal(text)}"


def closer_condition(text: str) -> str:
    """It is closed, and the name of who closed it contains `text`.

    That stands in the first version with the newest time of closing: later ones tell who changed it since.
    """
    closings = (
        f'{INCIDENT_TABLE} | where Status =~ "Closed" '
        "| summarize arg_min(TimeGenerated, ModifiedBy) by IncidentNumber, ClosedTime "
        "| summarize arg_max(ClosedTime, ModifiedBy) by IncidentNumber "
        f"| where ModifiedBy contains {string_literal(text)} | project IncidentNumber"
    )
    return f'Status =~ "Closed" and IncidentNumber in (({closings}))'


def owners() -> str:
    """KQL for the names of those who own an incident, those of many first."""
    name = "case({0} != '', {0}, {1} != '', {1}, {2})".format(
        *(f"tostring(Owner.{key})" for key in ("assignedTo", "userPrincipalName", "email"))
    )
    return "\n".join(
        (
            newest_versions(TimeWindow()),
            f"| extend Name = {name}",
            "| where isnotempty(Name)",
            "| summarize Incidents = count() by Name",
            "| order by Incidents desc, Name asc",
            f"| take {MOST_READ}",
        )
    )


def alert_ids_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """The incident's alert ids in lower case, in order, without repetition."""
    ids = parse_dynamic(record.get("AlertIds"))
    if not isinstance(ids, list):
        return ()
    return tuple(dict.fromkeys(str(item).lower() for item in ids if item))


def incident_row(record: Mapping[str, Any], *, description: int = LONGEST_DESCRIPTION) -> dict[str, JsonValue]:
    """The row that a reader sees, from a decoded version of SecurityIncident; `description` bounds its characters."""
    return {
        "number": record["IncidentNumber"],
        "title": record["Title"] or None,
        "severity": record["Severity"] or None,
        "status": MERGED if is_merged(record) else record["Status"] or None,
        "created_time": json_cell(record["CreatedTime"]),
        "updated_time": json_cell(record["LastModifiedTime"] or record["TimeGenerated"]),
        "closed_time": None if is_merged(record) else json_cell(record["ClosedTime"]),
        "owner": owner_name(record["Owner"]),
        "classification": record["Classification"] or None,
        "alert_count": alert_count(record),
        "provider_incident_id": record["ProviderIncidentId"] or None,
        "incident_name": record["IncidentName"] or None,
        "provider": record["ProviderName"] or None,
        "url": record["IncidentUrl"] or None,
        "description": shortened(record["Description"], description),
        "classification_comment": shortened(record.get("ClassificationComment"), description),
    }


def description_room(rows: int) -> int:
    """Characters of a description where so many rows are shown: few are told whole."""
    return WHOLE_DESCRIPTION if rows <= FEW_ROWS else LONGEST_DESCRIPTION


def defender_url(record: Mapping[str, Any]) -> str | None:
    """The incident's page in the Defender portal, where Sentinel tells one; `url` is its page in the Azure portal."""
    additional = parse_dynamic(record["AdditionalData"])
    url = additional.get("providerIncidentUrl") if isinstance(additional, Mapping) else None
    return url if isinstance(url, str) and url.startswith("https://") else None


def owner_name(owner: Any) -> str | None:
    """The owner as people write it: the name assigned to, else an address."""
    owner = parse_dynamic(owner)
    if not isinstance(owner, Mapping):
        return str(owner) if owner else None
    for key in ("assignedTo", "userPrincipalName", "email"):
        if owner.get(key):
            return str(owner[key])
    return None


def alert_count(record: Mapping[str, Any]) -> int:
    """How many alerts the incident names; its own counter where the ids are missing (63 of 408 real incidents)."""
    ids = alert_ids_of(record)
    if ids:
        return len(ids)
    additional = parse_dynamic(record.get("AdditionalData"))
    counter = additional.get("alertsCount") if isinstance(additional, Mapping) else None
    return counter if isinstance(counter, int) else 0


def reopened_note(rows: list[dict[str, JsonValue]]) -> tuple[CodedNote, ...]:
    """Open incidents that carry a closing time were closed before; a reader would take the time for a state."""
    numbers = [row["number"] for row in rows if row["closed_time"] is not None and row["status"] != "Closed"]
    return (note("closed_and_open_again", numbers=numbers),) if numbers else ()


# `ExtendedProperties.IncidentId` of an alert is the Defender id and often another incident's Sentinel number, so it is
# never used here.


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


def reader_notes(found: Sequence[Alert], links: IncidentLinks) -> list[CodedNote]:
    """What the rows alone would let a reader miss: snapshots, unreadable entities, alerts of several incidents."""
    notes: list[CodedNote] = []
    snapshots = [alert for alert in found if _disagrees(alert, links)]
    if snapshots:
        newest = max(str(alert.row_time) for alert in snapshots)
        notes.append(note("alert_state_differs", count=len(snapshots), newest=newest))
    unreadable = sum(not alert.entities.readable for alert in found)
    if unreadable:
        notes.append(note("entities_unreadable", count=unreadable, uncounted=False))
    dangling = sum(alert.entities.dangling for alert in found)
    if dangling:
        notes.append(note("entities_dangling", count=dangling))
    several = links.several()
    if several:
        notes.append(note("alerts_in_several_incidents", count=len(several)))
    return notes


def _disagrees(alert: Alert, links: IncidentLinks) -> bool:
    number = links.number_of(alert.alert_id)
    if number is None:
        return False
    alert_closed = alert.record["Status"] in ("Resolved", "Dismissed")
    return alert_closed != (links.statuses.get(number) in ("Closed", MERGED))
