"""Steps that several operators are made of: columns added or chosen, rows ordered and cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kql_duckdb.algebra import Column, Extend, Item, Limit, Project, Relation, identifiers, in_order
from kql_duckdb.binder.expressions import bind_expression
from kql_duckdb.binder.scope import Scope
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, quote_name
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType


def extended_by(relation: Relation, made: Mapping[str, Typed]) -> Relation:
    """`relation` with columns in the place of those of their names, or behind all others."""
    present = {column.name: column for column in relation.columns}
    new = [name for name in made if name not in present]
    fresh = dict(zip(new, identifiers(new, (column.identifier for column in relation.columns)), strict=True))
    columns, items = list(relation.columns), []
    for name, value in made.items():
        identifier = present[name].identifier if name in present else fresh[name]
        column = Column(name, value.type, identifier, value.nullable)
        if name in present:
            columns[columns.index(present[name])] = column
        else:
            columns.append(column)
        items.append((identifier, value.sql))
    return Extend(
        tuple(columns),
        relation,
        tuple(items),
        serialized=relation.serialized,
        order=relation.order,
    )


def projected(relation: Relation, names: Sequence[str], values: Sequence[Typed]) -> Relation:
    """A relation of `values` alone."""
    columns = tuple(
        Column(name, value.type, identifier, value.nullable)
        for name, value, identifier in zip(names, values, identifiers(names), strict=True)
    )
    items: tuple[Item, ...] = tuple(
        (column.identifier, value.sql) for column, value in zip(columns, values, strict=True)
    )
    if relation.order:
        items = (*items, (relation.order, quote_name(relation.order)))
    return Project(columns, relation, items, serialized=relation.serialized, order=relation.order)


def limited(relation: Relation, count: str) -> Relation:
    before = in_order(relation)
    return Limit(relation.columns, before, count, serialized=relation.serialized, order=relation.order)


def sort_keys(scope: Scope, keys: Sequence[ast.OrderedBy]) -> tuple[str, ...]:
    """The keys in SQL. Descending and, of ascending keys, nulls first unless the query says otherwise."""
    found = []
    for key in keys:
        value = bind_expression(scope, key.expression.expression)
        ascending = key.direction == "asc"
        nulls = key.nulls or ("first" if ascending else "last")
        text = value.sql
        if value.type is KustoType.STRING and value.nullable:
            text = f"coalesce({text}, '')"
        elif value.type is KustoType.DYNAMIC:
            raise scope.binder.placed(
                KqlError(
                    "'sort': a dynamic has no order; convert it first, with tostring(), tolong() or todouble().",
                    "SEM0001",
                ),
                key,
            )
        if value.windowed:
            text = scope.hoist(value).sql
        found.append(f"{text} {'ASC' if ascending else 'DESC'} NULLS {nulls.upper()}")
    return tuple(found)
