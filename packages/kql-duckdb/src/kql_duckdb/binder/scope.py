"""What an expression may read: the columns of a relation that grows while it is bound, and the names outside a row.

What SQL cannot compute where it stands is computed one SELECT earlier, in a hidden column: the value of a subquery, a
window function inside another expression, the number of the row. `Scope.relation` then is the one to go on with.
Environments nest and never change; a let is bound where it is first read, in the scope where it was written.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kql_duckdb.algebra import HIDDEN, Relation, Select, Source
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, column, literal, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall, Context
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


TABULAR_FUNCTIONS = frozenset(("materialize", "table", "_getwatchlist"))
"""Functions of KQL whose value is a table."""


@dataclass(slots=True, eq=False)
class Unbound:
    """A let as written, the scope before it, and what it turned out to be once it was read."""

    expression: ast.Expression
    environment: Environment
    tabular: bool
    table: Relation | None = None
    value: Typed | None = None


@dataclass(slots=True, eq=False)
class FunctionOf:
    """A let function, the scope before it, and whether its body is a table (None until somebody asks)."""

    function: ast.Function
    environment: Environment
    tabular: bool | None = None


Binding = Typed | Relation | Unbound | FunctionOf
"""What a name is: an argument that is a value or a table, or a let."""
Environment = dict[str, Binding]
"""The names that a place knows. Never changed: what knows more is another one."""


class Rows:
    """The relation that expressions are bound over, as it grows."""

    def __init__(self, binder: Binder, relation: Relation) -> None:
        self._binder = binder
        self.relation = relation
        self._latest: set[str] = set()

    def row_number(self) -> str:
        """SQL of the column that numbers the rows, in the order in which they stand."""
        if not self.relation.order:
            name = f"{HIDDEN}row{self._binder.number()}"
            self.relation = self.relation.extended(((name, "row_number() OVER ()"),), order=name)
            self._latest = set()
        return quote_name(self.relation.order)

    def hoist(self, value: Typed) -> Typed:
        """A hidden column with the value of `value`, computed before the rows reach this operator."""
        name = self._binder.hidden()
        sql = quote_name(name)
        relation = self.relation
        if self._latest and isinstance(relation, Select) and not any(one in value.sql for one in self._latest):
            self.relation = replace(relation, items=(*relation.items, (name, value.sql)))
        else:
            self.relation = relation.extended(((name, value.sql),))
            self._latest = set()
        self._latest.add(sql)
        return column(sql, value.type, nullable=value.nullable, name=value.name)


class Scope:
    """Where an operator is bound: the rows before it, the columns that it sees, and the names outside."""

    def __init__(
        self,
        binder: Binder,
        relation: Relation | Rows,
        environment: Environment,
        columns: Mapping[str, Typed] | None = None,
    ) -> None:
        self.binder = binder
        self.rows = relation if isinstance(relation, Rows) else Rows(binder, relation)
        self.environment = environment
        if columns is None:
            columns = {one.name: one.typed for one in self.rows.relation.columns}
        self.columns = columns
        self.in_aggregate = False

    @property
    def relation(self) -> Relation:
        """The rows, with what was computed ahead for them."""
        return self.rows.relation

    def over(self, relation: Relation) -> Scope:
        return Scope(self.binder, relation, self.environment)

    def inside(self, environment: Environment) -> Scope:
        """The body of a function called here: the same rows, whose columns it does not see."""
        return Scope(self.binder, self.rows, environment, {})

    def outside(self, environment: Environment | None = None) -> Scope:
        """The names of this place, or of another one, without a row."""
        return Scope(self.binder, Source(()), self.environment if environment is None else environment)

    def find(self, name: str) -> Typed | None:
        return self.columns.get(name)

    def needed(self, node: ast.Expression, unnamed: str = "A column is needed here.") -> Typed:
        """The column that a name is of. Raises KqlError with the place."""
        if not isinstance(node, ast.Name):
            raise self.binder.fault(node, unnamed)
        if node.name not in self.columns:
            raise self.binder.placed(unresolved("column or scalar", node.name, self.columns), node)
        return self.columns[node.name]

    def aggregate(self, node: ast.Call) -> Typed | None:
        """The value of an aggregate, where one may stand."""
        if self.in_aggregate and registry.aggregate(node.name) is not None and registry.scalar(node.name) is None:
            raise KqlError(f"Aggregate '{node.name}' cannot stand inside another one.", "SEM0009")
        return None

    def table(self, node: ast.Expression) -> Relation:
        return self.binder.table(node, self)

    def let(self, statement: ast.Construct) -> FunctionOf | Unbound:
        value = statement.value
        if isinstance(value, ast.Function):
            return FunctionOf(value, self.environment)
        return Unbound(value, self.environment, self.is_tabular(value))

    def is_tabular(self, node: ast.Expression) -> bool:
        """Whether an expression is a table. A name that nobody knows is none; `T()` is if no function has the name."""
        if not isinstance(node, (ast.Name, ast.Call)):
            return isinstance(node, (ast.Construct, ast.Pipeline, ast.Qualified, ast.Pattern))
        binding = self.environment.get(node.name)
        if isinstance(binding, FunctionOf):
            return self.is_tabular_function(binding)
        if isinstance(node, ast.Call):
            name = node.name.lower()
            if name == "materialize" and node.arguments:
                return self.is_tabular(node.arguments[0].value)
            if name in TABULAR_FUNCTIONS or node.arguments or registry.scalar(name) is not None:
                return name in TABULAR_FUNCTIONS
        if binding is None:
            return self.binder.catalog.table(node.name) is not None
        return isinstance(binding, Relation) or (isinstance(binding, Unbound) and binding.tabular)

    def is_tabular_function(self, binding: FunctionOf) -> bool:
        """Whether a let function gives a table. Its parameters are told by their declaration."""
        if binding.tabular is None:
            function = binding.function
            inner = self.outside(binding.environment)
            for one in function.parameters:
                nothing = Unbound(ast.Literal("dynamic", None), inner.environment, tabular=one.schema is not None)
                inner = inner.outside(inner.environment | {one.name: nothing})
            for statement in function.statements:
                if statement.word == "let":
                    inner = self.binder.declared(statement, inner)
            binding.tabular = function.body is not None and inner.is_tabular(function.body)
        return binding.tabular

    def hoist(self, value: Typed) -> Typed:
        return self.rows.hoist(value)

    def simple(self, value: Typed) -> Typed:
        return value if value.simple else self.hoist(value)

    def built(self, name: str, *arguments: Typed) -> Typed:
        function = registry.scalar(name)
        if function is None:
            raise not_supported(name.removeprefix("operator:"))
        return function.build(BoundCall(name, arguments, (), self.context()))

    def converted(self, value: Typed, kind: KustoType) -> Typed:
        if value.type is kind:
            return value
        if value.is_constant and value.constant is None:
            return literal(None, kind)
        return self.built(f"to{kind.value}", value)

    def context(self, *, ordered: bool = False) -> Context:
        """What a function may know of this place, with `ordered` the numbers of the rows too."""
        return Context(
            now=self.binder.now,
            columns=self.columns,
            ingestion_time=self.columns.get("_TimeReceived") or self.columns.get("TimeGenerated"),
            row_order=self.rows.row_number() if ordered else "",
            hoist=self.hoist,
            names=self.binder.names,
        )


def unresolved(what: str, name: str, known: Iterable[str]) -> KqlError:
    """SEM0100 for a name that nobody knows, with the nearest that somebody does."""
    known = tuple(known)
    near = nearest(name, known)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    message = f"Failed to resolve {what} expression named '{name}'.{hint}"
    return KqlError(message, "SEM0100", token=name, suggestions=near, known=known)


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names like `name`; another spelling of its case comes before all."""
    names = list(dict.fromkeys(one for one in known if not one.startswith("$")))
    same = [one for one in names if one.lower() == name.lower()]
    if same:
        return tuple(same[:1])
    by_lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.75)
    return tuple(by_lower[one] for one in close)
