"""A handful of made-up incidents and alerts (`small_estate_rows`) behind a `ScriptedGateway`.

It filters by what an analyst's questions filter by, so that a test can compare answers with what the estate holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.estate_events import alert_events
from tests.support.small_estate_rows import ALERTS, INCIDENTS
from tests.support.small_estate_templates import TEMPLATES

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.query_results import QueryResult, TimeWindow, parse_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, SEVERITIES, TIME_WINDOWS
from sentinel_rag_testing.scripted_gateway import Scripted, ScriptedGateway, rows_result

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)
"""The estate's "now"; its newest rows are some days old, as in an export."""


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
        "list_kql_templates": lambda _: rows_result(TEMPLATES, table="", time_column=""),
        "list_tables": estate.list_tables,
    }
    return ScriptedGateway({**answers, **replaced})


class _Estate:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._alerts = [alert.row() for alert in ALERTS]
        self._incidents = [incident.row() for incident in INCIDENTS]

    def query_incidents(self, arguments: JsonObject) -> QueryResult:
        window = self._window(arguments)
        rows = [row for row in self._incidents if _in(window, row["created_time"]) and _severe(arguments, row)]
        status = arguments.get("status")
        if status is not None:
            rows = [row for row in rows if row["status"] in (("New", "Active") if status == "Open" else (status,))]
        title = str(arguments.get("title_contains", "")).lower().split()
        rows = [row for row in rows if all(word in str(row["title"]).lower() for word in title)]
        if "classification" in arguments:
            rows = [row for row in rows if row["classification"] == arguments["classification"]]
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
        first = int(str(arguments.get("offset", 0)))
        return self._covered(rows[first : first + limit], len(rows), window, summary, table, time_column)

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
