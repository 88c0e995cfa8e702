"""The tables that a query may read: from a DuckDB connection, or told.

A table that a catalog does not name does not exist for a query, whatever DuckDB would find under that name: no file,
no catalog of DuckDB, no Python variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kql_duckdb.expressions import quote_name
from kql_duckdb.types import KustoType, type_of_column

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Table:
    """A table as queries see it."""

    name: str
    columns: Mapping[str, KustoType]
    sql: str = ""
    """What stands behind FROM; the quoted name if it is empty."""
    held: Mapping[str, str] = field(default_factory=dict)
    """The DuckDB types of columns that are not held as their KQL type is."""
    texts_are_never_null: bool = False
    """Whether the empty text stands in the place of every missing one, as Kusto has it."""

    @property
    def source(self) -> str:
        return self.sql or quote_name(self.name)


class Catalog(Protocol):
    """Where the binder looks tables up."""

    def table(self, name: str) -> Table | None:
        """The table of exactly this name."""

    def names(self) -> Iterable[str]:
        """The names of all tables, in order."""


class KnownTables:
    """A catalog that is told its tables."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {table.name: table for table in tables}

    @classmethod
    def of_schema(cls, schema: Mapping[str, Mapping[str, str]], *, texts_are_never_null: bool = False) -> KnownTables:
        """Tables as `{table: {column: KQL type}}`, each held as this package holds its types."""
        kinds = ((name, {one: KustoType(kind) for one, kind in columns.items()}) for name, columns in schema.items())
        return cls(Table(name, columns, texts_are_never_null=texts_are_never_null) for name, columns in kinds)

    def table(self, name: str) -> Table | None:
        return self._tables.get(name)

    def names(self) -> Iterable[str]:
        return list(self._tables)


_NAMES = """
    SELECT DISTINCT table_name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_catalog IN (current_database(), 'temp') ORDER BY table_name
"""


class ConnectedTables:
    """The tables and views of a connection's current database, asked for when a query names one."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._known: dict[str, Table] = {}
        self._names: list[str] | None = None

    def names(self) -> Iterable[str]:
        if self._names is None:
            self._names = [row[0] for row in self._connection.execute(_NAMES).fetchall()]
        return self._names

    def table(self, name: str) -> Table | None:
        if name not in self._known and name in self.names():
            rows = self._connection.execute(f"DESCRIBE {quote_name(name)}").fetchall()
            kinds = {row[0]: type_of_column(row[1]) for row in rows}
            other = {row[0]: row[1] for row in rows if kinds[row[0]].held != row[1]}
            self._known[name] = Table(name, kinds, held=other)
        return self._known.get(name)
