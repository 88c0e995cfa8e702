"""The one object that answers KQL: tables, time range and limits over a store.

`Workspace.query` and the wire server call it from any thread; each call has its own cursor, so an import that runs
at the same time is seen either not at all or whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.kql.answers import KqlAnswer
from sentinel_rag.workspace.kql.errors import KqlError, told
from sentinel_rag.workspace.kql.execution import Limits, Statement, rows_of, run
from sentinel_rag.workspace.kql.stopping import StopSignal, watched
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.timespans import TimeRange, parse_timespan

if TYPE_CHECKING:
    from kql_duckdb.algebra import Relation, Shared
    from kql_duckdb.catalog import Table

_NAMES = 10_000
"""How many names of columns are asked of the data before it is given up; far above what an operator accepts."""

MAX_QUERY_CHARS = 1_000_000
"""As the service."""

_TRUNCATION = {"truncationmaxrecords": "max_rows", "truncationmaxsize": "max_bytes"}


class StoreTables:
    """The tables of a store as kql-duckdb looks them up: their strings are never null."""

    def __init__(self, schema: Mapping[str, Mapping[str, str]]) -> None:
        self._schema = schema

    def names(self) -> Iterable[str]:
        return self._schema

    def table(self, name: str) -> Table | None:
        from kql_duckdb.catalog import Table
        from kql_duckdb.types import KustoType

        columns = self._schema.get(name)
        if columns is None:
            return None
        kinds = {column: KustoType(kind) for column, kind in columns.items()}
        return Table(name, kinds, texts_are_never_null=True)


class KqlEngine:
    """Answers queries over `store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def query(
        self, kql: str, *, timespan: str | TimeRange | None, limits: Limits, signal: StopSignal | None = None
    ) -> KqlAnswer:
        """Translate and run `kql` until `signal` is given.

        Raises KqlError, KqlTimeoutError, KqlCancelledError or TimespanError.
        """
        window = timespan if isinstance(timespan, TimeRange) else parse_timespan(timespan, now=datetime.now(UTC))
        schema = self._store.schema()
        signal = signal or StopSignal()
        with self._store.cursor() as cursor:

            def ask(sql: str) -> list[tuple[Any, ...]]:
                self._ready(sql)
                with watched(cursor, limits.timeout_s, signal) as watch:
                    return rows_of(cursor, sql, replace(limits, max_rows=_NAMES), watch)

            statement = translate(kql, schema, window, ask)
            self._ready(statement.sql)
            return run(cursor, statement, limits=_narrowed(statement.options, limits), signal=signal)

    def _ready(self, sql: str) -> None:
        """Register the functions of Python, if `sql` may call one; DuckDB loads numpy for them."""
        from kql_duckdb.functions import registry

        if "kql_" in sql:
            self._store.give_functions(registry.install)


def translate(
    kql: str,
    schema: Mapping[str, Mapping[str, str]],
    window: TimeRange,
    ask: Callable[[str], list[tuple[Any, ...]]] | None = None,
) -> Statement:
    """The SQL for `kql` over the tables of `schema`. Raises KqlError.

    `ask` gives the rows of SQL, for operators whose columns come from the data; without it they are refused.
    """
    from kql_duckdb.algebra import in_order
    from kql_duckdb.engine import bind
    from kql_duckdb.errors import KqlError as PackageError
    from kql_duckdb.sql import statement

    if len(kql) > MAX_QUERY_CHARS:
        raise KqlError(
            f"The query has {len(kql):,} characters; {MAX_QUERY_CHARS:,} are allowed.",
            kql_code="SEN0003",
            next_step="Put long lists of values into a table and join it.",
        )

    def discover(relation: Relation, shared: Sequence[Shared]) -> list[tuple[Any, ...]]:
        assert ask is not None
        return ask(statement(relation, shared))

    try:
        bound = bind(
            kql,
            StoreTables(schema),
            timespan=(window.start, window.end) if window.start or window.end else None,
            discover=discover if ask is not None else None,
        )
        sql = statement(in_order(bound.relation), bound.shared)
    except PackageError as error:
        raise told(error) from error
    return Statement(sql, bound.relation.columns, bound.tables, bound.options)


def _narrowed(options: Mapping[str, Any], limits: Limits) -> Limits:
    """The limits with what `set truncationmaxrecords=N` and its kin ask for. Raises KqlError for a bad value.

    `set notruncation` changes nothing: the service's own limits hold for everybody.
    """
    for name, field in _TRUNCATION.items():
        if name not in options:
            continue
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise KqlError(
                f"set {name} needs a whole number, not {value!r}.",
                kql_code="SEM0040",
                next_step=f"Write set {name}=5000;",
            )
        limits = replace(limits, **{field: min(getattr(limits, field), value)})
    return limits
