"""`mv-expand` and `mv-apply`: a row for each element of an array.

An array gives its elements, a bag a bag of one key each (or pairs, with kind=array), null and any other value one row;
an empty array gives no row. Several arrays are expanded side by side, the shorter ones filled with null. `mv-apply`
runs a query over the rows that one row became, so it is a lateral subquery of that row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Column, Extend, Item, Relation, Source, Template, identifiers
from kql_duckdb.binder.columns import extended_by
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.naming import expression_name
from kql_duckdb.binder.needed import nodes
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import converted
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, column, quote_name
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


@dataclass(frozen=True)
class _Options:
    pairs: bool
    index: str
    limit: int | None


def _options(binder: Binder, node: ast.MvExpand | ast.MvApply, environment: Environment) -> _Options:
    pairs, index = False, ""
    for one in node.parameters:
        value = one.value.name if isinstance(one.value, ast.Name) else str(getattr(one.value, "value", ""))
        if one.name in ("kind", "bagexpansion"):
            if value not in ("bag", "array"):
                raise KqlError(f"'{value}' is no kind of mv-expand.", "SEM0001")
            pairs = value == "array"
        elif one.name == "with_itemindex":
            index = value
    limit = None
    if node.limit is not None:
        limit = int(bind_constant(binder.empty_scope(environment), node.limit, "The limit"))
    return _Options(pairs, index, limit)


def mv_expand(binder: Binder, relation: Relation, node: ast.MvExpand, environment: Environment) -> Relation:
    """The relation with a row for each element."""
    return expanded(binder, relation, node.columns, _options(binder, node, environment), environment)[0]


def expanded(
    binder: Binder,
    relation: Relation,
    columns: Sequence[ast.Expansion],
    options: _Options,
    environment: Environment,
) -> tuple[Relation, list[str]]:
    """The expanded relation, and the names of the columns that it put in the place of arrays."""
    scope = Scope(binder, relation, environment)
    names: list[str] = []
    lists: list[Typed] = []
    kinds: list[KustoType] = []
    for place, one in enumerate(columns):
        node = one.column
        value = bind_expression(scope, node.expression)
        if value.type is not KustoType.DYNAMIC:
            if value.type is not KustoType.STRING:
                raise binder.placed(KqlError(f"mv-expand needs a dynamic, not a {value.type}.", "SEM0001"), node)
            value = _as_dynamic(scope, value)
        held = value if value.simple else scope.hoist(value)
        lists.append(scope.hoist(Typed(_elements(held.sql, options), KustoType.DYNAMIC)))
        names.append(node.names[0] if node.names else expression_name(node.expression) or f"Column{place + 1}")
        kinds.append(KustoType(one.type) if one.type else KustoType.DYNAMIC)
    before = scope.relation
    items: list[Item] = [(binder.hidden(), f"unnest({one.sql})") for one in lists]
    elements = [column(quote_name(name), KustoType.DYNAMIC) for name, _ in items]
    made: dict[str, Typed] = {}
    if options.index:
        longest = ", ".join(f"len({one.sql})" for one in lists)
        longest = f"greatest({longest})" if len(lists) > 1 else longest
        index = binder.hidden()
        items.append((index, f"unnest(range({longest}))"))
        made[_fresh(options.index, [*names, *(one.name for one in relation.columns)])] = column(
            quote_name(index), KustoType.LONG, nullable=False
        )
    rows = Extend(relation.columns, before, tuple(items), serialized=relation.serialized, order=before.order)
    after = Scope(binder, rows, environment)
    values = {}
    for name, element, kind in zip(names, elements, kinds, strict=True):
        present = Typed(f"nullif({element.sql}, CAST('null' AS JSON))", KustoType.DYNAMIC)
        values[name] = present if kind is KustoType.DYNAMIC else converted(after, element, kind)
    return extended_by(after.relation, {**values, **made}), names


def _fresh(name: str, taken: Sequence[str]) -> str:
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}{number}"
    return found


def _as_dynamic(scope: Scope, value: Typed) -> Typed:
    return converted(scope, value, KustoType.DYNAMIC)


def _elements(value: str, options: _Options) -> str:
    """A list of JSON for a simple dynamic value."""
    member = f"json_extract({value}, '/' || replace(replace(k, '~', '~0'), '/', '~1'))"
    pair = f"json_array(k, {member})" if options.pairs else f"json_object(k, {member})"
    made = (
        f"CASE json_type({value}) WHEN 'ARRAY' THEN CAST({value} AS JSON[]) "
        f"WHEN 'OBJECT' THEN list_transform(json_keys({value}), lambda k: CAST({pair} AS JSON)) "
        f"ELSE [CAST({value} AS JSON)] END"
    )
    return made if options.limit is None else f"list_slice({made}, 1, {max(options.limit, 0)})"


# --------------------------------------------------------------------------------------------- mv-apply


def mv_apply(binder: Binder, relation: Relation, node: ast.MvApply, environment: Environment) -> Relation:
    """The relation of the inner query for each row, beside the row's other columns."""
    if node.id is not None:
        raise not_supported("mv-apply with id")
    options = _options(binder, node, environment)
    alias = f"$row{binder.number()}"
    outer = _outer_row(relation, alias, node)
    before, binder.around = binder.around, tuple(one.name for one in relation.columns)
    inside, expanded_names = expanded(binder, outer, node.columns, options, environment)
    inner = binder.lateral(inside, node.body, environment)
    binder.around = before
    in_place = {
        name
        for name, one in zip(expanded_names, node.columns, strict=True)
        if isinstance(one.column.expression, ast.Name) and one.column.expression.name == name
    }
    produced = {one.name: one for one in inner.columns}
    kept = [one for one in relation.columns if one.name not in in_place or one.name in produced]
    kept = [one for one in kept if one.name not in in_place]
    names = [one.name for one in kept] + [name for name in produced if name not in {one.name for one in kept}]
    result = f"$applied{binder.number()}"
    sources = {one.name: (alias, one) for one in kept} | {name: (result, one) for name, one in produced.items()}
    columns, texts = [], []
    for name, identifier in zip(names, identifiers(names), strict=True):
        place, one = sources[name]
        columns.append(Column(name, one.type, identifier, one.nullable))
        texts.append(f"{quote_name(place)}.{one.sql} AS {quote_name(identifier)}")
    head = f"SELECT {', '.join(texts)} FROM "
    pieces = (head, 0, f" AS {quote_name(alias)}, LATERAL ", 1, f" AS {quote_name(result)}")
    return Template(tuple(columns), (relation, _whole(inner)), pieces)


def _whole(relation: Relation) -> Relation:
    """The visible columns only, so that a lateral subquery returns nothing else."""
    listed = ", ".join(one.sql for one in relation.columns) or "1"
    return Template(relation.columns, (relation,), (f"SELECT {listed} FROM ", 0, " AS i"))


def _outer_row(relation: Relation, alias: str, node: ast.MvApply) -> Relation:
    """The one row around the inner query, with the columns that it may read."""
    read = set(_names((node.columns, node.body)))
    every = any(isinstance(one, ast.Call) and one.name in ("pack_all", "bag_pack_columns") for one in nodes(node.body))
    columns = tuple(one for one in relation.columns if every or one.name in read)
    listed = ", ".join(f"{quote_name(alias)}.{one.sql} AS {one.sql}" for one in columns)
    return Source(columns, f"(SELECT {listed or '1'}) AS o")


def _names(node: Any) -> Iterator[str]:
    """Every word of a tree that may be a column, those of `column_ifexists` too."""
    for one in nodes(node):
        if isinstance(one, ast.Name):
            yield one.name
        elif isinstance(one, ast.Literal) and isinstance(one.value, str):
            yield one.value
