"""KQL on a DuckDB connection: `kql(connection).query(text)`.

Reads and binds a text, writes its SQL, runs it, and tells failures in KQL's words. An engine may be kept as long as
its connection; each query asks for the tables anew unless it is given a catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Column, explained
from kql_duckdb.binder.binder import Binder, Translation, Window
from kql_duckdb.catalog import Catalog, ConnectedTables, KnownTables
from kql_duckdb.errors import KqlError
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.parser import Parser, parse, parse_all

if TYPE_CHECKING:
    import duckdb

TOLD = "kql: "
"""What stands before the words for people in an error that this package's SQL raises over rows."""


class Result:
    """The rows of a query, with Kusto's types."""

    def __init__(self, columns: Sequence[Column], rows: duckdb.DuckDBPyRelation, render: ast.Construct | None) -> None:
        self.columns = tuple((column.name, column.type) for column in columns)
        """Name and type of each column, in order."""
        self.render = render
        """How the query asks its rows to be shown, if it does."""
        self._relation = rows

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """Rows as DuckDB gives them: a dynamic as JSON text, a datetime in UTC without zone."""
        rows = self._relation.fetchall()
        return rows if self.columns else [() for _ in rows]

    def arrow(self) -> Any:
        """The rows as a pyarrow Table under the names of the query. Needs pyarrow, and takes the place of `rows`."""
        table: Any = self._relation.to_arrow_table()
        return table.rename_columns([name for name, _ in self.columns])


class Engine:
    """Answers queries over a connection. Without a catalog its tables and views are those of the current schema."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        catalog: Catalog | None = None,
        names: Mapping[str, str] | None = None,
        definitions: str = "",
    ) -> None:
        """Raises KqlError for definitions that are not `let` statements.

        `names` are the answers of `current_database()` and its kind; `definitions` are lets that every query may read,
        such as the parsers of a schema.
        """
        self._connection = connection
        self._catalog = catalog
        self._names = names or {}
        self._definitions = read_definitions(definitions) if definitions else ()

    def query(self, text: str, *, now: datetime | None = None, timespan: Window | None = None) -> Result:
        """The rows of a query. `timespan` are the bounds of `TimeGenerated` in every table that is read.

        Raises KqlError.
        """
        translation = self.translate(text, now=now, timespan=timespan)
        return Result(translation.columns, run(self._connection, translation.sql), translation.render)

    def translate(self, text: str, *, now: datetime | None = None, timespan: Window | None = None) -> Translation:
        """The SQL of a query. Rows are asked only where columns come from them. Raises KqlError."""
        return translate(text, now=now, timespan=timespan, **self._surroundings())

    def explain(self, text: str, *, now: datetime | None = None) -> str:
        """The algebra of a query and its SQL, for people."""
        made = translate(text, now=now, **self._surroundings())
        shared = (line for one in made.shared for line in (f"with {one.name}:", *explained(one.relation, 1)))
        return "\n".join([*shared, *explained(made.relation), "", made.sql])

    def _surroundings(self) -> dict[str, Any]:
        return {
            "catalog": self._catalog or ConnectedTables(self._connection),
            "ask": lambda sql: run(self._connection, sql).fetchall(),
            "names": self._names,
            "definitions": self._definitions,
        }


kql = Engine


def read_definitions(text: str) -> Sequence[ast.Construct]:
    """The lets of a text, for `translate`. Raises KqlError for anything else."""
    statements = parse(text).statements
    if any(isinstance(one, ast.Query) or one.word != "let" for one in statements):
        raise KqlError("Definitions are let statements and nothing else.", "SYN0002")
    return [ast.unplaced(one) for one in statements]


def check(text: str, schema: Mapping[str, Mapping[str, str]]) -> list[KqlError]:
    """What is wrong with a text over tables `{table: {column: KQL type}}`: every syntax error, or one other."""
    _, errors = parse_all(text)
    if not errors:
        try:
            translate(text, KnownTables.of_schema(schema))
        except KqlError as error:
            return [error]
    return errors


def translate(
    text: str, catalog: Catalog, *, definitions: Sequence[ast.Construct] = (), **surroundings: Any
) -> Translation:
    """The SQL of a text; `surroundings` are those of `Binder`. Raises KqlError."""
    try:
        parser = Parser(text)
        script = parser.script()
        if parser.errors:
            raise parser.errors[0]
        return Binder(parser.source, catalog, **surroundings).script(script, definitions)
    except RecursionError as error:
        raise KqlError("The query is nested too deeply.", "SYN0004") from error


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyRelation:
    """Execute SQL that this package wrote, its rows kept. Raises KqlError for whatever the rows refuse."""
    import duckdb

    try:
        registry.install(connection, sql)
        return connection.sql(sql).materialize()
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, MemoryError) as error:
        raise failure(error) from error


def failure(error: Exception) -> KqlError:
    """What a failure of DuckDB is in KQL's words; its own text is only the cause."""
    text = str(error)
    if isinstance(error, MemoryError) or "out of memory" in text.lower():
        code = "E_LOW_MEMORY_CONDITION"
        return KqlError(f"The query needs more memory than it may use ({code}).", code)
    _, told, message = text.partition(TOLD)
    return KqlError(message.splitlines()[0] if told else "The query cannot be computed over these rows.", "KDB0002")
