"""Operators over one relation that keep, choose, order or compute columns, and the way to all the others.

`pipeline` binds the operators after a source in turn. An operator that makes no new row is here; `summarize`, joins,
unions, expansions, series and patterns have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import (
    Aggregate,
    Column,
    Filter,
    Item,
    Limit,
    Project,
    Relation,
    Sort,
    identifiers,
    narrowed,
)
from kql_duckdb.binder import expand, joins, nested, patterns, plugins, searches, series, summarize, unions
from kql_duckdb.binder.choices import chosen_columns
from kql_duckdb.binder.columns import extended_by, limited, projected, sort_keys
from kql_duckdb.binder.environment import Environment, FunctionOf, TableOf
from kql_duckdb.binder.expressions import bind_condition, bind_expression, bind_named
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.binder.naming import Namer, declared_names, expression_name
from kql_duckdb.binder.needed import nodes
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import call_function, literal_rows, shared
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

Handler = Callable[["Binder", Relation, Any, Environment], Relation]


def pipeline(binder: Binder, relation: Relation, steps: Sequence[ast.Operator], environment: Environment) -> Relation:
    """The relation after all `steps`. A name given by `as` is known to the steps behind it."""
    for step in steps:
        try:
            if isinstance(step, ast.As):
                relation = replace(shared(binder, relation), label=step.name)
                environment = environment.bound(step.name, TableOf(relation))
                continue
            relation = _HANDLERS[type(step)](binder, relation, step, environment)
        except KqlError as error:
            binder.placed(error, step)
            raise
    return relation


def leading(
    binder: Binder, node: ast.Operator, environment: Environment, following: Sequence[ast.Operator]
) -> Relation:
    """An operator that begins a query."""
    if isinstance(node, ast.Union):
        return unions.union(binder, None, node, environment, following)
    if isinstance(node, ast.Search):
        return searches.search(binder, None, node, environment, following)
    if isinstance(node, ast.Find):
        return searches.find(binder, node, environment)
    if isinstance(node, ast.Evaluate):
        return plugins.evaluate(binder, None, node, environment)
    raise KqlError(f"'{type(node).__name__.lower()}' cannot begin a query.", "SYN0002")


# --------------------------------------------------------------------------------------------- rows


def _where(binder: Binder, relation: Relation, node: ast.Where, environment: Environment) -> Relation:
    """Each conjunct is a filter of its own, so that none computes ahead for rows that another drops.

    Functions over neighbouring rows look at all rows that came in, so with one of them the predicate stays whole.
    """
    predicate = node.predicate
    parts: tuple[ast.Expression, ...] = (predicate,)
    if isinstance(predicate, ast.Logical) and predicate.operator == "and" and not _has_window(predicate):
        parts = predicate.operands
    for part in parts:
        relation = filtered(binder, relation, part, environment)
    return relation


def _has_window(node: ast.Expression) -> bool:
    return any(isinstance(one, ast.Call) and registry.is_window(one.name) for one in nodes(node))


def filtered(binder: Binder, relation: Relation, predicate: ast.Expression, environment: Environment) -> Relation:
    if searches.mentions_any_column(predicate):
        return searches.where_any_column(binder, relation, predicate, environment)
    scope = Scope(binder, relation, environment)
    test = bind_condition(scope, predicate)
    if test.windowed:
        test = scope.hoist(test)
    before = scope.relation
    return Filter(before.columns, before, test.sql, serialized=before.serialized, order=before.order)


def _take(binder: Binder, relation: Relation, node: ast.Take, environment: Environment) -> Relation:
    return limited(relation, _count(binder, node.count, environment))


def _count(binder: Binder, node: ast.Expression, environment: Environment) -> str:
    value = binder.constant_value(node, environment)
    if value.is_constant and isinstance(value.constant, int) and value.constant >= 0:
        return str(value.constant)
    if value.is_constant:
        raise binder.placed(
            KqlError("The number of rows must be a whole number that is not negative.", "SEM0001"), node
        )
    return f"CAST({value.sql} AS BIGINT)"


def _sort(binder: Binder, relation: Relation, node: ast.Sort, environment: Environment) -> Relation:
    scope = Scope(binder, relation, environment)
    keys = sort_keys(scope, node.keys)
    return Sort(relation.columns, scope.relation, keys, serialized=True)


def _top(binder: Binder, relation: Relation, node: ast.Top, environment: Environment) -> Relation:
    scope = Scope(binder, relation, environment)
    keys = sort_keys(scope, node.keys)
    ordered = Sort(relation.columns, scope.relation, keys, serialized=True)
    return Limit(relation.columns, ordered, _count(binder, node.count, environment), serialized=True)


def _count_rows(binder: Binder, relation: Relation, node: ast.Count, environment: Environment) -> Relation:
    column = Column(node.name or "Count", KustoType.LONG, node.name or "Count", nullable=False)
    return Aggregate((column,), relation, (), ((column.identifier, "count(*)"),))


def _serialize(binder: Binder, relation: Relation, node: ast.Serialize, environment: Environment) -> Relation:
    relation = replace(relation, serialized=True)
    return _extended(binder, relation, node.columns, environment) if node.columns else relation


def _nothing(binder: Binder, relation: Relation, node: ast.Operator, environment: Environment) -> Relation:
    return relation


def _render(binder: Binder, relation: Relation, node: ast.Render, environment: Environment) -> Relation:
    binder.render = node
    return relation


def _consume(binder: Binder, relation: Relation, node: ast.Consume, environment: Environment) -> Relation:
    return Filter(relation.columns, relation, "FALSE")


# --------------------------------------------------------------------------------------------- columns


def _extend(binder: Binder, relation: Relation, node: ast.Extend, environment: Environment) -> Relation:
    return _extended(binder, relation, node.columns, environment)


def _extended(binder: Binder, relation: Relation, columns: Sequence[ast.Named], environment: Environment) -> Relation:
    scope = Scope(binder, relation, environment)
    namer = Namer(skip=(column.name for column in relation.columns))
    made: dict[str, Typed] = {}
    for one in columns:
        for given, value in bind_named(scope, one):
            name = given or expression_name(one.expression) or namer.positional()
            if name in made:
                raise binder.placed(KqlError(f"'extend' names two columns '{name}'.", "SEM0034"), one)
            made[name] = value
    return extended_by(scope.relation, made)


def _project(binder: Binder, relation: Relation, node: ast.Project, environment: Environment) -> Relation:
    if node.keyword == "project-rename":
        return _renamed(binder, relation, node)
    scope = Scope(binder, relation, environment)
    namer = Namer(declared_names(node.columns, "project"))
    names: list[str] = []
    values: list[Typed] = []
    for one in node.columns:
        for given, value in bind_named(scope, one):
            names.append(namer.take(given or expression_name(one.expression) or namer.positional()))
            values.append(value)
    return projected(scope.relation, names, values)


def _renamed(binder: Binder, relation: Relation, node: ast.Project) -> Relation:
    new_names: dict[str, str] = {}
    for one in node.columns:
        if not one.names or not isinstance(one.expression, ast.Name):
            raise binder.placed(KqlError("project-rename takes New = Old.", "SEM0001"), one)
        old = one.expression.name
        if relation.column(old) is None:
            known = (column.name for column in relation.columns)
            raise binder.placed(unresolved("column", old, known), one)
        new_names[old] = one.names[0]
    names = [new_names.get(column.name, column.name) for column in relation.columns]
    repeated = next((name for name in new_names.values() if names.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"project-rename would give two columns the name '{repeated}'.", "SEM0034")
    columns = tuple(
        replace(column, name=name, identifier=identifier)
        for column, name, identifier in zip(relation.columns, names, identifiers(names), strict=True)
    )
    items: tuple[Item, ...] = tuple(
        (column.identifier, old.sql) for column, old in zip(columns, relation.columns, strict=True)
    )
    if relation.order:
        items = (*items, (relation.order, quote_name(relation.order)))
    return Project(columns, relation, items, serialized=relation.serialized, order=relation.order)


def _choose(binder: Binder, relation: Relation, node: ast.Choose, environment: Environment) -> Relation:
    return replace(narrowed(relation, chosen_columns(binder, relation, node)), label="")


def _distinct(binder: Binder, relation: Relation, node: ast.Distinct, environment: Environment) -> Relation:
    scope = Scope(binder, relation, environment)
    columns: list[ast.Named] = []
    for one in node.columns:
        if isinstance(one.expression, ast.Pattern):
            columns += [ast.Named(ast.Name(column.name)) for column in relation.columns]
        else:
            columns.append(one)
    namer = Namer(declared_names(columns, "distinct"))
    names, values = [], []
    for one in columns:
        value = bind_expression(scope, one.expression)
        names.append(namer.take((one.names and one.names[0]) or expression_name(one.expression) or namer.positional()))
        values.append(value)
    return summarize.grouped(scope.relation, names, values, [], [])


def _getschema(binder: Binder, relation: Relation, node: ast.GetSchema, environment: Environment) -> Relation:
    names = ("ColumnName", "ColumnOrdinal", "DataType", "ColumnType")
    kinds = (KustoType.STRING, KustoType.LONG, KustoType.STRING, KustoType.STRING)
    rows = [
        (column.name, place, _DATA_TYPES[column.type], column.type.value)
        for place, column in enumerate(relation.columns)
    ]
    return replace(literal_rows(names, kinds, rows), serialized=True)


_DATA_TYPES = {
    KustoType.BOOL: "System.SByte",
    KustoType.INT: "System.Int32",
    KustoType.LONG: "System.Int64",
    KustoType.REAL: "System.Double",
    KustoType.DECIMAL: "System.Data.SqlTypes.SqlDecimal",
    KustoType.DATETIME: "System.DateTime",
    KustoType.TIMESPAN: "System.TimeSpan",
    KustoType.STRING: "System.String",
    KustoType.GUID: "System.Guid",
    KustoType.DYNAMIC: "System.Object",
}


# --------------------------------------------------------------------------------------------- calls and refusals


def _invoke(binder: Binder, relation: Relation, node: ast.Invoke, environment: Environment) -> Relation:
    binding = environment.find(node.call.name)
    if not isinstance(binding, FunctionOf):
        raise KqlError(f"Unknown function: '{node.call.name}'.", "SEM0260")
    return call_function(binder, node.call, binding, environment, first=relation)


def _refused(word: str, why: str) -> Handler:
    def handler(binder: Binder, relation: Relation, node: ast.Operator, environment: Environment) -> Relation:
        raise not_supported(node.keyword if isinstance(node, ast.Unread) else word, why)

    return handler


_HANDLERS: dict[type, Handler] = {
    ast.Where: _where,
    ast.Extend: _extend,
    ast.Project: _project,
    ast.Choose: _choose,
    ast.Sort: _sort,
    ast.Top: _top,
    ast.Take: _take,
    ast.Count: _count_rows,
    ast.Distinct: _distinct,
    ast.Serialize: _serialize,
    ast.Render: _render,
    ast.Consume: _consume,
    ast.GetSchema: _getschema,
    ast.Summarize: summarize.summarize,
    ast.Join: joins.join,
    ast.Union: unions.union,
    ast.Search: searches.search,
    ast.MvExpand: expand.mv_expand,
    ast.MvApply: expand.mv_apply,
    ast.Parse: patterns.parse,
    ast.ParseKv: patterns.parse_kv,
    ast.MakeSeries: series.make_series,
    ast.Evaluate: plugins.evaluate,
    ast.Invoke: _invoke,
    ast.Partition: nested.partition,
    ast.TopNested: nested.top_nested,
    ast.TopHitters: nested.top_hitters,
    ast.Sample: nested.sample,
    ast.Find: _refused("find", "it begins a query"),
    ast.Fork: _refused("fork", "it has several results"),
    ast.Facet: _refused("facet", "it has several results"),
    ast.Reduce: _refused("reduce", "its patterns are not pinned down"),
    ast.Scan: _refused("scan", "its steps have no form in SQL"),
    ast.Unread: _refused("", "it is read by name only"),
}
