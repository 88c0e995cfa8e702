"""The events behind the alerts of the small estate: one has rows, one a query that may not run, the others no query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow, parse_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT
from sentinel_rag_testing.scripted_gateway import rows_result

_ROWS: tuple[JsonObject, ...] = tuple(
    {
        "TimeGenerated": f"2024-07-17T14:0{minute}:00Z",
        "DeviceName": "web-03.contoso.example",
        "AccountName": "svc-backup",
        "ProcessCommandLine": line,
    }
    for minute, line in ((1, "powershell.exe -enc AAAA"), (2, "whoami.exe /all"), (4, "powershell.exe -enc BBBB"))
)
_QUERY = "DeviceProcessEvents\n| where FileName =~ 'powershell.exe' or InitiatingProcessFileName =~ 'powershell.exe'"
_WINDOW = TimeWindow(parse_time("2024-07-17T13:05:00Z"), parse_time("2024-07-17T14:05:00Z"))


def alert_events(alerts: Sequence[Mapping[str, Any]], arguments: JsonObject) -> QueryResult:
    """An answer of get_alert_events over rows of query_alerts."""
    wanted = str(arguments["alert_id"]).lower()
    found = next((row for row in alerts if row["alert_id"] == wanted), None)
    if found is None:
        return rows_result((), notes=(f"No alert of this workspace has the id {wanted!r}.",))
    summary: dict[str, JsonValue] = {
        "alert_id": found["alert_id"],
        "vendor_id": None,
        "alert_name": found["name"],
        "severity": found["severity"],
        "product": found["product"],
        "incident_number": found["incident_number"],
        "url": None,
        "start_time": found["time"],
        "end_time": found["time"],
        "row_time": found["time"],
        "entities": found["entities"],
        "entity_count": len(found["entities"]),
        "custom_details": None,
    }
    if found["name"] == "Password spray":
        query = "externaldata(x: string) ['https://files.example/list.csv']"
        told: dict[str, JsonValue] = {"ran": False, "why_not": "refused", "query": query}
        note = "The query that the alert holds was not run: externaldata reads from outside the workspace."
        return rows_result((), total=0, summary=summary | told, window=_WINDOW, notes=(note,))
    if found["name"] != "Suspicious PowerShell command line":
        note = f"{found['product']} stores no query with its alerts, so there are no events to run again."
        return rows_result((), total=0, summary=summary | {"ran": False, "why_not": "no_query"}, notes=(note,))
    told = {
        "ran": True,
        "why_not": None,
        "rule_name": "PowerShell with encoded commands",
        "query": _QUERY,
        "query_cut": False,
        "window": {**_WINDOW.to_dict()},
        "window_told_by": "the window that the alert tells (Query Start Time UTC, Query End Time UTC)",
        "events_told": 4,
        "events_found": len(_ROWS),
        "parser": "microsoft",
        "late_rows": 0,
    }
    return rows_result(
        _ROWS[: int(str(arguments.get("limit", DEFAULT_LIMIT)))],
        total=len(_ROWS),
        summary=summary | told,
        window=_WINDOW,
        table="DeviceProcessEvents",
        notes=("The alert told 4 events when it was raised; 3 are found now.",),
    )
