"""Which rows of an opened file go to which table, decided by asking its rows.

Between `table_choice` (the rules, without rows) and `loading`. A file is usually for one table; where a `$table` or
`Type` column names several, each gets the rows that name it, and rows that name none go where the file belongs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.workspace.importing.column_mapping import Headers
from sentinel_rag.workspace.importing.raw_rows import RawRows
from sentinel_rag.workspace.importing.table_choice import (
    BY_NAME,
    is_table_name,
    named_table,
    table_of_file,
    tables_of_actions,
)
from sentinel_rag.workspace.kql_types import quote_name, quote_text

if TYPE_CHECKING:
    import duckdb

_TYPE_SAMPLE_ROWS = 20_000


class SeveralTablesError(Exception):
    """The first rows of a file named one table and later rows another: it must be read again with `thorough`."""


@dataclass(frozen=True, slots=True)
class Destination:
    """One table of a file. `condition` selects its rows by the text of a column; empty for all rows.

    `assumed` says that only the first rows were seen to name this table in their `Type`.
    """

    table: str
    reason: str
    condition: str = ""
    assumed: bool = False


def destinations(
    cursor: duckdb.DuckDBPyConnection,
    rows: RawRows,
    headers: Headers,
    schema: Mapping[str, Mapping[str, str]],
    *,
    path: Path,
    table: str | None,
    thorough: bool,
) -> list[Destination]:
    """Where the rows go: usually one table, several where a column of the file names them.

    Unless `thorough`, a `Type` column is judged by its first rows; `load` looks at the rest when it has them.
    """
    if table is not None:
        return [Destination(named_table(table, schema), "as asked")]
    columns = [column.name for column in headers.columns]
    type_index = next((column.index for column in headers.columns if column.name == "Type"), None)
    fallback = table_of_file(path, columns, schema)
    for index, reason in ((headers.table_index, "its $table column"), (type_index, "its Type column")):
        if index is None:
            continue
        sampled = index == type_index and not thorough
        limit = f" LIMIT {_TYPE_SAMPLE_ROWS}" if sampled else ""
        found = cursor.execute(
            f"SELECT DISTINCT trim(name) FROM (SELECT c{index} AS name FROM {rows.source}{limit}) ORDER BY 1"  # noqa: S608
        ).fetchall()
        named = [value for (value,) in found]
        known = [value for value in named if value and is_table_name(value, schema, columns)]
        if not known:
            continue
        chosen = [Destination(name, reason, f"trim(c{index}) = {quote_text(name)}") for name in known]
        if len(known) == len(named) == 1:
            return [replace(chosen[0], condition="", assumed=sampled)]
        others = ", ".join(quote_text(name) for name in known)
        if len(known) < len(named):
            rest = f"coalesce(trim(c{index}), '') NOT IN ({others})"
            chosen.append(Destination(*fallback, condition=rest))
        return chosen
    return _by_action(cursor, rows, headers, fallback) or [Destination(*fallback)]


def _by_action(
    cursor: duckdb.DuckDBPyConnection, rows: RawRows, headers: Headers, fallback: tuple[str, str]
) -> list[Destination]:
    """Where the rows of an export of advanced hunting go, each by its ActionType; none for a file that is no such one,
    or whose name says where it belongs."""
    tables = tables_of_actions([column.name for column in headers.columns])
    if not tables or fallback[1] == BY_NAME:
        return []
    index = next(column.index for column in headers.columns if column.name == "ActionType")
    found = cursor.execute(f"SELECT DISTINCT trim(c{index}) FROM {rows.source}").fetchall()  # noqa: S608 - names are ours
    actions = [value for (value,) in found]
    chosen = dict.fromkeys(tables[action] for action in actions if action in tables)
    if not chosen:
        return []
    reason = "its ActionType column"
    if len(chosen) == 1 and all(action in tables for action in actions):
        return [Destination(next(iter(chosen)), reason)]
    made = []
    for table in chosen:
        own = ", ".join(quote_text(action) for action in actions if tables.get(action) == table)
        made.append(Destination(table, reason, f"trim(c{index}) IN ({own})"))
    known = ", ".join(quote_text(action) for action in actions if action in tables)
    if any(action not in tables for action in actions):
        made.append(Destination("DeviceEvents", reason, f"coalesce(trim(c{index}), '') NOT IN ({known})"))
    return made


def require_type(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    """Every row of the transaction must name `table`; what stood there before does, or was given by a person."""
    other = cursor.execute(
        f"SELECT 1 FROM {quote_name(table)} WHERE trim(Type) NOT IN ('', {quote_text(table)}) LIMIT 1"  # noqa: S608
    ).fetchone()
    if other:
        raise SeveralTablesError
