"""Operators over one relation that keep, choose, order, group or compute columns, and the way to all the others.

`pipeline` binds the operators after a source in turn, each over a scope of the rows before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kql_duckdb.algebra import Column, Relation, Select, Source, extended_by, key_of, projected
from kql_duckdb.binder import expand, plugins, sources, summarize, tables
from kql_duckdb.binder.expressions import bind_condition, bind_constant, bind_expression, bind_named, value_outside
from kql_duckdb.binder.naming import Namer, declared_names, expression_name, matches
from kql_duckdb.binder.scope import FunctionOf, Scope, unresolved
from kql_duckdb.binder.summarize import AggregateScope, aggregated_columns, grouped
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast
from kql_duckdb.types import DYNAMIC, LONG, STRING, KustoType

Handler = Callable[[Scope, Any], Relation]


def pipeline(scope: Scope, steps: Sequence[ast.Construct]) -> Relation:
    """The relation after all `steps`. A name given by `as` is known to the steps behind it."""
    binder, relation, environment = scope.binder, scope.relation, scope.environment
    for step in steps:
        with binder.at(step):
            if step.word == "as":
                relation = replace(binder.shared(relation), label=step.name)
                environment = environment | {step.name: relation}
            elif step.word == "render":
                binder.render = step
            elif step.word in _HANDLERS:
                relation = _HANDLERS[step.word](Scope(binder, relation, environment), step)
            else:
                raise not_supported(step.word, _WHY.get(step.word, "it is read by name only"))
    return relation


def source(scope: Scope, node: ast.Expression, following: Sequence[ast.Construct]) -> Relation:
    """What a pipeline begins with, which the operators `following` read."""
    if isinstance(node, ast.Name):
        return sources.named(scope, node.name)
    if isinstance(node, ast.Call):
        is_let = isinstance(scope.environment.get(node.name), FunctionOf)
        return (sources.called if is_let else _TABULAR.get(node.name.lower(), sources.called))(scope, node)
    if isinstance(node, ast.Qualified):
        owner: ast.Expression = node
        while isinstance(owner, ast.Qualified):
            owner = owner.owner
        place = owner.name if isinstance(owner, (ast.Call, ast.Name)) else "cluster"
        raise not_supported(place, "another place of tables")
    if isinstance(node, ast.Pattern):
        node = ast.construct("union", inputs=(node,))
    if isinstance(node, ast.Construct):
        if node.word == "union":
            return tables.union(scope, node, following, leads=True)
        if node.word == "search":
            return tables.search(scope, node, following, leads=True)
        if node.word == "evaluate":
            raise plugins.refusal(node)
        if node.word in _LEADING:
            return _LEADING[node.word](scope, node)
        raise not_supported("externaldata", "it reads data from outside")
    raise KqlError("A table is needed here, and this is a value.", "SEM0010")


def _where(scope: Scope, node: ast.Construct) -> Relation:
    """Each conjunct is a filter of its own, so that none computes ahead for rows that another drops.

    Functions over neighbouring rows look at all rows that came in, so with one of them the predicate stays whole.
    """
    predicate = node.predicate
    parts: tuple[ast.Expression, ...] = (predicate,)
    windowed = any(isinstance(one, ast.Call) and registry.is_window(one.name) for one in ast.nodes(predicate))
    if isinstance(predicate, ast.Operation) and predicate.operator == "and" and not windowed:
        parts = predicate.operands
    relation = scope.relation
    for part in parts:
        inner = scope.over(relation)
        found = tables.where_any_column(inner, part)
        if found is None:
            test = bind_condition(inner, part)
            test = inner.hoist(test) if test.windowed else test
            found = inner.relation.filtered(test.sql)
        relation = found
    return relation


def _count(scope: Scope, node: ast.Expression) -> str:
    value = value_outside(scope, node)
    if value.is_constant and isinstance(value.constant, int) and value.constant >= 0:
        return str(value.constant)
    if value.is_constant:
        raise scope.binder.fault(node, "The number of rows must be a whole number that is not negative.")
    return f"CAST({value.sql} AS BIGINT)"


def _sort(scope: Scope, node: ast.Construct) -> Relation:
    """Descending and, of ascending keys, nulls first unless the query says otherwise."""
    keys = []
    for key in node.keys:
        value = bind_expression(scope, key.expression)
        if value.type is DYNAMIC:
            message = "'sort': a dynamic has no order; convert it first, with tostring(), tolong() or todouble()."
            raise scope.binder.fault(key, message)
        ascending = key.direction == "asc"
        nulls = key.nulls or ("first" if ascending else "last")
        text = (scope.hoist(value) if value.windowed else key_of(value)).sql
        keys.append(f"{text} {'ASC' if ascending else 'DESC'} NULLS {nulls.upper()}")
    return scope.relation.sorted(keys)


def _count_rows(scope: Scope, node: ast.Construct) -> Relation:
    column = Column(node.name or "Count", LONG, node.name or "Count", nullable=False)
    return scope.relation.aggregated((column,), (), ((column.identifier, "count(*)"),))


def _serialize(scope: Scope, node: ast.Construct) -> Relation:
    relation = replace(scope.relation, serialized=True)
    return _extend(scope.over(relation), node) if node.columns else relation


def _extend(scope: Scope, node: ast.Construct) -> Relation:
    namer = Namer(skip=scope.columns)
    made: dict[str, Typed] = {}
    for one in node.columns:
        for value in bind_named(scope, one):
            name = value.name or expression_name(one.expression) or namer.positional()
            if name in made:
                raise scope.binder.fault(one, f"'extend' names two columns '{name}'.", "SEM0034")
            made[name] = value
    return extended_by(scope.relation, made)


def _project(scope: Scope, node: ast.Construct) -> Relation:
    namer = Namer(declared_names(node.columns, "project"))
    made = [value.named(namer.of(one, value.name)) for one in node.columns for value in bind_named(scope, one)]
    return projected(scope.relation, made)


def _renamed(scope: Scope, node: ast.Construct) -> Relation:
    relation, new_names = scope.relation, {}
    for one in node.columns:
        if not one.names or not isinstance(one.expression, ast.Name):
            raise scope.binder.fault(one, "project-rename takes New = Old.")
        if relation.column(one.expression.name) is None:
            raise scope.binder.placed(unresolved("column", one.expression.name, scope.columns), one)
        new_names[one.expression.name] = one.names[0]
    names = [new_names.get(column.name, column.name) for column in relation.columns]
    repeated = next((name for name in new_names.values() if names.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"project-rename would give two columns the name '{repeated}'.", "SEM0034")
    return projected(relation, (one.typed.named(name) for one, name in zip(relation.columns, names, strict=True)))


def _choose(scope: Scope, node: ast.Construct) -> Relation:
    """`project-away`, `project-keep` and `project-reorder`. Raises KqlError for an unknown name."""
    columns = list(scope.relation.columns)
    chosen: list[Column] = []
    for wanted in node.columns:
        chosen += [column for column in _wanted(scope, columns, wanted) if column not in chosen]
    if node.word == "project-keep":
        return scope.relation.narrowed(column for column in columns if column in chosen)
    others = [column for column in columns if column not in chosen]
    return scope.relation.narrowed(others if node.word == "project-away" else [*chosen, *others])


def _wanted(scope: Scope, columns: list[Column], wanted: ast.Named) -> list[Column]:
    node = wanted.expression
    if isinstance(node, ast.Name):
        scope.needed(node)
        return [column for column in columns if column.name == node.name]
    assert isinstance(node, ast.Pattern)
    found = [column for column in columns if matches(node.pattern, column.name)]
    if wanted.direction:
        key = _natural if wanted.direction.startswith("granny") else str
        found.sort(key=lambda one: key(one.name), reverse=wanted.direction.endswith("desc"))
    return found


def _natural(name: str) -> Any:
    """`granny` order: numbers inside names count as numbers, so a20 comes before a100."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _distinct(scope: Scope, node: ast.Construct) -> Relation:
    columns: list[ast.Named] = []
    for one in node.columns:
        star = isinstance(one.expression, ast.Pattern)
        columns += [ast.Named(ast.Name(column.name)) for column in scope.relation.columns] if star else [one]
    namer = Namer(declared_names(columns, "distinct"))
    return grouped(scope.relation, [bind_expression(scope, one.expression).named(namer.of(one)) for one in columns])


