"""Relations with typed columns: what the binder makes of a tree, and what `sql` writes as text.

A relation knows the columns that a query sees. Its SQL may carry hidden columns besides, named with a leading `$`:
values computed ahead for an operator, and the number of the row where the order of rows counts. Scalar expressions are
SQL text already (`Typed`), over the columns of a node's input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from kql_duckdb.expressions import Typed, quote_name
from kql_duckdb.expressions import column as typed_column
from kql_duckdb.types import KustoType


@dataclass(frozen=True)
class Column:
    """A column as the query sees it."""

    name: str
    type: KustoType
    identifier: str
    """Its name in SQL, unquoted: another one only where two names differ in nothing but case."""
    nullable: bool = True

    @cached_property
    def sql(self) -> str:
        return quote_name(self.identifier)

    @cached_property
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

    def unordered(self) -> Relation:
        return replace(self, serialized=False, order="")

    def filtered(self, predicate: str) -> Select:
        return Select(self.columns, self, where=predicate, serialized=self.serialized, order=self.order)

    def extended(self, items: tuple[Item, ...], columns: tuple[Column, ...] | None = None, order: str = "") -> Select:
        """With `items` in the place of its columns or beside them, of which the query sees `columns`."""
        shown, order = self.columns if columns is None else columns, order or self.order
        return Select(shown, self, items, serialized=self.serialized, order=order, label=self.label)

    def computed(self, columns: tuple[Column, ...], values: Iterable[str]) -> Select:
        """`values` alone, under the identifiers of `columns`."""
        items = tuple((one.identifier, sql) for one, sql in zip(columns, values, strict=True))
        return Select(columns, self, items, star=False)

    def selected(self, columns: tuple[Column, ...], values: Iterable[str]) -> Select:
        """`values` under the identifiers of `columns`, and the number of the row if it has one."""
        made = replace(self.computed(columns, values), serialized=self.serialized, order=self.order)
        return replace(made, items=(*made.items, (self.order, quote_name(self.order)))) if self.order else made

    def narrowed(self, columns: Iterable[Column]) -> Select:
        """With only `columns` of its columns, in their order."""
        chosen = tuple(columns)
        return self.selected(chosen, (one.sql for one in chosen))

    def aggregated(self, columns: tuple[Column, ...], keys: tuple[Item, ...], values: tuple[Item, ...]) -> Select:
        """One row for each combination of `keys`, or one for all rows where there is none."""
        by = f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}" if keys else ""
        return Select(columns, self, (*keys, *values), star=False, tail=by)

    def sorted(self, keys: Iterable[str]) -> Select:
        """The rows in the order of `keys`, each with its direction."""
        return Select(self.columns, self, tail=f" ORDER BY {', '.join(keys)}", serialized=True)

    def limited(self, count: str) -> Select:
        """The first `count` rows."""
        tail = f" LIMIT {count}"
        return Select(self.columns, in_order(self), tail=tail, serialized=self.serialized, order=self.order)


@dataclass(frozen=True, slots=True)
class Source(Relation):
    """What may stand behind FROM, as text with relations in it, such as a quoted table or a join; without any it is one
    row without columns."""

    pieces: tuple[str | Relation, ...] = ()
    whole: bool = False
    """Whether it is a SELECT, which brackets make a source."""

    def inputs(self) -> tuple[Relation, ...]:
        return tuple(one for one in self.pieces if isinstance(one, Relation))


@dataclass(frozen=True, slots=True)
class Select(Relation):
    """A SELECT over one relation."""

    input: Relation
    items: tuple[Item, ...] = ()
    star: bool = True
    """Whether the columns of the input, hidden ones too, stay, with `items` in their place or beside them."""
    where: str = ""
    tail: str = ""
    """What stands behind WHERE: GROUP BY, ORDER BY or LIMIT."""

    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)


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


def in_order(relation: Relation) -> Relation:
    """`relation` with its rows where its numbering says, if it has one."""
    if not relation.order:
        return relation
    ordered = relation.sorted((quote_name(relation.order),))
    return replace(ordered, order=relation.order, label=relation.label)


def made_columns(values: Iterable[Typed]) -> tuple[Column, ...]:
    """A column for each value, by the name that it has, under identifiers that differ from each other."""
    every = list(values)
    found = zip(every, identifiers(one.name for one in every), strict=True)
    return tuple(Column(one.name, one.type, identifier, one.nullable) for one, identifier in found)


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


def extended_by(relation: Relation, made: Mapping[str, Typed]) -> Relation:
    """`relation` with columns in the place of those of their names, or behind all others."""
    columns = {column.name: column for column in relation.columns}
    places = {name: column.identifier for name, column in columns.items()}
    new = [name for name in made if name not in places]
    places |= zip(new, identifiers(new, (column.identifier for column in relation.columns)), strict=True)
    columns |= {name: Column(name, value.type, places[name], value.nullable) for name, value in made.items()}
    items = tuple((places[name], value.sql) for name, value in made.items())
    return replace(relation.extended(items, tuple(columns.values())), label="")


def key_of(value: Typed, alias: str = "") -> Typed:
    """A value as rows are told apart by it, of the side `alias` if there is one: a missing text is the empty one."""
    sql = f"{alias}.{value.sql}" if alias else value.sql
    if value.type is KustoType.STRING:
        return replace(value, sql=f"coalesce({sql}, '')" if value.nullable else sql, nullable=False)
    return replace(value, sql=sql)


def projected(relation: Relation, values: Iterable[Typed]) -> Relation:
    """Values alone, as columns by the names that they have."""
    every = list(values)
    return relation.selected(made_columns(every), (one.sql for one in every))


def explained(relation: Relation, depth: int = 0) -> Iterator[str]:
    """One line for each node, inputs indented below."""
    columns = ", ".join(f"{column.name}: {column.type}" for column in relation.columns)
    details = relation.shared.name if isinstance(relation, Reference) else ""
    if isinstance(relation, Source):
        details = "".join(one if isinstance(one, str) else "<...>" for one in relation.pieces)
    if isinstance(relation, Select):
        shown = ", ".join(f"{name} := {sql}" for name, sql in relation.items)
        details = f"{shown}{relation.where and f' WHERE {relation.where}'}{relation.tail}".strip()
    yield f"{'  ' * depth}{type(relation).__name__} ({columns}) {details}".rstrip()
    for part in relation.inputs():
        yield from explained(part, depth + 1)
