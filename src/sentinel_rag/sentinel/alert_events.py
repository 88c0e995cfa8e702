"""The tool get_alert_events: the raw rows behind an alert, by the query that its rule left in it.

The rows come from the query (`stored_query`), or from the alert itself where it carries them.
An alert without a query, or with one that may not or cannot run, is answered with the evidence that there is instead.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow, format_time
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.alerts import newest_alerts
from sentinel_rag.sentinel.alerts.alerts import Alert, alert_conditions, custom_details, extended_properties
from sentinel_rag.sentinel.alerts.stored_query import (
    WAIT_S,
    AlertQuery,
    QueryNotRun,
    QueryRan,
    StoredQueryRunner,
    count_notes,
    stored_query,
)
from sentinel_rag.sentinel.entities.entities import distinct_entities, full_entities
from sentinel_rag.sentinel.incidents.incidents import incident_links
from sentinel_rag.sentinel.logs.kql_literals import is_plain
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, json_cell
from sentinel_rag.sentinel.response_bodies import load_json
from sentinel_rag.sentinel.templates.template_queries import json_rows
from sentinel_rag.sentinel.workspace_tables import EMPTY
from sentinel_rag.sentinel.workspace_view import TableStatistics, WorkspaceView, build_result, one_line

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import KqlGuard


MOST_ENTITIES = 25

_ENDPOINT = "the tables DeviceProcessEvents, DeviceNetworkEvents and DeviceFileEvents"
_IDENTITY = "the tables IdentityLogonEvents, IdentityQueryEvents and IdentityDirectoryEvents"
_CLOUD = "the tables AzureActivity and SecurityEvent"
_XDR = "the tables AlertEvidence and those of the products it joins"
_PROCESSES = ("host", "process_on_host", "host")
_WHERE: tuple[tuple[str, str, tuple[str, str, str] | None], ...] = (
    ("defender advanced threat", _ENDPOINT, _PROCESSES),
    ("defender for endpoint", _ENDPOINT, _PROCESSES),
    ("azure advanced threat", _IDENTITY, None),
    ("defender for identity", _IDENTITY, None),
    ("office 365", "the tables EmailEvents, EmailUrlInfo and UrlClickEvents", None),
    (
        "identity protection",
        "the tables SigninLogs and AADUserRiskEvents",
        ("account", "user_signin_history", "user"),
    ),
    (
        "cloud app security",
        "the tables CloudAppEvents and OfficeActivity",
        ("account", "office_activity_by_user", "user"),
    ),
    ("security center", _CLOUD, ("host", "windows_processes_on_host", "host")),
    ("defender for cloud", _CLOUD, ("host", "windows_processes_on_host", "host")),
    ("365 defender", _XDR, _PROCESSES),
    ("defender xdr", _XDR, _PROCESSES),
)
"""Where the rows of a product's alerts lie if they are collected, by a part of the product's name; and the template
that reads them, with the kind of entity that its parameter is."""
_SEARCHED = ("filehash", "ip", "host", "account", "mailbox", "dns")
"""Kinds of entities that a search of all logs finds by their names, the one that tells most first."""
_AROUND = timedelta(hours=1)


def evidence_of(alert: Alert, incident_number: int | None) -> dict[str, JsonValue]:
    """The summary's fields that every answer about one alert's events has."""
    record = alert.record
    entities = distinct_entities(alert.entities)
    return {
        "alert_id": alert.alert_id,
        "vendor_id": record["VendorOriginalId"] or None,
        "alert_name": alert.name,
        "severity": record["AlertSeverity"] or None,
        "product": record["ProductName"] or None,
        "incident_number": incident_number,
        "url": alert.url or None,
        "start_time": json_cell(record["StartTime"]),
        "end_time": json_cell(record["EndTime"]),
        "row_time": alert.row_time,
        "entities": full_entities(entities, MOST_ENTITIES),
        "entity_count": len(entities),
        "custom_details": custom_details(extended_properties(record["ExtendedProperties"])),
    }


def without_query(alert: Alert) -> CodedNote:
    """For the reader of an alert that no analytic rule of this workspace raised, or whose row lost its properties."""
    product = str(alert.record["ProductName"] or "its product")
    properties = extended_properties(alert.record["ExtendedProperties"])
    if properties is None and str(alert.record["ExtendedProperties"] or "").strip():
        return note("properties_unreadable")
    _, where, template = next((each for each in _WHERE if each[0] in product.casefold()), ("", "", None))
    call = _next_call(alert, template)
    if "sentinel" in product.casefold():  # scheduled rules store their query, those of Fusion and of Microsoft do not
        return note("no_query_of_rule", where=where, call=call)
    return note("no_query_of_product", product=product, where=where, call=call)


def _next_call(alert: Alert, template: tuple[str, str, str] | None) -> str:
    """The call that reads the rows around the alert, arguments filled in; nothing where no entity has a plain name."""
    named = {
        entity.kind: entity.name for entity in reversed(distinct_entities(alert.entities)) if is_plain(entity.name)
    }
    times = (alert.record["StartTime"] or alert.record["TimeGenerated"], alert.record["EndTime"])
    start, end = times[0] - _AROUND, (times[1] or times[0]) + _AROUND
    window = {"start_time": format_time(start), "end_time": format_time(end)}
    if template is not None and template[0] in named:
        parameters = {template[2]: named[template[0]]}
        call = ("run_kql_query", {"template": template[1], "parameters": parameters, **window})
    else:
        kind = next((kind for kind in _SEARCHED if kind in named), "")
        if not kind:
            return ""
        call = ("search_logs", {"text": named[kind], **window})
    return f"{call[0]} with {json.dumps(call[1], ensure_ascii=False)}"


# The packed text is JSON, compressed and in base64, inside a `datatable`. It is read here and nothing is run for it, so
# that it is there when retention is over, and where a workspace's engine cannot unpack it. Whoever writes the alert
# writes it: it is bounded and it is data.
MOST_BYTES = 1_000_000
MOST_EVENTS = 100
_PACKED = re.compile(
    r"datatable\s*\(\s*\w+\s*:\s*string\s*\)\s*\[((?:\s*(?:'[A-Za-z0-9+/=]*'|\"[A-Za-z0-9+/=]*\")\s*,?)+)\]"
)
_ITEM = re.compile(r"['\"]([A-Za-z0-9+/=]*)['\"]")
_UNPACKS = "zlib_decompress_from_base64_string"


def recorded_events(query: str) -> list[dict[str, JsonValue]]:
    """The rows that `query` carries; none where it carries none that can be read."""
    packed = _PACKED.search(query) if _UNPACKS in query else None
    if packed is None:
        return []
    rows: list[dict[str, JsonValue]] = []
    room = MOST_BYTES
    for item in _ITEM.findall(packed[1])[:MOST_EVENTS]:
        text = _unpacked(item, room)
        room -= len(text)
        try:
            value = load_json(text)
        except ValueError:
            continue
        if isinstance(value, Mapping):
            rows.append({str(name): cell for name, cell in value.items()})
    return rows


def columns_of(rows: list[dict[str, JsonValue]]) -> tuple[Column, ...]:
    """Every key of the rows in its first order; a type where all values agree on one, else dynamic."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update(() if value is None else (_kind(value),))
    return tuple(Column(name, found.pop() if len(found) == 1 else "dynamic") for name, found in kinds.items())


