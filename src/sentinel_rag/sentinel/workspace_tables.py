"""The tools over tables: which there are, their columns, a search of words in all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import (
    Column,
    QueryErrorCode,
    QueryFailedError,
    QueryResult,
    TimeWindow,
    invalid_argument,
)
from sentinel_rag.language.notes import note
from sentinel_rag.language.text import toml_beside
from sentinel_rag.sentinel.arguments import window_from, within
from sentinel_rag.sentinel.logs.kql_literals import string_literal
from sentinel_rag.sentinel.logs.log_analytics import LogsTable, json_cell
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.workspace_view import TableStatistics, WorkspaceView, build_result, lower_bound, one_line

_DATA = toml_beside(__package__, "workspace_tables.toml")
KNOWN_TABLES = tuple(_DATA["known"].split())


_MEASURES = "summarize Rows = count(), Oldest = min(TimeGenerated), Newest = max(TimeGenerated)"


def _of_one_table(table: str) -> str:
    return f'{table} | {_MEASURES} | extend TableName = "{table}"'


_BILLED = "Usage | distinct DataType"
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,103}")
_MOST_OTHERS = 100
"""So many tables that are neither known nor custom are counted as they stand in the schema. Azure's can tell of a
thousand; then those that it bills for are."""
_TABLE_COLUMNS = (
    Column("table", "string"),
    Column("rows", "long"),
    Column("oldest", "datetime"),
    Column("newest", "datetime"),
)


async def list_tables(view: WorkspaceView, _: Mapping[str, Any]) -> QueryResult:
    """One row for each table that holds rows, the largest first; those that nobody here knows included."""
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
        _TABLE_COLUMNS,
        rows,
        tables=tuple(record["TableName"] for record in records),
        window=TimeWindow(),
        time_column="TimeGenerated",
        rows_total=len(rows) if whole else None,
        answers=answers,
        statistics=statistics,
        summary={"tables": len(rows), "rows": statistics.rows} if whole else lower_bound(len(rows), 0),
        notes=() if rows or not whole else (note("workspace_empty"),),
        shown_query=f"{answers[0].query}\n| where Rows > 0" if len(answers) == 1 else "",
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


# A name that is guessed is the commonest fault of a query written by a model, so names and types come from the
# workspace's own schema. How often a column is filled is counted over a few of the newest rows, which costs next to
# nothing; examples are values of the logs and come only when they are asked for.
ROWS_LOOKED_AT = 100
LONGEST_EXAMPLE = 80
_TIME_COLUMN = "TimeGenerated"
_NEWEST = timedelta(days=1)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COLUMN_COLUMNS = (Column("column", "string"), Column("type", "string"), Column("filled", "long"))
_EXAMPLE = Column("example", "string")
EMPTY: tuple[Any, ...] = (None, "", [], {})


async def describe_table(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """One row for each column that a looked at row fills; for every column with examples, or where no row was."""
    name, columns = await view.schema.table(arguments["table"])
    source = name if _PLAIN_NAME.fullmatch(name) else f"[{string_literal(name)}]"
    time_column = _TIME_COLUMN if _TIME_COLUMN in columns else ""
    statistics = await view.statistics.read(source, time_column) if time_column else TableStatistics()
    sample = await _newest_rows(view, source, statistics)
    with_examples = bool(arguments.get("examples", False))
    rows = [_column_row(column, kql_type, sample, with_examples) for column, kql_type in columns.items()]
    rows.sort(key=lambda row: not row["filled"])
    filled = [row for row in rows if row["filled"]]
    told = rows if with_examples or not filled else filled
    asked = arguments["table"].strip()
    notes = [] if asked == name else [note("table_spelled", table=name)]
    if statistics.rows == 0:
        notes.append(note("table_empty", table=name))
    elif not sample.rows:
        notes.append(note("table_not_looked_at", table=name))
    elif len(told) < len(rows):
        advice = "examples: true lists every column."
        notes.append(note("columns_empty", count=len(rows) - len(told), rows=len(sample.rows), advice=advice))
    return build_result(
        (*_COLUMN_COLUMNS, _EXAMPLE) if with_examples else _COLUMN_COLUMNS,
        told,
        tables=(name,),
        window=TimeWindow(),
        time_column=time_column,
        rows_total=len(told),
        answers=(sample,),
        statistics=statistics,
        summary={
            "table": name,
            "columns": len(rows),
            "columns_filled": len(filled),
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


def _column_row(column: str, kql_type: str, sample: LogsTable, with_example: bool) -> dict[str, JsonValue]:
    values: Sequence[Any] = ()
    if column in sample.names:
        place = sample.names.index(column)
        values = [row[place] for row in sample.rows if row[place] not in EMPTY]
    row: dict[str, JsonValue] = {"column": column, "type": kql_type, "filled": len(values)}
    if with_example:
        row["example"] = _shown(values[0]) if values else None
    return row


def _shown(value: Any) -> str:
    cell = json_cell(value)
    return one_line(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False), LONGEST_EXAMPLE)


# The tool search_logs: where a text occurs, in any column of every table that the workspace has. Two reads: counts over
# all tables, which also say which were looked through, then the newest rows of those that hold it. A row is told by its
# table, the columns that hold the text, and who, where and what it is about; never whole.
SHORTEST_TEXT = 3
_NOT_SEARCHED = frozenset({"LAQueryLogs", "Operation", "SentinelAudit", "SentinelHealth", "Usage"})
"""Tables about the workspace itself; LAQueryLogs would find the search."""
_MOST_CELLS, _LONGEST_CELL = 3, 240
_FOUND_COLUMNS = (
    Column("table", "string"),
    Column("time", "datetime"),
    Column("account", "string"),
    Column("host", "string"),
    Column("address", "string"),
    Column("activity", "string"),
    Column("object", "string"),
    Column("outcome", "string"),
    Column("found_in", "dynamic"),
    Column("found", "string"),
)
_ABOUT = {about: tuple(columns.split()) for about, columns in _DATA["about"].items()}
_TYPE_BEHIND = re.compile(r"_(?:string|dynamic|guid|long|int|real|bool|datetime)$")
"""What a union adds to a column that has several types."""


async def search_logs(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Rows that hold `text` as whole words, newest first, with counts of all by table."""
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
        _FOUND_COLUMNS,
        [_found_row(record, text) for record in records],
        # A bound on rows of a table counts by these: of a search that finds, only what it tells rows of.
        tables=tuple(dict.fromkeys(record["TableName"] for record in records)) or tables,
        window=chosen.window,
        time_column="TimeGenerated",
        rows_total=sum(record["Rows"] for record in found.values()),
        answers=(*counts, *answers),
        statistics=TableStatistics() if found else await statistics_of(view, tables),
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
            note("searched_as_words", tables=len(tables)),
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


def _found_row(record: Mapping[str, Any], text: str) -> dict[str, JsonValue]:
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
