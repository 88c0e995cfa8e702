"""The columns that an expression may read, over a relation that grows while expressions are bound.

What SQL cannot compute where it stands is computed one SELECT earlier, in a hidden column: the value of a subquery, a
window function inside another expression, the number of the row. `relation` then is the one to go on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kql_duckdb.algebra import HIDDEN, Extend, Item, Relation
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, column, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import Context

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder
    from kql_duckdb.binder.environment import Environment
    from kql_duckdb.syntax import ast


class Rows:
    """The relation that expressions are bound over, as it grows."""

    def __init__(self, binder: Binder, relation: Relation) -> None:
        self._binder = binder
        self.relation = relation
        self._latest: set[str] = set()

    def row_number(self) -> str:
        """SQL of the column that numbers the rows."""
        if not self.relation.order:
            self.relation = numbered(self.relation, self._binder)
            self._latest = set()
        return quote_name(self.relation.order)

    def hoist(self, value: Typed) -> Typed:
        """A hidden column with the value of `value`, computed before the rows reach this operator."""
        name = self._binder.hidden()
        item: Item = (name, value.sql)
        relation = self.relation
        sql = quote_name(name)
        if self._latest and isinstance(relation, Extend) and not any(one in value.sql for one in self._latest):
            self.relation = _with_item(relation, item)
        else:
            self.relation = extended(relation, (item,))
            self._latest = set()
        self._latest.add(sql)
        return column(sql, value.type, nullable=value.nullable, name=value.name)


class Scope:
    """Where an expression of one operator is bound: the rows, the columns that it sees, and the names outside."""

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
            columns = {one.name: one.typed() for one in self.rows.relation.columns}
        self._columns = columns
        self._context: Context | None = None

    @property
    def relation(self) -> Relation:
        return self.rows.relation

    def inside(self, environment: Environment) -> Scope:
        """The body of a function called here: the same rows, whose columns it does not see."""
        return Scope(self.binder, self.rows, environment, {})

    def find(self, name: str) -> Typed | None:
        return self._columns.get(name)

    def names(self) -> Iterator[str]:
        yield from self._columns

    def columns(self) -> Iterable[tuple[str, Typed]]:
        return self._columns.items()

    def side(self, node: ast.Member) -> Typed | None:
        """`$left.a` and `$right.a`, where there are two sides."""
        return None

    def aggregate(self, node: ast.Call) -> Typed | None:
        """The value of an aggregate, where one may stand."""
        return None

    def hoist(self, value: Typed) -> Typed:
        return self.rows.hoist(value)

    def context(self, function: str) -> Context:
        """What the function may know of this place. Raises KqlError if it needs an order that does not count."""
        if registry.is_window(function):
            if not self.relation.serialized:
                raise KqlError(
                    f"Function '{function}' cannot be invoked in current context. Details: the row set must be "
                    "serialized. Put sort by ... or serialize before it.",
                    "SEM0001",
                )
            return self._made_context(self.rows.row_number())
        if self._context is None:
            self._context = self._made_context("")
        return self._context

    def ordered_context(self) -> Context:
        """The context of an aggregate that keeps the order of the rows, where one counts."""
        return self._made_context(self.rows.row_number()) if self.relation.serialized else self.context("")

    def _made_context(self, row_order: str) -> Context:
        binder = self.binder
        return Context(
            now=binder.now,
            columns=self._columns,
            ingestion_time=self._columns.get("_TimeReceived") or self._columns.get("TimeGenerated"),
            row_order=row_order,
            hoist=self.hoist,
            names=binder.names,
        )


def _with_item(relation: Extend, item: Item) -> Extend:
    return Extend(
        relation.columns,
        relation.input,
        (*relation.items, item),
        serialized=relation.serialized,
        order=relation.order,
        label=relation.label,
    )


def extended(relation: Relation, items: tuple[Item, ...], order: str = "") -> Extend:
    return Extend(
        relation.columns,
        relation,
        items,
        serialized=relation.serialized,
        order=order or relation.order,
        label=relation.label,
    )


def numbered(relation: Relation, binder: Binder) -> Relation:
    """`relation` with a number for each row, in the order in which the rows stand."""
    if relation.order:
        return relation
    name = f"{HIDDEN}row{binder.number()}"
    return extended(relation, ((name, "row_number() OVER ()"),), order=name)