def _unpacked(packed: str, most: int) -> bytes:
    """At most `most` bytes; empty for what is no compressed text or is longer."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(base64.b64decode(packed, validate=True), max(most, 1))
    except (binascii.Error, zlib.error, ValueError):
        return b""
    return text if unpacker.eof else b""


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "long"
        case float():
            return "real"
        case str():
            return "string"
        case _:
            return "dynamic"


LONGEST_SHOWN_QUERY = 4000
MOST_PROBLEMS = 5


class AlertEvents:
    """The tool with what its queries need; the parameters are those of `StoredQueryRunner`."""

    def __init__(
        self,
        make_guard: Callable[[], KqlGuard] | None = None,
        *,
        allowed_tables: frozenset[str] | None = None,
        wait_s: int = WAIT_S,
    ) -> None:
        self._queries = StoredQueryRunner(make_guard, allowed_tables=allowed_tables, wait_s=wait_s)

    async def close(self) -> None:
        """End what the queries started."""
        await self._queries.close()

    async def get_alert_events(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """Rows in the query's own columns; shapes in `contracts.tool_schemas`. Raises QueryFailedError."""
        told = _Telling(arguments["limit"])
        found = await view.logs.query(_alerts_with_id(arguments))
        alerts = [Alert.from_record(record) for record in found.records()]
        if not alerts:
            return told.nothing({}, _no_alert(arguments["alert_id"]), answer=found)
        alert = alerts[0]
        if len(alerts) > 1:
            told.notes.append(note("several_alerts_of_one_id", count=len(alerts)))
        links = await incident_links(view, (alert.alert_id,))
        evidence = evidence_of(alert, links.number_of(alert.alert_id))
        stored = stored_query(alert.record)
        if stored is None:
            return told.nothing({**evidence, "ran": False, "why_not": "no_query"}, without_query(alert), answer=found)
        evidence |= _of_query(stored)
        carried = recorded_events(stored.text)
        if carried:
            return told.carried(evidence, stored, carried)
        match await self._queries.run(view, stored, arguments["limit"]):
            case QueryNotRun() as refused:
                return told.not_run(evidence, stored, refused, answer=found)
            case QueryRan() as ran:
                return told.ran(evidence, stored, ran)


