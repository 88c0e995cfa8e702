"""Raw rows into typed tables, inside the caller's transaction.

The middle of an import: names and types are decided, every row is converted in one pass into a temporary table, and
what the target does not hold yet is added as a multiset (a row that stands twice in a file stays twice; the same file
again adds none). Above: `importer`. Nothing here commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.workspace.importing.column_mapping import (
    TIME_COLUMN,
    TIME_SOURCES,
    UNFIT_COLUMN,
    Headers,
    adopt_spelling,
    clean_headers,
)
from sentinel_rag.workspace.importing.conversion import detected_type, detection_sql, misfit_sql, value_sql
from sentinel_rag.workspace.importing.raw_rows import CsvFile, RawRows, read_rejects
from sentinel_rag.workspace.importing.reports import ImportReport, Misfit, Reject
from sentinel_rag.workspace.importing.table_choice import is_table_name, named_table, table_of_file
from sentinel_rag.workspace.kql_types import quote_name, quote_text
from sentinel_rag.workspace.migrations import column_definition, create_table_sql
from sentinel_rag.workspace.store import read_schema

if TYPE_CHECKING:
    import duckdb

_DETECTION_ROWS = 50_000
_MAX_RESCUES = 50


@dataclass(frozen=True, slots=True)
class Destination:
    """One table of a file. `condition` selects its rows by the text of a column; empty for all rows."""

    table: str
    reason: str
    condition: str = ""


def destinations(
    cursor: duckdb.DuckDBPyConnection,
    rows: RawRows,
    headers: Headers,
    schema: Mapping[str, Mapping[str, str]],
    *,
    path: Path,
    table: str | None,
) -> list[Destination]:
    """Where the rows go: usually one table, several where a column of the file names them."""
    if table is not None:
        return [Destination(named_table(table, schema), "as asked")]
    type_index = next((column.index for column in headers.columns if column.name == "Type"), None)
    fallback = table_of_file(path, [column.name for column in headers.columns], schema)
    for index, reason in ((headers.table_index, "its $table column"), (type_index, "its Type column")):
        if index is None:
            continue
        named = [
            value
            for (value,) in cursor.execute(
                f"SELECT DISTINCT trim(c{index}) FROM {rows.source} ORDER BY 1"  # noqa: S608 - names are ours
            ).fetchall()
        ]
        known = [value for value in named if value and is_table_name(value, schema)]
        if not known:
            continue
        chosen = [Destination(name, reason, f"trim(c{index}) = {quote_text(name)}") for name in known]
        if len(known) == len(named) == 1:
            return [replace(chosen[0], condition="")]
        others = ", ".join(quote_text(name) for name in known)
        if len(known) < len(named):
            rest = f"coalesce(trim(c{index}), '') NOT IN ({others})"
            chosen.append(Destination(*fallback, condition=rest))
        return chosen
    return [Destination(*fallback)]


def load(
    cursor: duckdb.DuckDBPyConnection,
    rows: RawRows,
    destination: Destination,
    *,
    file: str,
    folder: Path,
) -> ImportReport:
    """Convert and store the rows of one destination. The report counts rejects of this reading only."""
    schema = read_schema(cursor)
    known = schema.get(destination.table, {})
    headers = adopt_spelling(clean_headers(rows.headers), known)
    source = rows.source
    if destination.condition:
        source = f"(SELECT * FROM {rows.source} WHERE {destination.condition})"  # noqa: S608
    types = _types(cursor, headers, known, source)
    time_from, time_note = _time_source(headers, types)
    has_misfits = _create_typed(cursor, headers, types, time_from)
    select = _typed_select(headers, types, time_from, with_unfit=has_misfits)
    rejects: list[Reject] = []
    if rows.csv is not None and not destination.condition:
        rejects = _insert_csv(cursor, rows.csv, select, folder)
    else:
        cursor.execute(f"INSERT INTO typed {select.replace('$source', source)}")
    read = _count(cursor, "typed")
    misfits = _misfits(cursor, types) if has_misfits else ()
    added = _extend_table(cursor, destination.table, known, headers, types, unfit=bool(misfits), time_from=time_from)
    stored = _add_new_rows(cursor, destination.table, with_unfit=bool(misfits))
    notes = [*rows.notes, *headers.notes, f"Table chosen by {destination.reason}."]
    if time_note:
        notes.append(time_note)
    return ImportReport(
        file=file,
        table=destination.table,
        format=rows.format,
        rows_read=read + len(rejects),
        rows_stored=stored,
        duplicates_skipped=read - stored,
        rows_rejected=len(rejects),
        misfits=misfits,
        rejects=tuple(rejects),
        new_columns=added,
        notes=tuple(notes),
    )


def _types(
    cursor: duckdb.DuckDBPyConnection, headers: Headers, known: Mapping[str, str], source: str
) -> dict[str, str]:
    """The KQL type of each column: the table's, or what the values of a new column are."""
    unknown = [column for column in headers.columns if column.name not in known]
    types = {column.name: known[column.name] for column in headers.columns if column.name in known}
    if unknown:
        sample = f"(SELECT * FROM {source} LIMIT {_DETECTION_ROWS})"  # noqa: S608
        found = cursor.execute(detection_sql([f"c{column.index}" for column in unknown], sample)).fetchone()
        for column, counts in zip(unknown, found or (), strict=True):
            types[column.name] = detected_type(counts)
    if TIME_COLUMN in types:
        types[TIME_COLUMN] = "datetime"
    return types


