"""KQL on a DuckDB connection: `kql(connection).query(text)`.

Reads and binds a text, writes its SQL, runs it, and tells failures in KQL's words. An engine may be kept as long as
its connection; each query asks for the tables anew unless it is given a catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Column, Extend, Relation, Shared, explained, in_order
from kql_duckdb.binder.binder import Binder, Bound
from kql_duckdb.catalog import Catalog, ConnectedTables, KnownTables
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import literal
from kql_duckdb.functions import registry
from kql_duckdb.sql import statement
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.parser import Parser, parse
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    import duckdb

TIME_COLUMN = "TimeGenerated"
TOLD = "kql: "
"""What stands before the words for people in an error that this package's SQL raises over rows."""


@dataclass(frozen=True)
class Translation:
    """A query as SQL, with the columns of its result."""

    sql: str
    columns: tuple[Column, ...]
    tables: frozenset[str]
    options: Mapping[str, Any]
    render: ast.Render | None


class Result:
    """The rows of a query, with Kusto's types."""

    def __init__(self, columns: Sequence[Column], rows: duckdb.DuckDBPyRelation, render: ast.Render | None) -> None:
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
    """Answers queries over a connection."""

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
        self._definitions = read_definitions(definitions) if definitions else None

    def query(
        self,
        text: str,
        *,
        now: datetime | None = None,
        timespan: tuple[datetime | None, datetime | None] | None = None,
    ) -> Result:
        """The rows of a query. `timespan` are the bounds of `TimeGenerated` in every table that is read.

        Raises KqlError.
        """
        translation = self.translate(text, now=now, timespan=timespan)
        return Result(translation.columns, run(self._connection, translation.sql), translation.render)

    def translate(
        self,
        text: str,
        *,
        now: datetime | None = None,
        timespan: tuple[datetime | None, datetime | None] | None = None,
    ) -> Translation:
        """The SQL of a query. Rows are asked only where columns come from them. Raises KqlError."""
        bound = self._bound(text, now, timespan)
        relation = in_order(_without_null_texts(bound.relation))
        return Translation(
            statement(relation, bound.shared), relation.columns, bound.tables, bound.options, bound.render
        )

    def explain(self, text: str, *, now: datetime | None = None) -> str:
        """The algebra of a query and its SQL, for people."""
        bound = self._bound(text, now, None)
        lines: list[str] = []
        for one in bound.shared:
            lines += [f"with {one.name}:", *explained(one.relation, 1)]
        lines += [*explained(bound.relation), "", statement(in_order(bound.relation), bound.shared)]
        return "\n".join(lines)

    def _bound(
        self, text: str, now: datetime | None, timespan: tuple[datetime | None, datetime | None] | None
    ) -> Bound:
        def discover(relation: Relation, shared: Sequence[Shared]) -> list[tuple[Any, ...]]:
            return run(self._connection, statement(relation, shared)).fetchall()

        catalog = self._catalog or ConnectedTables(self._connection)
        return bind(
            text,
            catalog,
            now=now,
            timespan=timespan,
            discover=discover,
            names=self._names,
            definitions=self._definitions,
        )


def kql(
    connection: duckdb.DuckDBPyConnection,
    *,
    catalog: Catalog | None = None,
    names: Mapping[str, str] | None = None,
    definitions: str = "",
) -> Engine:
    """An engine over `connection`. Without a catalog its tables and views are those of the current schema."""
    return Engine(connection, catalog=catalog, names=names, definitions=definitions)


def read_definitions(text: str) -> ast.Script:
    """The lets of a text, for `bind`. Raises KqlError for anything else."""
    script = parse(text)
    for one in script.statements:
        if not isinstance(one, ast.Let):
            raise KqlError("Definitions are let statements and nothing else.", "SYN0002")
    unplaced: ast.Script = ast.unplaced(script)
    return unplaced


def check(text: str, schema: Mapping[str, Mapping[str, str]]) -> list[KqlError]:
    """What is wrong with a text over tables `{table: {column: KQL type}}`: every syntax error, or one other."""
    parser = Parser(text)
    try:
        parser.script()
    except RecursionError:
        return [KqlError("The query is nested too deeply.", "SYN0004")]
    if parser.errors:
        return parser.errors
    try:
        bind(text, KnownTables.of_schema(schema))
    except KqlError as error:
        return [error]
    return []


def bind(
    text: str,
    catalog: Catalog,
    *,
    now: datetime | None = None,
    timespan: tuple[datetime | None, datetime | None] | None = None,
    discover: Any = None,
    names: Mapping[str, str] | None = None,
    definitions: ast.Script | None = None,
) -> Bound:
    """The relation of a text. Raises KqlError."""
    try:
        parser = Parser(text)
        script = parser.script()
        if parser.errors:
            raise parser.errors[0]
        moment = (now or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)
        binder = Binder(
            parser.source,
            catalog,
            literal(moment, KustoType.DATETIME),
            names=names,
            discover=discover,
            window=None if timespan is None else _window(timespan),
        )
        return binder.script(script, definitions)
    except RecursionError as error:
        raise KqlError("The query is nested too deeply.", "SYN0004") from error


def _without_null_texts(relation: Relation) -> Relation:
    """The relation with the empty text for each missing one, which Kusto does not have."""
    texts = [column for column in relation.columns if column.type is KustoType.STRING and column.nullable]
    if not texts:
        return relation
    items = tuple((column.identifier, f"coalesce({column.sql}, '')") for column in texts)
    return Extend(relation.columns, relation, items, serialized=relation.serialized, order=relation.order)


def _window(timespan: tuple[datetime | None, datetime | None]) -> Any:
    def predicate(relation: Relation) -> str:
        column = relation.column(TIME_COLUMN)
        if column is None or column.type is not KustoType.DATETIME:
            return ""
        tests = []
        for operator, moment in ((">=", timespan[0]), ("<", timespan[1])):
            if moment is not None:
                naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
                tests.append(f"{column.sql} {operator} {literal(naive, KustoType.DATETIME).sql}")
        return " AND ".join(tests)

    return predicate


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
        return KqlError(
            "The query needs more memory than it may use (E_LOW_MEMORY_CONDITION).", "E_LOW_MEMORY_CONDITION"
        )
    _, told, message = text.partition(TOLD)
    if told:
        return KqlError(message.splitlines()[0], "KDB0002")
    return KqlError("The query cannot be computed over these rows.", "KDB0002")
