"""The tool search_logs: where a text occurs, in any column of every table that the workspace has.

Two reads: counts over all tables, which also say which were looked through, then the newest rows of those that hold it.
A row is told by its table, the columns that hold the text, and who, where and what it is about; never whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.known_tables import KNOWN_TABLES
from sentinel_rag.sentinel.kql_literals import string_literal
from sentinel_rag.sentinel.log_tables import json_cell
from sentinel_rag.sentinel.results import Stopwatch, build_result, one_line
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.time_windows import window_from, within
from sentinel_rag.sentinel.workspace_tables import of_each_table, other_tables, statistics_of
from sentinel_rag.sentinel.workspace_view import WorkspaceView

SHORTEST_TEXT = 3
_NOT_SEARCHED = frozenset({"LAQueryLogs", "Operation", "SentinelAudit", "SentinelHealth", "Usage"})
"""Tables about the workspace itself; LAQueryLogs would find the search."""
_MOST_CELLS, _LONGEST_CELL = 3, 240
_COLUMNS = (
    Column("table", "string"),
    Column("time", "datetime"),
    Column("account", "string"),
    Column("host", "string"),
    Column("address", "string"),
    Column("activity", "string"),
    Column("outcome", "string"),
    Column("found_in", "dynamic"),
    Column("found", "string"),
)
_ABOUT: dict[str, tuple[str, ...]] = {
    "account": (
        *("UserPrincipalName", "AccountUpn", "AccountName", "TargetUserName", "Account", "UserId", "Caller"),
        *("RecipientEmailAddress", "InitiatingProcessAccountName", "SourceUserName", "UserName"),
    ),
    "host": ("DeviceName", "Computer", "HostName", "SourceHostName"),
    "address": (
        *("IPAddress", "RemoteIP", "ClientIP", "SourceIP", "CallerIpAddress", "IpAddress", "IPAddress_string"),
        *("SenderIPv4", "HostIP"),
    ),
    "activity": (
        *("ActionType", "Operation", "OperationNameValue", "AppDisplayName", "OperationName", "DeliveryAction"),
        *("DeviceAction", "AlertName", "Title", "Activity", "ProcessCommandLine", "CommandLine", "FileName", "EventID"),
    ),
    "outcome": ("ResultType", "ResultStatus", "ActivityStatusValue", "Result", "Status"),
}
_TYPE_BEHIND = re.compile(r"_(?:string|dynamic|guid|long|int|real|bool|datetime)$")
"""What a union adds to a column that has several types."""


async def search_logs(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Rows that hold `text` as whole words, newest first, with counts of all by table."""
    stopwatch = Stopwatch()
    text = arguments["text"].strip()
    if sum(map(str.isalnum, text)) < SHORTEST_TEXT:
        raise invalid_argument("text", f"text must have at least {SHORTEST_TEXT} letters or digits.")
    chosen = window_from(arguments, view.clock())
    tables = await _tables(view, arguments.get("table"))
    counts = await of_each_table(view, tables, partial(_counted, text, chosen.window))
    found = {record["TableName"]: record for answer in counts for record in answer.records() if record["Rows"]}
    page = arguments["offset"] + arguments["limit"]
    answers = await of_each_table(view, tuple(found), partial(_holding, text, chosen.window, page)) if found else ()
    records = sorted(
        (record for answer in answers for record in answer.records()),
        key=lambda record: (-record["TimeGenerated"].timestamp(), record["TableName"]),
    )[arguments["offset"] : page]
    ranked = sorted(found.values(), key=lambda record: (-record["Rows"], record["TableName"]))
    return build_result(
        _COLUMNS,
        [_row(record, text) for record in records],
        workspace=view.logs.name,
        # A bound on rows of a table counts by these: of a search that finds, only what it tells rows of.
        tables=tuple(dict.fromkeys(record["TableName"] for record in records)) or tables,
        window=chosen.window,
        time_column="TimeGenerated",
        rows_total=sum(record["Rows"] for record in found.values()),
        answers=(*counts, *answers),
        statistics=TableStatistics() if found else await statistics_of(view, tables),
        stopwatch=stopwatch,
        summary={
            "text": text,
            "by_table": {record["TableName"]: record["Rows"] for record in ranked},
            "oldest": {record["TableName"]: json_cell(record["Oldest"]) for record in ranked},
            "newest": {record["TableName"]: json_cell(record["Newest"]) for record in ranked},
            "tables_found": len(found),
            "tables_searched": len(tables),
            # Where it is told that nothing was found, which they are is half of the answer.
            **({} if found else {"searched": list(tables)}),
        },
        notes=(
            *chosen.notes,
            f"Looked for as whole words in every column of {len(tables)} tables; part of a word does not count.",
        ),
    )


async def _tables(view: WorkspaceView, named: str | None) -> tuple[str, ...]:
    """The tables to look through: the named one, or all that the schema has."""
    if named is not None:
        return ((await view.schema.table(named))[0],)
    schema = await view.schema.read()
    known = tuple(name for name in KNOWN_TABLES if name in schema or not schema)
    return tuple(name for name in (*known, *await other_tables(view)) if name not in _NOT_SEARCHED)


def _matching(text: str, window: TimeWindow, table: str) -> str:
    return f"{table}\n| where {within('TimeGenerated', window)}\n| where * has {string_literal(text)}"


def _counted(text: str, window: TimeWindow, table: str) -> str:
    return (
        f"{_matching(text, window, table)}\n| summarize Rows = count(), Oldest = min(TimeGenerated), "
        f'Newest = max(TimeGenerated)\n| extend TableName = "{table}"'
    )


def _holding(text: str, window: TimeWindow, most: int, table: str) -> str:
    return f'{_matching(text, window, table)}\n| top {most} by TimeGenerated desc\n| extend TableName = "{table}"'


def _row(record: Mapping[str, Any], text: str) -> dict[str, JsonValue]:
    cells = {
        _TYPE_BEHIND.sub("", name): shown
        for name, value in record.items()
        if name not in ("TableName", "Type") and (shown := _text(value)) and text.casefold() in shown.casefold()
    }
    told = [f"{name}: {_around(cell, text)}" for name, cell in list(cells.items())[:_MOST_CELLS]]
    return {
        "table": record["TableName"],
        "time": json_cell(record["TimeGenerated"]),
        **{about: _first(record, names) for about, names in _ABOUT.items()},
        "found_in": list(cells),
        "found": "; ".join(told) or None,
    }


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((one_line(shown, _LONGEST_CELL) for name in names if (shown := _text(record.get(name)))), None)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    told = json_cell(value)
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, default=str)


def _around(cell: str, text: str) -> str:
    """The cell, or the part of a long one that holds the text."""
    start = max(0, cell.casefold().find(text.casefold()) - _LONGEST_CELL // 3)
    return ("…" if start else "") + one_line(cell[start:], _LONGEST_CELL)