def _time_source(headers: Headers, types: Mapping[str, str]) -> tuple[int | None, str]:
    """The position of the column that stands in for TimeGenerated, and a note about it."""
    if TIME_COLUMN in types:
        return None, ""
    by_name = {column.name: column.index for column in headers.columns}
    for name in TIME_SOURCES:
        if types.get(name) == "datetime":
            return by_name[name], f"The file has no TimeGenerated: it was filled from {name}."
    times = [name for name in by_name if types[name] == "datetime"]
    if len(times) == 1:
        return by_name[times[0]], f"The file has no TimeGenerated: it was filled from {times[0]}, its only time."
    return None, "The file has no time column: a query with a time range does not see its rows."


def _create_typed(
    cursor: duckdb.DuckDBPyConnection, headers: Headers, types: Mapping[str, str], time_from: int | None
) -> bool:
    """The temporary table `typed`. True if some column can hold values that do not fit."""
    columns = [f"{quote_name(column.name)} {column_definition(types[column.name])}" for column in headers.columns]
    if time_from is not None:
        columns.append(f"{TIME_COLUMN} TIMESTAMP")
    can_misfit = any(misfit_sql("x", types[column.name]) for column in headers.columns)
    if can_misfit:
        columns.append(f"{UNFIT_COLUMN} JSON")
    cursor.execute("DROP TABLE IF EXISTS typed")
    cursor.execute(f"CREATE TEMP TABLE typed (sentinel_record BIGINT, {', '.join(columns)})")
    return can_misfit


def _typed_select(headers: Headers, types: Mapping[str, str], time_from: int | None, *, with_unfit: bool) -> str:
    """`SELECT` of every typed column over `$source`."""
    cells = ["row_number() OVER ()"]
    cells += [value_sql(f"c{column.index}", types[column.name]) for column in headers.columns]
    if time_from is not None:
        cells.append(value_sql(f"c{time_from}", "datetime"))
    if with_unfit:
        pairs = []
        for column in headers.columns:
            condition = misfit_sql(f"c{column.index}", types[column.name])
            if condition:
                pairs.append((condition, f"{{'column': {quote_text(column.name)}, 'value': c{column.index}}}"))
        anything = " OR ".join(condition for condition, _ in pairs)
        entries = ", ".join(f"CASE WHEN {condition} THEN {pair} END" for condition, pair in pairs)
        cells.append(f"CASE WHEN {anything} THEN to_json(list_filter([{entries}], lambda x: x IS NOT NULL)) END")
    return f"SELECT {', '.join(cells)} FROM $source"  # noqa: S608


def _insert_csv(cursor: duckdb.DuckDBPyConnection, csv: CsvFile, select: str, folder: Path) -> list[Reject]:
    """Read the file, then again what a record with an open quote had swallowed, until nothing is left to rescue."""
    rejects: list[Reject] = []
    for rescue in range(_MAX_RESCUES):
        table = f"csv_rejects_{rescue}"
        cursor.execute(f"INSERT INTO typed {select.replace('$source', csv.scan_sql(rejects=table))}")
        found, swallowed = read_rejects(cursor, table, first_line=csv.first_line, strict=csv.strict)
        rejects += found
        if not swallowed:
            break
        path = folder / f"rescued{rescue}.txt"
        path.write_text(swallowed, encoding="utf-8", newline="")
        last = found[-1].line or csv.first_line
        csv = replace(csv, path=path, has_header=False, first_line=last + 1)
    return rejects


