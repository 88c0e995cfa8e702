"""Relations with typed columns: what the binder makes of a tree, and what `sql` writes as text.

A relation knows the columns that a query sees. Its SQL may carry hidden columns besides, named with a leading `$`:
values computed ahead for an operator, and the number of the row where the order of rows counts. Scalar expressions are
SQL text already (`Typed`), over the columns of a node's input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from kql_duckdb.expressions import Typed, quote_name
from kql_duckdb.expressions import column as typed_column
from kql_duckdb.types import KustoType


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the query sees it."""

    name: str
    type: KustoType
    identifier: str
    """Its name in SQL, unquoted: another one only where two names differ in nothing but case."""
    nullable: bool = True

    @property
    def sql(self) -> str:
        return quote_name(self.identifier)

    def typed(self) -> Typed:
        return typed_column(self.sql, self.type, nullable=self.nullable, name=self.name)


Item = tuple[str, str]
"""An identifier and the SQL of its value."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Anything with rows."""

    columns: tuple[Column, ...]
    serialized: bool = field(default=False, kw_only=True)
    """Whether the order of the rows counts."""
    order: str = field(default="", kw_only=True)
    """The hidden column that numbers the rows, once something has needed it."""
    label: str = field(default="", kw_only=True)
    """The table that this is, for `withsource`; empty for anything computed."""

    def inputs(self) -> tuple[Relation, ...]:
        return ()

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Source(Relation):
    """What may stand behind FROM as it is, such as a quoted table; empty is one row without columns."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Template(Relation):
    """A whole SELECT: text, and where a number stands the input of that number, a table or a SELECT in brackets."""

    parts: tuple[Relation, ...]
    pieces: tuple[str | int, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return self.parts


@dataclass(frozen=True, slots=True)
class Filter(Relation):
    """The rows for which the predicate is true."""

    input: Relation
    predicate: str

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Extend(Relation):
    """The columns of the input, hidden ones too, with `items` in their place or beside them."""

    input: Relation
    items: tuple[Item, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Project(Relation):
    """`items` alone."""

    input: Relation
    items: tuple[Item, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Aggregate(Relation):
    """One row for each combination of `keys`, or one for all rows where there is none."""

    input: Relation
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Sort(Relation):
    """The rows in the order of `keys`, each with its direction."""

    input: Relation
    keys: tuple[str, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Limit(Relation):
    """The first `count` rows."""

    input: Relation
    count: str

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Join(Relation):
    """`items` over rows of `left` (aliased l) and `right` (aliased r) that fulfil `condition`."""

    left: Relation
    right: Relation
    kind: str
    """As in SQL: INNER, LEFT, RIGHT, FULL, SEMI, ANTI."""
    condition: str
    items: tuple[Item, ...]

    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class UnionAll(Relation):
    """The rows of all `parts`, whose columns agree in number and order; or by their names, a missing one being null."""

    parts: tuple[Relation, ...]
    by_name: bool = False

    def inputs(self) -> tuple[Relation, ...]:
        return self.parts


@dataclass(slots=True, eq=False)
class Shared:
    """A relation with a name of its own in the WITH of the statement."""

    name: str
    relation: Relation
    materialized: bool = False
    in_text: bool = False
    """Whether SQL text already mentions it, so that it cannot be put in where it is read."""


@dataclass(frozen=True, slots=True)
class Reference(Relation):
    """A shared relation where it is read."""

    shared: Shared


HIDDEN = "$"


def narrowed(relation: Relation, columns: Iterable[Column]) -> Relation:
    """`relation` with only `columns` of its columns, in their order."""
    chosen = tuple(columns)
    items: tuple[Item, ...] = tuple((column.identifier, column.sql) for column in chosen)
    if relation.order:
        items = (*items, (relation.order, quote_name(relation.order)))
    return Project(chosen, relation, items, serialized=relation.serialized, order=relation.order, label=relation.label)


def in_order(relation: Relation) -> Relation:
    """`relation` with its rows where its numbering says, if it has one."""
    if not relation.order:
        return relation
    key = (quote_name(relation.order),)
    return Sort(relation.columns, relation, key, serialized=True, order=relation.order, label=relation.label)


def renamed(columns: Iterable[Column], names: Iterable[str]) -> tuple[Column, ...]:
    """The columns under other names for the query, the same in SQL."""
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> Iterator[str]:
    """An identifier for each name that differs from all others, also for DuckDB, to which case is nothing."""
    used = {name.casefold() for name in taken}
    for name in names:
        identifier, number = name or "_", 1
        while identifier.casefold() in used:
            number += 1
            identifier = f"{name}${number}"
        used.add(identifier.casefold())
        yield identifier


def explained(relation: Relation, depth: int = 0) -> Iterator[str]:
    """One line for each node, inputs indented below."""
    details = ""
    if isinstance(relation, Template):
        details = f" {''.join(one if isinstance(one, str) else f'<{one}>' for one in relation.pieces)}"
    for name in ("text", "predicate", "items", "keys", "aggregates", "count", "kind", "condition"):
        value = getattr(relation, name, None)
        if isinstance(value, str) and value:
            details += f" {name}={value}"
        elif value:
            details += (
                f" {name}=[{', '.join(one if isinstance(one, str) else f'{one[0]} := {one[1]}' for one in value)}]"
            )
    shared = relation.shared.name if isinstance(relation, Reference) else ""
    columns = ", ".join(f"{column.name}: {column.type}" for column in relation.columns)
    yield f"{'  ' * depth}{type(relation).__name__}{shared and f' {shared}'} ({columns}){details}"
    for part in relation.inputs():
        yield from explained(part, depth + 1)