_WORDS = "SByte Int32 Int64 Double Data.SqlTypes.SqlDecimal DateTime TimeSpan String Guid Object"
_DATA_TYPES = {kind: f"System.{word}" for kind, word in zip(KustoType, _WORDS.split(), strict=True)}


def _getschema(scope: Scope, node: ast.Construct) -> Relation:
    names = ("ColumnName", "ColumnOrdinal", "DataType", "ColumnType")
    kinds = (STRING, LONG, STRING, STRING)
    cells = (
        (one.name, place, _DATA_TYPES[one.type], one.type.value) for place, one in enumerate(scope.relation.columns)
    )
    rows = [[literal(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in cells]
    return replace(sources.rows_of(names, kinds, rows), serialized=True)


def _partition(scope: Scope, node: ast.Construct) -> Relation:
    """The query over the rows of each value of the key, and all answers together."""
    binder = scope.binder
    if not isinstance(node.key, ast.Name):
        raise not_supported("partition", "by something else than a column")
    if not node.body:
        raise not_supported("partition", "with a query of its own source; write partition by Column (operators)")
    key = scope.relation.column(node.key.name)
    if key is None:
        raise binder.placed(unresolved("column", node.key.name, scope.columns), node.key)
    rows = binder.shared(scope.relation)
    group = quote_name(f"$group{binder.number()}")
    test = f" AS p WHERE p.{key.sql} IS NOT DISTINCT FROM {group}.k"
    of_group = Source(rows.columns, ("SELECT * FROM ", rows, test), whole=True, serialized=rows.serialized)
    inner = binder.lateral(scope.over(of_group), node.body)
    result = quote_name(f"$part{binder.number()}")
    head, middle = f"(SELECT DISTINCT {key.sql} AS k FROM ", f" AS d) AS {group}, LATERAL "
    groups = Source((), (head, rows, middle, inner, f" AS {result}"))
    return groups.computed(inner.columns, (f"{result}.{one.sql}" for one in inner.columns))


def _sample_distinct(scope: Scope, node: ast.Construct) -> Relation:
    """Some different values: which ones is not promised, so they are the first."""
    count = _count(scope, node.count)
    key = bind_expression(scope, node.key.expression).named(Namer().of(node.key))
    return grouped(scope.relation, [key]).limited(count)


def _top_hitters(scope: Scope, node: ast.Construct) -> Relation:
    """The values that come oftenest, or with the largest sum of a weight; here exactly so."""
    key = bind_expression(scope, node.key.expression).named(Namer().of(node.key))
    call = ast.Call("count") if node.weight is None else ast.Call("sum", (ast.Argument(node.weight),))
    result = AggregateScope(scope)
    total = bind_expression(result, call).named(f"approximate_{call.name}_{key.name}")
    counted = grouped(scope.relation, [key], [total], result)
    count = bind_constant(scope.outside(), node.count, "The number of values")
    ordered = counted.sorted((f"{counted.columns[1].sql} DESC NULLS LAST",))
    return ordered.limited(str(int(count)))


def _top_nested(scope: Scope, node: ast.Construct) -> Relation:
    """The first values of one expression, then within each of them the first of the next, each with its aggregate."""
    rows = scope.binder.shared(scope.relation)
    namer, names = Namer(), list[str]()
    parts: list[Relation] = []
    for level in node.levels:
        if level.others is not None:
            raise scope.binder.placed(not_supported("top-nested with others"), level)
        key, order = namer.of(level.key), level.order
        names += [key, namer.take(order.names[0] if order.names else f"aggregated_{key}")]
        inner = scope.over(rows)
        above = zip(node.levels, names[::2], strict=False)
        keys = [bind_expression(inner, one.key.expression).named(name) for one, name in above]
        parts.append(_level(inner, keys, level, names[-1]))
    values: list[Typed] = []
    pieces: list[str | Relation] = []
    for depth, part in enumerate(parts):
        shown = zip(part.columns[depth:], names[2 * depth :], strict=False)
        values += [replace(one.typed, sql=f"t{depth}.{one.sql}", name=name) for one, name in shown]
        pieces += [" JOIN " if depth else "", part, f" AS t{depth}"]
        if depth:
            both = zip(part.columns[:depth], parts[depth - 1].columns, strict=False)
            same = (f"t{depth}.{one.sql} IS NOT DISTINCT FROM t{depth - 1}.{two.sql}" for one, two in both)
            pieces.append(f" ON {' AND '.join(same)}")
    return projected(Source((), tuple(pieces)), values)


def _level(scope: Scope, keys: list[Typed], level: ast.Construct, aggregate: str) -> Relation:
    """The keys down to a level and its aggregate, of the first values within each combination of those above."""
    result = AggregateScope(scope)
    (total,) = aggregated_columns(result, ast.Named(level.order.expression, (f"{aggregate} ",)))
    made = grouped(scope.relation, keys, [total], result)
    if level.count is None:
        return made
    count = bind_constant(scope.outside(), level.count, "The number of values")
    above = ", ".join(one.sql for one in made.columns[: len(keys) - 1])
    within = f"PARTITION BY {above} " if above else ""
    order = "ASC NULLS FIRST" if level.order.direction == "asc" else "DESC NULLS LAST"
    rank = f"row_number() OVER ({within}ORDER BY {made.columns[-1].sql} {order})"
    return Select(made.columns, made, tail=f" QUALIFY {rank} <= {int(count)}")


def _invoke(scope: Scope, node: ast.Construct) -> Relation:
    binding = scope.environment.get(node.call.name)
    if not isinstance(binding, FunctionOf):
        raise registry.unknown(node.call.name)
    return sources.call_function(scope, node.call, binding, scope.relation)


_WHY = {
    **dict.fromkeys(("fork", "facet"), "it has several results"),
    "find": "it begins a query",
    "reduce": "its patterns are not pinned down",
    "scan": "its steps have no form in SQL",
}
_TABULAR: dict[str, Callable[[Scope, ast.Call], Relation]] = {
    "materialize": sources.materialized,
    "table": sources.table_named,
    "_getwatchlist": plugins.watchlist,
}
_LEADING: dict[str, Handler] = {
    "datatable": sources.datatable, "range": sources.number_range, "find": tables.find,
    "print": lambda scope, node: sources.printed(scope, node.columns),
}  # fmt: skip
_HANDLERS: dict[str, Handler] = {
    "where": _where, "filter": _where, "extend": _extend, "project": _project, "project-rename": _renamed,
    **dict.fromkeys(("project-away", "project-keep", "project-reorder"), _choose),
    "sort": _sort, "order": _sort, "count": _count_rows, "distinct": _distinct, "serialize": _serialize,
    "top": lambda scope, node: _sort(scope, node).limited(_count(scope, node.count)),
    **dict.fromkeys(("take", "limit", "sample"), lambda scope, node: scope.relation.limited(_count(scope, node.count))),
    "summarize": summarize.summarize, "make-series": summarize.make_series, "join": tables.join, "lookup": tables.join,
    "union": tables.union, "search": tables.search, "parse": expand.parse, "parse-where": expand.parse,
    **dict.fromkeys(("mv-expand", "mvexpand"), lambda scope, node: expand.expanded(scope, node)[0]),
    "mv-apply": expand.mv_apply, "mvapply": expand.mv_apply, "getschema": _getschema,
    "parse-kv": expand.parse_kv, "evaluate": plugins.evaluate, "invoke": _invoke, "partition": _partition,
    "top-nested": _top_nested, "top-hitters": _top_hitters, "sample-distinct": _sample_distinct,
    "consume": lambda scope, node: scope.relation.filtered("FALSE").unordered(),
}  # fmt: skip
