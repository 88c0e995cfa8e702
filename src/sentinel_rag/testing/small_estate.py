"""A handful of made-up incidents and alerts behind a `ScriptedGateway`, in the shapes of `contracts.tool_schemas`.

It filters by what an analyst's questions filter by, so that a test can compare answers with what the estate holds. All
names and addresses are reserved for documentation; nothing in it comes from a real workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow, format_time, parse_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, SEVERITIES, TIME_WINDOWS
from sentinel_rag.testing.estate_events import alert_events
from sentinel_rag.testing.scripted_gateway import Scripted, ScriptedGateway, rows_result

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)
"""The estate's "now"; its newest rows are some days old, as in an export."""

_INCIDENTS = (
    # number, Defender id, title, severity, status, created, owner
    (40, 655, "Suspicious inbox rule after phishing click", "High", "New", "2024-07-20T06:12:00Z", None),
    (31, 640, "Password spray against several accounts", "Medium", "Active", "2024-07-18T21:40:00Z", "Ines Duarte"),
    (23, 31, "Phishing mail delivered and removed", "Low", "Closed", "2024-07-12T09:00:00Z", "m.keller"),
    (18, 612, "Credential theft on a file server", "High", "Active", "2024-07-09T13:30:00Z", "Ines Duarte"),
    (
        12,
        598,
        "Lateral movement from fin-ws-014 with ransomware tools",
        "High",
        "Active",
        "2024-07-02T09:51:00Z",
        "m.keller",
    ),
    (7, 581, "Unfamiliar sign-in properties", "Informational", "Closed", "2024-06-25T07:15:00Z", None),
)
_Alert = tuple[
    str,
    str,
    str,
    str,
    str,
    str,
    int,
    str,
    str,
    tuple[tuple[str, str, dict[str, str]], ...],
    tuple[str, ...],
    tuple[str, ...],
]
_ALERTS: tuple[_Alert, ...] = (
    # id, name, severity, status, time, product, incident, host, account, entities, tactics, techniques
    (
        "a1",
        "Inbox rule forwards mail outside",
        "High",
        "New",
        "2024-07-20T06:10:00Z",
        "Microsoft Defender for Office 365",
        40,
        "",
        "ines.duarte@contoso.example",
        (("mailbox", "ines.duarte@contoso.example", {}),),
        ("Collection",),
        ("T1114.003",),
    ),
    (
        "a2",
        "Password spray",
        "Medium",
        "InProgress",
        "2024-07-19T08:00:00Z",
        "Azure Active Directory Identity Protection",
        31,
        "",
        "m.keller",
        (("ip", "203.0.113.77", {}),),
        ("CredentialAccess",),
        ("T1110.003",),
    ),
    (
        "a3",
        "Suspicious PowerShell command line",
        "Medium",
        "New",
        "2024-07-17T14:05:00Z",
        "Microsoft Defender Advanced Threat Protection",
        31,
        "web-03.contoso.example",
        "svc-backup",
        (("process", "powershell.exe -enc AAAA", {"command_line": "powershell.exe -enc AAAA", "process_id": "4711"}),),
        ("Execution",),
        ("T1059.001",),
    ),
    (
        "a4",
        "Phishing mail removed after delivery",
        "Low",
        "Resolved",
        "2024-07-12T08:55:00Z",
        "Microsoft Defender for Office 365",
        23,
        "",
        "ines.duarte@contoso.example",
        (("url", "https://login-update.example/reset", {}),),
        ("InitialAccess",),
        ("T1566.002",),
    ),
    (
        "a5",
        "Mimikatz credential theft tool",
        "High",
        "New",
        "2024-07-09T13:20:00Z",
        "Microsoft Defender Advanced Threat Protection",
        18,
        "dc-01.contoso.example",
        "m.keller",
        (("file", "C:\\tools\\mimi.exe", {"sha1": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}),),
        ("CredentialAccess",),
        ("T1003.001",),
    ),
    (
        "a6",
        "Malicious file was dropped",
        "High",
        "InProgress",
        "2024-07-02T09:47:00Z",
        "Microsoft Defender Advanced Threat Protection",
        12,
        "fin-ws-014.contoso.example",
        "m.keller",
        (
            (
                "file",
                "C:\\Users\\Public\\dropper.exe",
                {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
            ),
            ("url", "https://files.example/dropper", {}),
        ),
        ("Execution",),
        ("T1204.002",),
    ),
    (
        "a7",
        "Suspicious remote activity",
        "Medium",
        "New",
        "2024-07-02T09:50:00Z",
        "Microsoft Defender Advanced Threat Protection",
        12,
        "dc-01.contoso.example",
        "m.keller",
        (("ip", "198.51.100.23", {}),),
        ("LateralMovement",),
        ("T1021.002",),
    ),
    (
        "a8",
        "Unfamiliar sign-in properties",
        "Informational",
        "Dismissed",
        "2024-06-25T07:10:00Z",
        "Azure Active Directory Identity Protection",
        7,
        "",
        "svc-backup",
        (("ip", "203.0.113.9", {}),),
        ("InitialAccess",),
        ("T1078",),
    ),
)
_TEMPLATES: tuple[JsonObject, ...] = (
    {
        "name": "failed_sign_ins",
        "description": "Failed sign-ins of one account, by application, address and reason.",
        "tables": ["SigninLogs"],
        "parameters": [
            {
                "name": "account",
                "type": "string",
                "required": True,
                "default": None,
                "description": "UPN of the account.",
                "allowed": None,
            }
        ],
        "questions": ["Failed sign-ins of a.user@example.org", "Which sign-ins of user a.user failed"],
        "tactics": ["CredentialAccess"],
        "techniques": ["T1110"],
    },
    {
        "name": "processes_on_host",
        "description": "Processes that ran on one host, newest first.",
        "tables": ["DeviceProcessEvents"],
        "parameters": [
            {
                "name": "host",
                "type": "string",
                "required": True,
                "default": None,
                "description": "Name of the host.",
                "allowed": None,
            }
        ],
        "questions": ["Which processes ran on host srv-9", "Process creation on machine srv-9"],
        "tactics": ["Execution"],
        "techniques": ["T1059"],
    },
    {
        "name": "rare_processes",
        "description": "Processes that ran on few hosts only.",
        "tables": ["DeviceProcessEvents"],
        "parameters": [
            {
                "name": "max_hosts",
                "type": "int",
                "required": False,
                "default": 2,
                "description": "Most hosts.",
                "allowed": None,
            }
        ],
        "questions": ["Which rare processes ran", "Uncommon executables"],
        "tactics": ["Execution"],
        "techniques": [],
    },
    {
        "name": "sign_ins_from_ip",
        "description": "Sign-ins from one address, successful or not.",
        "tables": ["SigninLogs"],
        "parameters": [
            {
                "name": "ip",
                "type": "string",
                "required": True,
                "default": None,
                "description": "IP address.",
                "allowed": None,
            }
        ],
        "questions": ["Sign-ins from ip 192.0.2.1", "Who signed in from 192.0.2.1"],
        "tactics": ["InitialAccess"],
        "techniques": ["T1078"],
    },
    {
        "name": "azure_changes",
        "description": "Changes of Azure resources with caller and address.",
        "tables": ["AzureActivity"],
        "parameters": [],
        "questions": ["Who changed Azure resources", "Azure operations by caller"],
        "tactics": ["Impact"],
        "techniques": [],
    },
    *(
        {
            "name": name,
            "description": description,
            "tables": ["SecurityAlert"],
            "parameters": [],
            "questions": questions,
            "tactics": [],
            "techniques": [],
        }
        for name, description, questions in (
            (
                "alert_count_by_name",
                "How often each alert name fired, with the severity and the time of its newest alert.",
                ["Which alert names are most frequent", "Most common alerts"],
            ),
            (
                "alerts_by_technique",
                "Distinct alerts for each MITRE ATT&CK technique.",
                ["Which techniques do the alerts show most often", "Alerts per technique"],
            ),
            (
                "alerts_by_tactic",
                "Distinct alerts for each MITRE ATT&CK tactic.",
                ["Which tactics do the alerts show most often", "Alerts per tactic"],
            ),
        )
    ),
)


def alert_id(short: str) -> str:
    """The GUID of the estate's alert `a1` ... `a8`."""
    return f"3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e{int(short[1:]):02d}"


def small_estate(
    now: Callable[[], datetime] = lambda: NOW, **replaced: Scripted | Sequence[Scripted]
) -> ScriptedGateway:
    """A gateway over the estate; `replaced` scripts single tools otherwise (`query_alerts=denial()`)."""
    estate = _Estate(now)
    answers: dict[str, Scripted | Sequence[Scripted]] = {
        "query_incidents": estate.query_incidents,
        "get_incident_detail": estate.get_incident_detail,
        "query_alerts": estate.query_alerts,
        "get_alert_events": estate.get_alert_events,
        "get_alert_trend": estate.get_alert_trend,
        "get_top_entities": estate.get_top_entities,
        "get_threat_summary": estate.get_threat_summary,
        "run_kql_query": estate.run_kql_query,
        "list_kql_templates": lambda _: rows_result(_TEMPLATES, table="", time_column=""),
        "list_tables": estate.list_tables,
    }
    return ScriptedGateway({**answers, **replaced})


class _Estate:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._alerts = [_alert_row(*alert) for alert in _ALERTS]
        self._incidents = [_incident_row(*incident) for incident in _INCIDENTS]

    def query_incidents(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        rows = [row for row in self._incidents if _in(window, row["created_time"]) and _severe(arguments, row)]
        status = arguments.get("status")
        if status is not None:
            rows = [row for row in rows if row["status"] in (("New", "Active") if status == "Open" else (status,))]
        title = str(arguments.get("title_contains", "")).lower().split()
        rows = [row for row in rows if all(word in str(row["title"]).lower() for word in title)]
        owner = str(arguments.get("owner", "")).lower()
        if owner == "unassigned":
            rows = [row for row in rows if not row["owner"]]
        else:
            rows = [row for row in rows if owner in str(row["owner"] or "").lower()]
        if "entity" in arguments:
            named = {
                alert["incident_number"]
                for alert in self._alerts
                if _names(alert, str(arguments["entity"]), arguments.get("entity_kind"))
            }
            rows = [row for row in rows if row["number"] in named]
        rows = _ordered(rows, str(arguments.get("order", "newest")), "created_time")
        summary = {
            "by_severity": _counts(rows, "severity"),
            "by_status": _counts(rows, "status"),
            "updated_in_window": 0,
        }
        return self._limited(rows, arguments, window, summary, "SecurityIncident", "CreatedTime")

    def get_incident_detail(self, arguments: JsonObject) -> QueryResult:
        reference = str(arguments["incident"]).lstrip("#").lower()
        for kind, key in (
            ("incident_number", "number"),
            ("provider_incident_id", "provider_incident_id"),
            ("incident_name", "incident_name"),
            ("url", "url"),
        ):
            found = [row for row in self._incidents if str(row[key]).lower() == reference]
            if found:
                matched_by = kind
                break
        else:
            matched_by = "alert_id"
            numbers = [alert["incident_number"] for alert in self._alerts if alert["alert_id"] == reference]
            found = [row for row in self._incidents if row["number"] in numbers]
        rows = [self._detail(row) for row in found]
        count = sum(int(row["alert_count"]) for row in found) if found else 0
        summary = {"matched_by": matched_by if found else None, "reference": reference, "alert_count": count}
        return rows_result(rows, summary=summary, table="SecurityIncident", time_column="TimeGenerated")

    def _detail(self, row: dict[str, Any]) -> dict[str, Any]:
        alerts = [alert for alert in self._alerts if alert["incident_number"] == row["number"]]
        entities: dict[str, dict[str, int]] = {}
        for alert in alerts:
            for entity in alert["entities"]:
                kind = entities.setdefault(entity["kind"], {})
                kind[entity["name"]] = kind.get(entity["name"], 0) + 1
        return {
            **row,
            "alerts": alerts,
            "alert_ids_without_row": [],
            "entities": {
                kind: [{"name": name, "alerts": count} for name, count in names.items()]
                for kind, names in entities.items()
            },
            "comments": [{"time": "2024-07-03T10:00:00Z", "author": "m.keller", "message": "Host is off the network."}]
            if row["number"] == 12
            else [],
            "tactics": sorted({tactic for alert in alerts for tactic in alert["tactics"]}),
            "techniques": sorted({technique for alert in alerts for technique in alert["techniques"]}),
            "timeline": [{"time": alert["time"], "event": f"Alert: {alert['name']}"} for alert in alerts],
        }

    def query_alerts(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        rows = self._alerts_in(arguments, window)
        for argument, key in (("name_contains", "name"), ("product", "product")):
            words = str(arguments.get(argument, "")).lower()
            rows = [row for row in rows if words in str(row[key]).lower()]
        if "status" in arguments:
            rows = [row for row in rows if row["status"] == arguments["status"]]
        if "entity" in arguments:
            rows = [row for row in rows if _names(row, str(arguments["entity"]), arguments.get("entity_kind"))]
        if "alert_id" in arguments:
            rows = [row for row in rows if row["alert_id"] == str(arguments["alert_id"]).lower()]
        if "incident" in arguments:
            rows = [row for row in rows if str(row["incident_number"]) == str(arguments["incident"])]
        if "tactic" in arguments:
            rows = [row for row in rows if str(arguments["tactic"]) in (*row["tactics"], *row["techniques"])]
        rows = _ordered(rows, str(arguments.get("order", "newest")), "time")
        summary = {
            name: _counts(rows, key)
            for name, key in (
                ("by_severity", "severity"),
                ("by_status", "status"),
                ("by_name", "name"),
                ("by_product", "product"),
            )
        }
        return self._limited(rows, arguments, window, summary, "SecurityAlert", "TimeGenerated")

    def get_alert_events(self, arguments: JsonObject) -> QueryResult:
        return alert_events(self._alerts, arguments)

    def get_alert_trend(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        rows = self._alerts_in(arguments, window)
        days = Counter(str(row["time"])[:10] for row in rows)
        buckets: list[dict[str, JsonValue]] = []
        for day, count in sorted(days.items()):
            severities = Counter(str(row["severity"]).lower() for row in rows if str(row["time"]).startswith(day))
            buckets.append(
                {"time": f"{day}T00:00:00Z", "count": count, **{s.lower(): severities[s.lower()] for s in SEVERITIES}}
            )
        peak = max(buckets, key=lambda bucket: int(str(bucket["count"])), default=None)
        summary: dict[str, JsonValue] = {
            "total": len(rows),
            "interval": arguments.get("interval", "1d"),
            "peak_time": None if peak is None else peak["time"],
            "peak_count": 0 if peak is None else peak["count"],
            "by_severity": _counts(rows, "severity"),
        }
        return self._covered(buckets, len(buckets), window, summary, "SecurityAlert", "TimeGenerated")

    def get_top_entities(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        alerts = self._alerts_in(arguments, window)
        seen: dict[str, list[dict[str, Any]]] = {}
        for alert in alerts:
            for name in {entity["name"] for entity in alert["entities"] if entity["kind"] == arguments["kind"]}:
                seen.setdefault(name, []).append(alert)
        rows = [
            {
                "kind": arguments["kind"],
                "name": name,
                "alerts": len(found),
                "high_alerts": sum(alert["severity"] == "High" for alert in found),
                "first_seen": min(str(alert["time"]) for alert in found),
                "last_seen": max(str(alert["time"]) for alert in found),
                "incident_numbers": sorted({alert["incident_number"] for alert in found}),
            }
            for name, found in sorted(seen.items(), key=lambda item: (-len(item[1]), item[0]))
        ]
        summary = {
            "distinct_entities": len(rows),
            "alerts_considered": len(alerts),
            "alerts_with_unreadable_entities": 0,
        }
        return self._limited(rows, arguments, window, summary, "SecurityAlert", "TimeGenerated")

    def get_threat_summary(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        incidents = [row for row in self._incidents if _in(window, row["created_time"])]
        alerts = self._alerts_in(arguments, window)
        open_ = [row for row in incidents if row["status"] != "Closed"]
        summary: dict[str, Any] = {
            "incidents": {
                "total": len(incidents),
                "open": len(open_),
                "by_severity": _counts(incidents, "severity"),
                "by_status": _counts(incidents, "status"),
            },
            "alerts": {"total": len(alerts), "by_severity": _counts(alerts, "severity")},
            "previous": None if window.start is None else {"incidents": 0, "alerts": 1},
            "top_alert_names": [
                {"name": name, "count": count} for name, count in Counter(row["name"] for row in alerts).most_common(5)
            ],
            "top_accounts": [],
            "top_hosts": [],
            "top_ips": [],
            "tactics": dict(Counter(tactic for row in alerts for tactic in row["tactics"])),
        }
        return self._limited(open_, arguments, window, summary, "SecurityIncident", "CreatedTime")

    def run_kql_query(self, arguments: JsonObject) -> QueryResult:
        rows: list[dict[str, JsonValue]] = [{"TimeGenerated": "2024-07-17T14:05:00Z", "Result": "one row"}]
        summary = {"template": arguments["template"], "description": "A scripted template."}
        return self._covered(rows, 1, self._window(arguments), summary, "SigninLogs", "TimeGenerated")

    def list_tables(self, _: JsonObject) -> QueryResult:
        rows: list[JsonObject] = [
            {
                "table": "SecurityAlert",
                "rows": len(self._alerts),
                "oldest": "2024-06-25T07:10:00Z",
                "newest": "2024-07-20T06:10:00Z",
            },
            {
                "table": "SecurityIncident",
                "rows": 21,
                "oldest": "2024-06-25T07:15:00Z",
                "newest": "2024-07-20T06:12:00Z",
            },
        ]
        return rows_result(rows, table="", time_column="")

    def _alerts_in(self, arguments: JsonObject, window: TimeWindow) -> list[dict[str, Any]]:
        return [row for row in self._alerts if _in(window, row["time"]) and _severe(arguments, row)]

    def _window(self, arguments: JsonObject) -> TimeWindow:
        start, end = arguments.get("start_time"), arguments.get("end_time")
        if start is not None or end is not None:
            return TimeWindow(
                None if start is None else parse_time(str(start)), None if end is None else parse_time(str(end))
            )
        if "time_window" in arguments:
            now = self._now()
            return TimeWindow(now - timedelta(hours=TIME_WINDOWS[str(arguments["time_window"])]), now)
        return TimeWindow()

    def _limited(
        self,
        rows: Sequence[dict[str, Any]],
        arguments: JsonObject,
        window: TimeWindow,
        summary: Mapping[str, Any],
        table: str,
        time_column: str,
    ) -> QueryResult:
        limit = int(str(arguments.get("limit", DEFAULT_LIMIT)))
        return self._covered(rows[:limit], len(rows), window, summary, table, time_column)

    def _covered(
        self,
        rows: Sequence[dict[str, Any]],
        total: int,
        window: TimeWindow,
        summary: Mapping[str, Any],
        table: str,
        time_column: str,
    ) -> QueryResult:
        times = [parse_time(str(row["created_time"])) for row in self._incidents]
        if table != "SecurityIncident":
            times = [parse_time(str(row["time"])) for row in self._alerts]
        return rows_result(
            rows,
            total=total,
            summary=summary,
            window=window,
            table=table,
            time_column=time_column,
            table_rows=len(times),
            oldest=min(times),
            newest=max(times),
        )


def _incident_row(
    number: int, defender: int, title: str, severity: str, status: str, created: str, owner: str | None
) -> dict[str, Any]:
    created_at = parse_time(created)
    return {
        "number": number,
        "title": title,
        "severity": severity,
        "status": status,
        "created_time": created,
        "updated_time": format_time(created_at + timedelta(hours=5)),
        "closed_time": format_time(created_at + timedelta(hours=5)) if status == "Closed" else None,
        "owner": owner,
        "classification": "BenignPositive" if status == "Closed" else None,
        "alert_count": sum(alert[6] == number for alert in _ALERTS),
        "provider_incident_id": str(defender),
        "incident_name": f"9a8b7c6d-1111-4222-8333-4444555566{number:02d}",
        "provider": "Microsoft XDR",
        "url": f"https://portal.azure.com/#asset/incidents/{number}",
        "description": None,
    }


def _alert_row(
    short: str,
    name: str,
    severity: str,
    status: str,
    time: str,
    product: str,
    incident: int,
    host: str,
    account: str,
    entities: tuple[tuple[str, str, dict[str, str]], ...],
    tactics: tuple[str, ...],
    techniques: tuple[str, ...],
) -> dict[str, Any]:
    listed: list[dict[str, Any]] = [{"kind": kind, "name": value, **more} for kind, value, more in entities]
    if host:
        listed.append({"kind": "host", "name": host, "host_name": host.partition(".")[0]})
    if account:
        listed.append({"kind": "account", "name": account})
    return {
        "alert_id": alert_id(short),
        "name": name,
        "severity": severity,
        "status": status,
        "time": time,
        "start_time": format_time(parse_time(time) - timedelta(minutes=5)),
        "end_time": time,
        "product": product,
        "provider": "MDATP",
        "tactics": list(tactics),
        "techniques": list(techniques),
        "compromised_entity": host or account,
        "incident_number": incident,
        "description": f"{name} was seen.",
        "entities": listed,
    }


def _in(window: TimeWindow, moment: Any) -> bool:
    when = parse_time(str(moment))
    return (window.start is None or when >= window.start) and (window.end is None or when < window.end)


def _severe(arguments: JsonObject, row: Mapping[str, Any]) -> bool:
    if "severity" in arguments:
        return bool(row["severity"] == arguments["severity"])
    least = str(arguments.get("min_severity", SEVERITIES[0]))
    return SEVERITIES.index(str(row["severity"])) >= SEVERITIES.index(least)


def _names(row: Mapping[str, Any], value: str, kind: Any) -> bool:
    value = value.lower()
    for entity in row["entities"]:
        if kind is not None and entity["kind"] != kind:
            continue
        texts = [str(text).lower() for text in entity.values()]
        names = [*texts, *(text.rpartition("\\")[2] for text in texts), *(text.partition("@")[0] for text in texts)]
        if value in names:
            return True
    return False


def _counts(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, JsonValue]:
    return dict(Counter(str(row[key]) for row in rows))


def _ordered(rows: list[dict[str, Any]], order: str, time: str) -> list[dict[str, Any]]:
    rows = sorted(rows, key=lambda row: str(row[time]), reverse=order != "oldest")
    if order == "severity":
        rows.sort(key=lambda row: -SEVERITIES.index(str(row["severity"])))
    return rows