def _count(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    return int(row[0]) if row else 0


def _misfits(cursor: duckdb.DuckDBPyConnection, types: Mapping[str, str]) -> tuple[Misfit, ...]:
    found = cursor.execute(
        "SELECT pair->>'column' AS name, count(*), list_slice(list(sentinel_record ORDER BY sentinel_record), 1, 3), "  # noqa: S608
        "list_slice(list(left(pair->>'value', 200) ORDER BY sentinel_record), 1, 3) "
        f"FROM (SELECT sentinel_record, unnest(CAST({UNFIT_COLUMN} AS JSON[])) AS pair FROM typed "
        f"WHERE {UNFIT_COLUMN} IS NOT NULL) GROUP BY name ORDER BY name"
    ).fetchall()
    return tuple(
        Misfit(name, types[name], count, tuple(records), tuple(values)) for name, count, records, values in found
    )


def _extend_table(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    known: Mapping[str, str],
    headers: Headers,
    types: Mapping[str, str],
    *,
    unfit: bool,
    time_from: int | None,
) -> dict[str, str]:
    """Create the table, or add the columns that it lacks. Returns what was added."""
    wanted = {column.name: types[column.name] for column in headers.columns}
    if unfit:
        wanted[UNFIT_COLUMN] = "dynamic"
    if not known:
        columns = {TIME_COLUMN: "datetime", **{name: type_ for name, type_ in wanted.items() if name != TIME_COLUMN}}
        cursor.execute(create_table_sql(table, columns))
        return columns
    added = {name: type_ for name, type_ in wanted.items() if name not in known}
    if time_from is not None and TIME_COLUMN not in known:
        added[TIME_COLUMN] = "datetime"
    for name, type_ in added.items():
        cursor.execute(f"ALTER TABLE {quote_name(table)} ADD COLUMN {quote_name(name)} {column_definition(type_)}")
    return added


def _add_new_rows(cursor: duckdb.DuckDBPyConnection, table: str, *, with_unfit: bool) -> int:
    """Insert what the table does not hold yet; returns how many rows."""
    columns = [
        row[0]
        for row in cursor.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = 'typed'").fetchall()
        if row[0] != "sentinel_record" and (with_unfit or row[0] != UNFIT_COLUMN)
    ]
    names = ", ".join(quote_name(name) for name in columns)
    target = quote_name(table)
    before = _count(cursor, target)
    overlap = _overlap(cursor, target, columns) if before else None
    if overlap is None:
        cursor.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM typed")  # noqa: S608
    else:
        every = _all_columns(cursor, table)
        filled = ", ".join(
            quote_name(name) if name in columns else f"{default} AS {quote_name(name)}" for name, default in every
        )
        all_names = ", ".join(quote_name(name) for name, _ in every)
        cursor.execute(
            f"INSERT INTO {target} ({all_names}) SELECT {filled} FROM typed "  # noqa: S608
            f"EXCEPT ALL SELECT {all_names} FROM {target} WHERE {overlap}"
        )
    return _count(cursor, target) - before


def _overlap(cursor: duckdb.DuckDBPyConnection, target: str, columns: Sequence[str]) -> str | None:
    """A condition for the stored rows that could equal a new one, or None if there is none in that time."""
    if TIME_COLUMN not in columns:
        condition = f"{TIME_COLUMN} IS NULL"
    else:
        bounds = cursor.execute(
            f"SELECT min({TIME_COLUMN}), max({TIME_COLUMN}), count(*) - count({TIME_COLUMN}) FROM typed"  # noqa: S608
        ).fetchone()
        oldest, newest, without = bounds or (None, None, 0)
        parts = [f"{TIME_COLUMN} BETWEEN TIMESTAMP '{oldest}' AND TIMESTAMP '{newest}'"] if oldest is not None else []
        if without:
            parts.append(f"{TIME_COLUMN} IS NULL")
        if not parts:
            return None
        condition = f"({' OR '.join(parts)})"
    found = cursor.execute(f"SELECT 1 FROM {target} WHERE {condition} LIMIT 1").fetchone()  # noqa: S608
    return condition if found else None


def _all_columns(cursor: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Every column of the table with the SQL of its value in a row that lacks it."""
    rows = cursor.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' AND table_name = ? "
        "AND database_name = current_database() ORDER BY column_index",
        [table],
    ).fetchall()
    return [(name, "''" if type_ == "VARCHAR" else f"CAST(NULL AS {type_})") for name, type_ in rows]
