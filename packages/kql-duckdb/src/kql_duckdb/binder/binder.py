"""The binder itself: the statements of a text, the scope of each, and what all its parts share.

The parts are functions over a `Binder`: `expressions` for values, `sources` for what a pipeline begins with, and one
module for each family of operators, found through `operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kql_duckdb.algebra import HIDDEN, Relation, Shared, Source
from kql_duckdb.binder import expressions, operators, plugins, sources
from kql_duckdb.binder.environment import Environment, FunctionOf, TableOf, Unbound, ValueOf
from kql_duckdb.binder.scope import Scope
from kql_duckdb.catalog import Catalog
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast, lexer
from kql_duckdb.types import KustoType, common_type

TABULAR_FUNCTIONS = frozenset(("materialize", "table", "_getwatchlist"))
"""Functions of KQL whose value is a table."""

_DEPTH = 100
_TABULAR = (ast.Pipeline, ast.DataTable, ast.ExternalData, ast.Range, ast.Print, ast.Operator)


@dataclass(frozen=True)
class Bound:
    """A text that is bound: its relation, what that shares, and what the text asks of whoever runs it."""

    relation: Relation
    shared: Sequence[Shared]
    options: Mapping[str, Any]
    tables: frozenset[str]
    render: ast.Render | None


class Binder:
    """Binds one text. Made anew for each."""

    def __init__(
        self,
        source: lexer.Source,
        catalog: Catalog,
        now: Typed,
        *,
        names: Mapping[str, str] | None = None,
        discover: Callable[[Relation, Sequence[Shared]], list[tuple[Any, ...]]] | None = None,
        window: Callable[[Relation], str] | None = None,
    ) -> None:
        self._source = source
        self.catalog = catalog
        self.now = now
        self.names = names or {}
        self._discover = discover
        self.window = window
        self.shared: list[Shared] = []
        self.tables: set[str] = set()
        self.render: ast.Render | None = None
        self._numbers = 0
        self._laterals = 0
        self.around: tuple[str, ...] = ()
        """The columns of the row around a lateral query, which it sees if it names them."""
        self._entered: list[str] = []

    # ------------------------------------------------------------------------------------------ what parts share

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def hidden(self) -> str:
        """A new name for a hidden column."""
        return f"{HIDDEN}{self.number()}"

    def share(self, relation: Relation, *, materialized: bool = False) -> Shared:
        """Give `relation` a name in the WITH of the statement."""
        made = Shared(f"{HIDDEN}with{self.number()}", relation, materialized)
        self.shared.append(made)
        return made

    def discover(self, relation: Relation, construct: str) -> list[tuple[Any, ...]]:
        """The rows of `relation` now, for operators whose columns come from the data."""
        if self._laterals:
            raise not_supported(construct, "its columns come from rows, which inside mv-apply and partition differ")
        if self._discover is None:
            raise not_supported(construct, "its columns come from rows, and no rows are at hand")
        return self._discover(relation, self.shared)

    def lateral(self, relation: Relation, steps: Sequence[ast.Operator], environment: Environment) -> Relation:
        """The relation after `steps` of a query inside a row or a group of another one."""
        self._laterals += 1
        try:
            return self.pipeline(relation, steps, environment)
        finally:
            self._laterals -= 1

    def placed(self, error: KqlError, node: ast.Node) -> KqlError:
        """The error with the place of `node`, unless it has a place already."""
        if node.at < 0:
            return error
        place = self._source.place(node.at)
        return error.at(place.line, place.column)

    @contextmanager
    def entering(self, name: str) -> Iterator[None]:
        """Refuse functions that call themselves without end."""
        if len(self._entered) > _DEPTH:
            raise KqlError(f"'{name}' is nested too deeply.", "SEM0004")
        self._entered.append(name)
        try:
            yield
        finally:
            self._entered.pop()

    # ------------------------------------------------------------------------------------------ statements

    def script(self, script: ast.Script, definitions: ast.Script | None = None) -> Bound:
        """The one query of a text, which may read what `definitions` give names to."""
        environment = Environment()
        for statement in definitions.statements if definitions is not None else ():
            environment = self.declared(statement, environment)
        options: dict[str, Any] = {}
        query: ast.Query | None = None
        for statement in script.statements:
            if isinstance(statement, ast.Query):
                if query is not None:
                    raise self.placed(not_supported("a second query", "one text is one query"), statement)
                query = statement
            elif isinstance(statement, ast.Set):
                value = statement.value
                options[statement.name.lower()] = (
                    True if value is None else self._option(statement.name, value, environment)
                )
            else:
                environment = self.declared(statement, environment)
        if query is None:
            raise KqlError("The text declares names and asks nothing: a query is missing at its end.", "SYN0002")
        if "query_now" in options:
            self.now = self._moment(options["query_now"])
        relation = self._result(query.expression, environment)
        return Bound(relation, self.shared, options, frozenset(self.tables), self.render)

    def _moment(self, value: Any) -> Typed:
        if not isinstance(value, datetime):
            raise KqlError("set query_now needs a datetime.", "SEM0040")
        return literal(value, KustoType.DATETIME)

    def _option(self, name: str, node: ast.Expression, environment: Environment) -> Any:
        if isinstance(node, ast.Name):
            return node.name
        return expressions.bind_constant(self.empty_scope(environment), node, f"The value of '{name}'")

    def _result(self, node: ast.Expression, environment: Environment) -> Relation:
        if self.is_tabular(node, environment):
            return self.table(node, environment)
        return sources.printed(self, (ast.Named(node),), environment)

    def declared(self, statement: ast.Statement, environment: Environment) -> Environment:
        """The scope after a statement that gives names."""
        if isinstance(statement, ast.Let):
            return environment.bound(statement.name, self.let(statement, environment))
        if isinstance(statement, ast.Declare):
            for one in statement.parameters:
                if one.default is None:
                    raise self.placed(
                        KqlError(f"The query parameter '{one.name}' has no value here and no default.", "SEM0100"), one
                    )
                environment = environment.bound(one.name, Unbound(one.default, environment, tabular=False))
            return environment
        if isinstance(statement, ast.UnreadStatement):
            raise self.placed(not_supported(statement.keyword), statement)
        raise self.placed(not_supported(type(statement).__name__.lower(), "inside a function"), statement)

    def let(self, statement: ast.Let, environment: Environment) -> FunctionOf | Unbound:
        value = statement.value
        if isinstance(value, ast.Function):
            return FunctionOf(value, environment)
        return Unbound(value, environment, self.is_tabular(value, environment))

    # ------------------------------------------------------------------------------------------ tables

    def is_table(self, name: str) -> bool:
        return self.catalog.table(name) is not None

    def is_tabular(self, node: ast.Expression, environment: Environment) -> bool:
        """Whether an expression is a table. A name that nobody knows is none."""
        if isinstance(node, _TABULAR):
            return True
        if isinstance(node, ast.Name):
            binding = environment.find(node.name)
            if binding is None:
                return self.is_table(node.name)
            if isinstance(binding, FunctionOf):
                return self.is_tabular_function(binding)
            return isinstance(binding, TableOf) or (isinstance(binding, Unbound) and binding.tabular)
        if isinstance(node, ast.Call):
            binding = environment.find(node.name)
            if isinstance(binding, FunctionOf):
                return self.is_tabular_function(binding)
            if node.name.lower() == "materialize" and node.arguments:
                return self.is_tabular(node.arguments[0].value, environment)
            return node.name.lower() in TABULAR_FUNCTIONS or (not node.arguments and self.is_a_table(node, environment))
        if isinstance(node, ast.Qualified):
            return True
        return isinstance(node, ast.Pattern)

    def is_a_table(self, node: ast.Call, environment: Environment) -> bool:
        """Whether `T()` is a table under a name that no function has."""
        if registry.scalar(node.name) is not None:
            return False
        binding = environment.find(node.name)
        if binding is None:
            return self.is_table(node.name)
        return isinstance(binding, TableOf) or (isinstance(binding, Unbound) and binding.tabular)

    def is_tabular_function(self, binding: FunctionOf) -> bool:
        """Whether a let function gives a table. Its parameters are told by their declaration."""
        if binding.tabular is None:
            function = binding.function
            inner = binding.environment
            for one in function.parameters:
                nothing = ast.Literal("dynamic", None)
                inner = inner.bound(one.name, Unbound(nothing, inner, tabular=one.schema is not None))
            for statement in function.statements:
                if isinstance(statement, ast.Let):
                    inner = inner.bound(statement.name, self.let(statement, inner))
            binding.tabular = function.body is not None and self.is_tabular(function.body, inner)
        return binding.tabular

    def table(self, node: ast.Expression, environment: Environment, following: Sequence[ast.Operator] = ()) -> Relation:
        """The relation of a tabular expression that the operators `following` read. Raises KqlError with the place."""
        try:
            if isinstance(node, ast.Pipeline):
                relation = self.table(node.source, environment, node.operators)
                return operators.pipeline(self, relation, node.operators, environment)
            return sources.source(self, node, environment, following)
        except KqlError as error:
            self.placed(error, node)
            raise

    def pipeline(self, relation: Relation, steps: Sequence[ast.Operator], environment: Environment) -> Relation:
        """The relation after all `steps`."""
        return operators.pipeline(self, relation, steps, environment)

    def leading(self, node: ast.Operator, environment: Environment, following: Sequence[ast.Operator]) -> Relation:
        """An operator that begins a query."""
        return operators.leading(self, node, environment, following)

    def watchlist(self, node: ast.Call, environment: Environment) -> Relation:
        """`_GetWatchlist(alias)`."""
        return plugins.watchlist(self, node, environment)

    # ------------------------------------------------------------------------------------------ values and arguments

    def empty_scope(self, environment: Environment) -> Scope:
        """A scope without a row."""
        return Scope(self, Source(()), environment)

    def constant_value(self, node: ast.Expression, environment: Environment) -> Typed:
        """The value of an expression that reads no row."""
        scope = self.empty_scope(environment)
        value = expressions.bind_expression(scope, node)
        return expressions.shared_scalar(self, value, scope.relation)

    def arguments(
        self, node: ast.Call, function: ast.Function, binding: FunctionOf
    ) -> dict[str, tuple[ast.Expression, KustoType | None]]:
        """The argument of each parameter of a let function, its default where none is given, and the type wanted."""
        given: dict[str, ast.Expression] = {}
        parameters = function.parameters
        for place, one in enumerate(node.arguments):
            if one.name is None:
                if place >= len(parameters):
                    raise KqlError(
                        f"Function '{node.name}' expects {len(parameters)} argument(s), got {len(node.arguments)}.",
                        "SEM0219",
                    )
                given[parameters[place].name] = one.value
            elif one.name in {parameter.name for parameter in parameters}:
                given[one.name] = one.value
            else:
                raise KqlError(f"Function '{node.name}' has no parameter '{one.name}'.", "SEM0219")
        found: dict[str, tuple[ast.Expression, KustoType | None]] = {}
        for parameter in parameters:
            value = given.get(parameter.name, parameter.default)
            if value is None:
                raise KqlError(
                    f"Function '{node.name}' expects an argument for its parameter '{parameter.name}'.", "SEM0219"
                )
            found[parameter.name] = (value, KustoType(parameter.type) if parameter.type else None)
        return found

    def function_scope(
        self, node: ast.Call, binding: FunctionOf, environment: Environment, first: Relation | None = None
    ) -> Environment:
        """The scope of a tabular function's body: its arguments, bound where the call stands, and its lets."""
        function = binding.function
        if first is not None:
            lead = ast.Argument(ast.Name(f"{HIDDEN}first"))
            node = ast.Call(node.name, (lead, *node.arguments), at=node.at)
            environment = environment.bound(f"{HIDDEN}first", TableOf(first))
        inner = binding.environment
        wanted = {one.name: one for one in function.parameters}
        for name, (value, kind) in self.arguments(node, function, binding).items():
            schema = wanted[name].schema
            if schema is not None:
                relation = self.table(value, environment)
                sources.check_schema(relation, schema, name)
                inner = inner.bound(name, TableOf(sources.shared(self, relation)))
                continue
            bound = self.constant_value(value, environment)
            if kind is not None and bound.type is not kind and common_type((bound.type, kind)) is not None:
                scope = self.empty_scope(environment)
                bound = expressions.convert_argument(scope, bound, kind)
            inner = inner.bound(name, ValueOf(bound))
        for statement in function.statements:
            inner = self.declared(statement, inner)
        return inner