class _Telling:
    """Makes the answer about one alert, whichever it is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.notes: list[CodedNote] = []

    def nothing(self, summary: Mapping[str, JsonValue], sentence: CodedNote, *, answer: LogsTable) -> QueryResult:
        self.notes.append(sentence)
        return self._result(summary, answer=answer, tables=(newest_alerts.ALERT_TABLE,), window=TimeWindow())

    def not_run(
        self, evidence: dict[str, JsonValue], stored: AlertQuery, refused: QueryNotRun, *, answer: LogsTable
    ) -> QueryResult:
        self.notes.append(refused.told)
        problems: list[JsonValue] = [problem.to_dict() for problem in refused.problems[:MOST_PROBLEMS]]
        summary = {**evidence, "ran": False, "why_not": refused.why, "problems": problems}
        return self._result(summary, answer=answer, tables=refused.tables, window=stored.window)

    def carried(
        self, evidence: dict[str, JsonValue], stored: AlertQuery, events: list[dict[str, JsonValue]]
    ) -> QueryResult:
        self.notes.append(note("events_carried"))
        columns = columns_of(events)
        rows = tuple(tuple(event.get(column.name) for column in columns) for event in events)
        table = LogsTable(columns, rows, stored.text)
        summary = {**evidence, "ran": True, "why_not": None, "source": "alert", "events_found": len(events)}
        tables = (newest_alerts.ALERT_TABLE,)
        return self._result(summary, rows=table, total=len(events), tables=tables, window=stored.window)

    def ran(self, evidence: dict[str, JsonValue], stored: AlertQuery, ran: QueryRan) -> QueryResult:
        if ran.whole_rule:
            self.notes.append(note("whole_rule_ran"))
        if ran.parser == "fallback":
            self.notes.append(note("stored_query_checked_by_fallback"))
        first = ran.tables[0] if ran.tables else ""
        self.notes += count_notes(stored, ran.total, ran.late, first, ran.statistics)
        summary: dict[str, JsonValue] = {
            **evidence,
            "ran": True,
            "why_not": None,
            "source": "query",
            "parser": ran.parser,
            "events_found": ran.total,
            "late_rows": ran.late,
        }
        return self._result(
            summary, rows=ran.rows, total=ran.total, tables=ran.tables, window=stored.window, statistics=ran.statistics
        )

    def _result(
        self,
        summary: Mapping[str, JsonValue],
        *,
        tables: Sequence[str],
        window: TimeWindow,
        rows: LogsTable | None = None,
        answer: LogsTable | None = None,
        total: int | None = 0,
        statistics: TableStatistics | None = None,
    ) -> QueryResult:
        shown = rows or answer
        columns, told = () if rows is None else rows.columns, () if rows is None else json_rows(rows, self._limit)
        held = [column for column in columns if any(row[column.name] not in EMPTY for row in told)]
        if told and len(held) < len(columns):
            self.notes.append(note("columns_empty", count=len(columns) - len(held), rows=len(told), advice=None))
            columns, told = tuple(held), [{column.name: row[column.name] for column in held} for row in told]
        return build_result(
            columns,
            told,
            tables=tuple(tables),
            window=window,
            time_column=newest_alerts.ALERT_TIME,
            rows_total=total,
            answers=() if shown is None else (shown,),
            statistics=statistics or TableStatistics(),
            summary=summary,
            notes=self.notes,
        )


def _alerts_with_id(arguments: Mapping[str, Any]) -> str:
    base = newest_alerts.newest_alerts(alert_conditions({"alert_id": arguments["alert_id"]}))
    return newest_alerts.listed(base, TimeWindow(), newest_alerts.FIRST_ROW, "newest", 10)


def _no_alert(alert_id: str) -> CodedNote:
    return note("alert_unknown", alert_id=alert_id[:200], forms="SystemAlertId, VendorOriginalId or portal URL")


def _of_query(stored: AlertQuery) -> dict[str, JsonValue]:
    """What the alert says of its query, as data."""
    return {
        "rule_name": one_line(stored.rule_name, 300) or None,
        "query": stored.text[:LONGEST_SHOWN_QUERY],
        "query_cut": len(stored.text) > LONGEST_SHOWN_QUERY,
        "window": {**stored.window.to_dict()},
        "window_told_by": stored.told_by,
        "events_told": stored.event_count,
    }
