"""`union`: rows of several tables, with columns of one name and several types told apart.

Where inputs give one name to several types, each type has a column of its own, named `Name_type`, at the place of the
first. Columns come in the order in which the inputs have them. An input that lacks a column gives nulls, and the empty
text for a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Column, Item, Project, Relation, UnionAll, identifiers
from kql_duckdb.binder.choices import matches
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.needed import needed_columns
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import literal
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


def union(
    binder: Binder,
    before: Relation | None,
    node: ast.Union,
    environment: Environment,
    following: Sequence[ast.Operator] = (),
) -> Relation:
    """The relation of `union`, at the beginning or behind a relation."""
    options = {one.name: one.value for one in node.parameters}
    kind = options.get("kind")
    fuzzy = options.get("isfuzzy")
    is_fuzzy = isinstance(fuzzy, ast.Literal) and bool(fuzzy.value)
    source = options.get("withsource") or options.get("with_source")
    inputs = [] if before is None else [before]
    for one in node.inputs:
        inputs += input_relations(binder, one, environment, fuzzy=is_fuzzy)
    if not inputs:
        raise KqlError("union has no table: none of those that it names exists.", "SEM0100")
    return united(
        inputs,
        inner=isinstance(kind, ast.Name) and kind.name == "inner",
        source=_source_name(source),
        needed=needed_columns(following) if len(inputs) > WIDE else None,
    )


WIDE = 8
"""Inputs beyond which only the columns that are read are written."""


def _source_name(node: ast.Expression | None) -> str:
    if isinstance(node, ast.Name):
        return node.name
    return str(node.value) if isinstance(node, ast.Literal) else ""


def input_relations(
    binder: Binder, node: ast.Expression, environment: Environment, *, fuzzy: bool = False
) -> list[Relation]:
    """The relations of one input, several for a pattern; with `fuzzy` none for a table that does not exist."""
    if isinstance(node, ast.Pattern):
        names = [name for name in binder.catalog.names() if matches(node.pattern, name)]
        if not names and not fuzzy:
            raise binder.placed(KqlError(f"No table has a name like '{node.pattern}'.", "SEM0100"), node)
        return [binder.table(ast.Name(name, at=node.at), Environment()) for name in names]
    if fuzzy and isinstance(node, ast.Name) and environment.find(node.name) is None and not binder.is_table(node.name):
        return []
    try:
        return [binder.table(node, environment)]
    except KqlError as error:
        if fuzzy and error.code == "SEM0100" and not isinstance(node, ast.Name) and "table" in error.message:
            return []
        raise


def united(
    inputs: Sequence[Relation], *, inner: bool = False, source: str = "", needed: frozenset[str] | None = None
) -> Relation:
    """The union of `inputs`; with `inner` only the columns that all have, with `source` a column that tells the input,
    with `needed` only columns that somebody reads."""
    names = list(dict.fromkeys(column.name for one in inputs for column in one.columns))
    kinds: dict[str, dict[KustoType, bool]] = {name: {} for name in names}
    counts = dict.fromkeys(names, 0)
    for one in inputs:
        for column in one.columns:
            known = kinds[column.name]
            known[column.type] = known.get(column.type, False) or column.nullable
            counts[column.name] += 1
    if inner:
        names = [name for name in names if counts[name] == len(inputs)]
    columns: list[tuple[str, KustoType, str]] = []
    """Name, type and the name in the inputs."""
    for name in names:
        several = len(kinds[name]) > 1
        columns += [(f"{name}_{kind}" if several else name, kind, name) for kind in kinds[name]]
    if needed is not None:
        columns = [one for one in columns if one[0] in needed or one[2] in needed]
    shown = [*([source] if source else []), *(name for name, _, _ in columns)]
    repeated = next((name for name in shown if shown.count(name) > 1), None) if len(set(shown)) < len(shown) else None
    if repeated is not None:
        raise not_supported("union", f"it would give the name {repeated} to two columns")
    every = list(identifiers(shown))
    made = [Column(source, KustoType.STRING, every[0], nullable=False)] if source else []
    for (name, kind, original), identifier in zip(columns, every[len(made) :], strict=True):
        lacking = counts[original] < len(inputs) or len(kinds[original]) > 1
        text = kind is KustoType.STRING
        nullable = kinds[original][kind] or (lacking and not text)
        made.append(Column(name, kind, identifier, nullable))
    short = len(inputs) * len(made) > _WRITTEN
    parts = tuple(_part(one, place, made, columns, source, short=short) for place, one in enumerate(inputs))
    if short:
        items = tuple((one.identifier, _filled(one)) for one in made)
        return Project(tuple(made), UnionAll(tuple(made), parts, by_name=True), items)
    return parts[0] if len(parts) == 1 else UnionAll(tuple(made), parts)


_WRITTEN = 2_000
"""Cells of inputs and columns beyond which an input names only the columns that it has, which DuckDB plans faster."""


def _filled(column: Column) -> str:
    return f"coalesce({column.sql}, '')" if column.type is KustoType.STRING else column.sql


def _part(
    relation: Relation,
    place: int,
    made: Sequence[Column],
    columns: Sequence[tuple[str, KustoType, str]],
    source: str,
    *,
    short: bool,
) -> Relation:
    own = {(column.name, column.type): column.sql for column in relation.columns}
    items: list[Item] = []
    if source:
        label = relation.label or f"union_arg{place}"
        items.append((made[0].identifier, literal(label, KustoType.STRING).sql))
    for (_, kind, original), column in zip(columns, made[1 if source else 0 :], strict=True):
        sql = own.get((original, kind))
        if sql is not None or not short:
            items.append((column.identifier, sql or literal(None, kind).sql))
    return Project(tuple(made), relation, tuple(items))
