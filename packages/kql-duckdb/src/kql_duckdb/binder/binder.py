"""The binder itself: the statements of a text, the scope of each, and what all its parts share.

The parts are functions over a `Scope`: `expressions` for values, `sources` for what a pipeline begins with, and one
module for each family of operators, found through `operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kql_duckdb import sql
from kql_duckdb.algebra import HIDDEN, Column, Reference, Relation, Shared, Source, in_order, key_of
from kql_duckdb.binder import operators, sources
from kql_duckdb.binder.expressions import bind_constant
from kql_duckdb.binder.scope import Scope, Unbound
from kql_duckdb.catalog import Catalog
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.syntax import ast, lexer
from kql_duckdb.types import KustoType

_DEPTH = 100
Window = tuple[datetime | None, datetime | None]
"""The bounds of `TimeGenerated`: from the first up to the second, either of which may be open."""


def _moment(moment: datetime) -> Typed:
    """A time, in UTC where it has no zone."""
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    return literal(naive, KustoType.DATETIME)


@dataclass(frozen=True)
class Translation:
    """A query as SQL, and what it asks of whoever runs it."""

    sql: str
    relation: Relation
    shared: Sequence[Shared]
    tables: frozenset[str]
    options: Mapping[str, Any]
    render: ast.Construct | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return self.relation.columns


class Binder:
    """Binds one text. Made anew for each."""

    def __init__(
        self,
        source: lexer.Source,
        catalog: Catalog,
        *,
        now: datetime | None = None,
        timespan: Window | None = None,
        ask: Callable[[str], list[tuple[Any, ...]]] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`ask` gives the rows of SQL, for operators whose columns come from them; `names` are the answers of
        `current_database()` and its kind."""
        self._source = source
        self.catalog = catalog
        self.now = _moment((now or datetime.now(UTC)).astimezone(UTC))
        self.timespan = tuple(None if one is None else _moment(one) for one in timespan or (None, None))
        self._ask = ask
        self.names = names or {}
        self._shared: list[Shared] = []
        self.tables: set[str] = set()
        self.render: ast.Construct | None = None
        self._numbers = 0
        self._laterals = 0
        self.around: tuple[str, ...] = ()
        """The columns of the row around a lateral query, which it sees if it names them."""
        self._entered = 0

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def hidden(self) -> str:
        return f"{HIDDEN}{self.number()}"

    def shared(self, relation: Relation, *, materialized: bool = False) -> Relation:
        """`relation` under a name in the WITH of the statement, so that it may be read several times."""
        if not relation.inputs() and not materialized:
            return relation
        made = Shared(f"{HIDDEN}with{self.number()}", relation, materialized)
        self._shared.append(made)
        order, label = relation.order, relation.label
        return Reference(relation.columns, made, serialized=relation.serialized, order=order, label=label)

    def discover(self, relation: Relation, construct: str) -> list[tuple[Any, ...]]:
        """The rows of `relation` now, for operators whose columns come from the data."""
        if self._laterals:
            raise not_supported(construct, "its columns come from rows, which inside mv-apply and partition differ")
        if self._ask is None:
            raise not_supported(construct, "its columns come from rows, and no rows are at hand")
        return self._ask(sql.statement(relation, self._shared))

    def lateral(self, scope: Scope, steps: Sequence[ast.Construct]) -> Relation:
        """The relation after `steps` of a query inside a row or a group of another one, with only what it shows.

        A lateral subquery that returned hidden columns too would hide those around it.
        """
        self._laterals += 1
        try:
            inner = operators.pipeline(scope, steps)
        finally:
            self._laterals -= 1
        return inner.unordered().narrowed(inner.columns)

    def placed(self, error: KqlError, node: ast.Node) -> KqlError:
        """The error with the place of `node`, unless it has a place already."""
        return error if node.at < 0 else error.at(*self._source.place(node.at))

    def fault(self, node: ast.Node, message: str, code: str = "SEM0001") -> KqlError:
        """An error at the place of `node`."""
        return self.placed(KqlError(message, code), node)

    @contextmanager
    def at(self, node: ast.Node) -> Iterator[None]:
        """Give errors of the block the place of `node`."""
        try:
            yield
        except KqlError as error:
            self.placed(error, node)
            raise

    @contextmanager
    def entering(self, name: str) -> Iterator[None]:
        """Refuse functions that call themselves without end."""
        if self._entered > _DEPTH:
            raise KqlError(f"'{name}' is nested too deeply.", "SEM0004")
        self._entered += 1
        try:
            yield
        finally:
            self._entered -= 1

    def script(self, script: ast.Script, definitions: Sequence[ast.Construct] = ()) -> Translation:
        """The one query of a text, which may read what `definitions` give names to."""
        scope = Scope(self, Source(()), {})
        for one in definitions:
            scope = self.declared(one, scope)
        options: dict[str, Any] = {}
        query: ast.Expression | None = None
        for statement in script.statements:
            if isinstance(statement, ast.Query):
                if query is not None:
                    raise self.placed(not_supported("a second query", "one text is one query"), statement)
                query = statement.expression
            elif statement.word == "set":
                value = statement.value
                if value is None or isinstance(value, ast.Name):
                    options[statement.name.lower()] = True if value is None else value.name
                else:
                    what = f"The value of '{statement.name}'"
                    options[statement.name.lower()] = bind_constant(scope.outside(), value, what)
            else:
                scope = self.declared(statement, scope)
        if query is None:
            raise KqlError("The text declares names and asks nothing: a query is missing at its end.", "SYN0002")
        if "query_now" in options:
            if not isinstance(options["query_now"], datetime):
                raise KqlError("set query_now needs a datetime.", "SEM0040")
            self.now = _moment(options["query_now"])
        is_table = scope.is_tabular(query)
        relation = self.table(query, scope) if is_table else sources.printed(scope, (ast.Named(query),))
        # Kusto has no missing text, but the empty one.
        texts = (one for one in relation.columns if one.type is KustoType.STRING and one.nullable)
        filled = tuple((one.identifier, key_of(one.typed).sql) for one in texts)
        relation = in_order(relation.extended(filled) if filled else relation)
        text = sql.statement(relation, self._shared)
        return Translation(text, relation, self._shared, frozenset(self.tables), options, self.render)

    def declared(self, statement: ast.Construct, scope: Scope) -> Scope:
        """The scope after a statement that gives names."""
        environment = scope.environment
        if statement.word == "let":
            return scope.outside(environment | {statement.name: scope.let(statement)})
        if statement.word != "declare":
            why = "inside a function" if statement.word == "set" else ""
            raise self.placed(not_supported(statement.word, why), statement)
        for one in statement.parameters:
            if one.default is None:
                message = f"The query parameter '{one.name}' has no value here and no default."
                raise self.fault(one, message, "SEM0100")
            environment = environment | {one.name: Unbound(one.default, environment, tabular=False)}
        return scope.outside(environment)

    def table(self, node: ast.Expression, scope: Scope, following: Sequence[ast.Construct] = ()) -> Relation:
        """The relation of a tabular expression that the operators `following` read. Raises KqlError with the place."""
        with self.at(node):
            if isinstance(node, ast.Pipeline):
                return operators.pipeline(scope.over(self.table(node.source, scope, node.operators)), node.operators)
            return operators.source(scope.outside(), node, following)
