"""The tool list_tables: what a workspace holds, for an analyst who asks what can be asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.known_tables import KNOWN_TABLES
from sentinel_rag.sentinel.log_tables import LogsTable, json_cell
from sentinel_rag.sentinel.results import Stopwatch, build_result, lower_bound
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.workspace_view import WorkspaceView

_MEASURES = "summarize Rows = count(), Oldest = min(TimeGenerated), Newest = max(TimeGenerated)"


def _of_one_table(table: str) -> str:
    return f'{table} | {_MEASURES} | extend TableName = "{table}"'


_BILLED = "Usage | distinct DataType"
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,103}")
_MOST_OTHERS = 100
"""So many tables that are neither known nor custom are counted as they stand in the schema. Azure's can tell of a
thousand; then those that it bills for are."""
_COLUMNS = (
    Column("table", "string"),
    Column("rows", "long"),
    Column("oldest", "datetime"),
    Column("newest", "datetime"),
)


async def list_tables(view: WorkspaceView, _: Mapping[str, Any]) -> QueryResult:
    """One row for each table that holds rows, the largest first; those that nobody here knows included."""
    stopwatch = Stopwatch()
    answers = await of_each_table(view, (*KNOWN_TABLES, *await other_tables(view)), _of_one_table)
    records = [record for answer in answers for record in answer.records() if record["Rows"]]
    records.sort(key=lambda record: (-record["Rows"], record["TableName"]))
    rows: list[dict[str, JsonValue]] = [
        {
            "table": record["TableName"],
            "rows": record["Rows"],
            "oldest": json_cell(record["Oldest"]),
            "newest": json_cell(record["Newest"]),
        }
        for record in records
    ]
    whole = not any(answer.partial for answer in answers)
    statistics = _over_all(answers)
    return build_result(
        _COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=tuple(record["TableName"] for record in records),
        window=TimeWindow(),
        time_column="TimeGenerated",
        rows_total=len(rows) if whole else None,
        answers=answers,
        statistics=statistics,
        stopwatch=stopwatch,
        summary={"tables": len(rows), "rows": statistics.rows} if whole else lower_bound(len(rows), 0),
        notes=() if rows or not whole else ("The workspace holds no rows in any table.",),
    )


async def statistics_of(view: WorkspaceView, tables: tuple[str, ...]) -> TableStatistics:
    """How many rows some tables hold together, and the times of the oldest and the newest."""
    return _over_all(await of_each_table(view, tables, _of_one_table))


def _over_all(answers: Iterable[LogsTable]) -> TableStatistics:
    answers = tuple(answers)
    records = [record for answer in answers for record in answer.records() if record["Rows"]]
    oldest = (record["Oldest"] for record in records if record["Oldest"] is not None)
    newest = (record["Newest"] for record in records if record["Newest"] is not None)
    whole = not any(answer.partial for answer in answers)
    rows = sum(record["Rows"] for record in records) if whole else None
    return TableStatistics(rows, min(oldest, default=None), max(newest, default=None))


async def other_tables(view: WorkspaceView) -> tuple[str, ...]:
    """The tables beside the known ones, from the schema; a service that tells no schema (404) has none that could be
    named."""
    try:
        schema = await view.schema.read(anew=True)
    except QueryFailedError as failure:
        if failure.error.code is not QueryErrorCode.WORKSPACE_NOT_FOUND:
            raise
        return ()
    named = sorted(name for name in schema if name not in KNOWN_TABLES and _TABLE.fullmatch(name))
    custom = [name for name in named if name.endswith("_CL")]
    others = [name for name in named if name not in custom and "TimeGenerated" in schema[name]]
    if len(others) > _MOST_OTHERS:
        billed = {record["DataType"] for record in (await _unless_rejected(view, _BILLED)).records()}
        others = [name for name in others if name in billed]
    return (*custom, *others)


async def of_each_table(
    view: WorkspaceView, tables: tuple[str, ...], kql: Callable[[str], str]
) -> tuple[LogsTable, ...]:
    """The rows of one query over each table, all in one; table by table where the workspace rejects the union for one
    table's sake. Not `union *`: tables differ in the case of column names, and isfuzzy lets a workspace lack some."""
    try:
        return (await view.logs.query("union isfuzzy = true " + ",\n  ".join(f"({kql(table)})" for table in tables)),)
    except QueryFailedError as failure:
        if failure.error.code is not QueryErrorCode.QUERY_REJECTED:
            raise
    return await together(*(partial(_unless_rejected, view, kql(table)) for table in tables))


async def _unless_rejected(view: WorkspaceView, kql: str) -> LogsTable:
    """The answer; nothing where the workspace rejects the query, which is how it says that it has no such table."""
    try:
        return await view.logs.query(kql)
    except QueryFailedError as failure:
        if failure.error.code is not QueryErrorCode.QUERY_REJECTED:
            raise
        return LogsTable((), (), kql)
