"""The tool describe_table: the columns of one table, with what its newest rows hold in them.

A name that is guessed is the commonest fault of a query written by a model, so names and types come from the
workspace's own schema. How often a column is filled is counted over a few of the newest rows, which costs next to
nothing; examples are values of the logs and come only when they are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult, TimeWindow
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.kql_literals import string_literal
from sentinel_rag.sentinel.log_tables import LogsTable, json_cell
from sentinel_rag.sentinel.results import Stopwatch, build_result, one_line
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.workspace_view import WorkspaceView

ROWS_LOOKED_AT = 100
LONGEST_EXAMPLE = 80
_TIME_COLUMN = "TimeGenerated"
_NEWEST = timedelta(days=1)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COLUMNS = (Column("column", "string"), Column("type", "string"), Column("filled", "long"))
_EXAMPLE = Column("example", "string")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


async def describe_table(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """One row for each column, those that hold values first."""
    stopwatch = Stopwatch()
    name, columns = await view.schema.table(arguments["table"])
    source = name if _PLAIN_NAME.fullmatch(name) else f"[{string_literal(name)}]"
    time_column = _TIME_COLUMN if _TIME_COLUMN in columns else ""
    statistics = await view.statistics.read(source, time_column) if time_column else TableStatistics()
    sample = await _newest_rows(view, source, statistics)
    with_examples = bool(arguments.get("examples", False))
    rows = [_row(column, kql_type, sample, with_examples) for column, kql_type in columns.items()]
    rows.sort(key=lambda row: not row["filled"])
    asked = arguments["table"].strip()
    notes = [] if asked == name else [f"The table's name is {name}; names of tables and columns are case sensitive."]
    if statistics.rows == 0:
        notes.append(f"{name} holds no rows, so no column is filled.")
    elif not sample.rows:
        notes.append(f"No row of {name} was looked at, so nothing is known of what its columns hold.")
    return build_result(
        (*_COLUMNS, _EXAMPLE) if with_examples else _COLUMNS,
        rows,
        workspace=view.logs.name,
        tables=(name,),
        window=TimeWindow(),
        time_column=time_column,
        rows_total=len(rows),
        answers=(sample,),
        statistics=statistics,
        stopwatch=stopwatch,
        summary={
            "table": name,
            "columns": len(rows),
            "columns_filled": sum(1 for row in rows if row["filled"]),
            "rows_looked_at": len(sample.rows),
        },
        notes=notes,
    )


async def _newest_rows(view: WorkspaceView, source: str, statistics: TableStatistics) -> LogsTable:
    """Some rows of the table's last day; none where they cannot be read, because they only illustrate the schema."""
    kql = f"{source}\n| take {ROWS_LOOKED_AT}"
    if statistics.rows == 0:
        return LogsTable((), (), kql)
    newest = statistics.newest
    span = None if newest is None else TimeWindow(newest - _NEWEST, newest + timedelta(seconds=1))
    try:
        return await view.logs.query(kql, span)
    except QueryFailedError:
        return LogsTable((), (), kql)


def _row(column: str, kql_type: str, sample: LogsTable, with_example: bool) -> dict[str, JsonValue]:
    values: Sequence[Any] = ()
    if column in sample.names:
        place = sample.names.index(column)
        values = [row[place] for row in sample.rows if row[place] not in _EMPTY]
    row: dict[str, JsonValue] = {"column": column, "type": kql_type, "filled": len(values)}
    if with_example:
        row["example"] = _shown(values[0]) if values else None
    return row


def _shown(value: Any) -> str:
    cell = json_cell(value)
    return one_line(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False), LONGEST_EXAMPLE)
