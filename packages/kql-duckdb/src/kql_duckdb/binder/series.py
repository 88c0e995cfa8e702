"""`make-series`: aggregates for each step of an axis, as arrays, with a default where there is no row.

Rows are counted by key and bucket first; then each key gets arrays over the whole axis, whose gaps take the default.
Without `from` or `to` an axis begins with the first and ends with the last bucket that the key has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Aggregate, Column, Filter, Item, Project, Relation, identifiers
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_expression
from kql_duckdb.binder.naming import Namer, declared_names, expression_name
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import converted
from kql_duckdb.binder.summarize import AggregateScope, aggregated_columns, grouped
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall
from kql_duckdb.syntax import ast
from kql_duckdb.types import NUMBERS, KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

_BUCKET = "$bucket"
_STRING, _REAL, _DYNAMIC = KustoType.STRING, KustoType.REAL, KustoType.DYNAMIC


@dataclass(frozen=True)
class _Axis:
    value: Typed
    first: Typed | None
    last: Typed | None
    step: Typed

    @property
    def is_time(self) -> bool:
        return self.value.type is KustoType.DATETIME


def make_series(binder: Binder, relation: Relation, node: ast.MakeSeries, environment: Environment) -> Relation:
    """The relation of one `make-series`."""
    scope = Scope(binder, relation, environment)
    axis = _axis(scope, node)
    inside = _inside(scope, axis)
    scope = Scope(binder, inside, environment)
    namer = Namer(
        declared_names([*node.keys, *(one.column for one in node.aggregates if one.column.names)], "make-series"),
        skip=(one.name for one in relation.columns),
    )
    key_names, keys = [], []
    for one in node.keys:
        key_names.append(
            namer.take((one.names and one.names[0]) or expression_name(one.expression) or namer.positional())
        )
        keys.append(bind_expression(scope, one.expression))
    bucket = _bucket(scope, axis)
    result = AggregateScope(scope)
    names: list[str] = []
    values: list[Typed] = []
    defaults: list[Typed | None] = []
    empty = binder.empty_scope(environment)
    for series in node.aggregates:
        for name, value in aggregated_columns(result, series.column):
            names.append(namer.take(name or expression_name(series.column.expression) or namer.positional()))
            values.append(value)
            defaults.append(None if series.default is None else bind_expression(empty, series.default))
    axis_name = (node.axis.names and node.axis.names[0]) or expression_name(node.axis.expression) or "Column1"
    counted = grouped(scope.relation, [*key_names, _BUCKET], [*keys, bucket], names, values, result)
    return _arrays(counted, axis, len(keys), defaults, namer.take(axis_name))


def _axis(scope: Scope, node: ast.MakeSeries) -> _Axis:
    value = bind_expression(scope, node.axis.expression)
    # Bounds stand in the row's filter and over its groups, so they are no columns of either.
    binder, environment = scope.binder, scope.environment
    bounds = [None if one is None else binder.constant_value(one, environment) for one in (node.first, node.last)]
    step = binder.constant_value(node.step, environment)
    if value.type is not KustoType.DATETIME and value.type not in NUMBERS and value.type is not KustoType.TIMESPAN:
        raise not_supported("make-series", f"over a {value.type}")
    if step.is_constant and not step.constant:
        raise scope.binder.placed(KqlError("The step of make-series is 0.", "SEM0001"), node.step)
    if value.type in (KustoType.DATETIME, KustoType.TIMESPAN) and step.type is not KustoType.TIMESPAN:
        raise scope.binder.placed(KqlError(f"The step over a {value.type} must be a timespan.", "SEM0001"), node.step)
    if value.type is KustoType.TIMESPAN:
        raise not_supported("make-series", "over a timespan")
    first, last = (None if one is None else converted(scope, one, value.type) for one in bounds)
    if node.in_range and last is not None:
        # The end of `in range()` belongs to the series, that of `to` does not.
        last = Typed(f"({last.sql} + {step.sql})", last.type)
    return _Axis(value, first, last, step)


def _inside(scope: Scope, axis: _Axis) -> Relation:
    value = axis.value if axis.value.simple else scope.hoist(axis.value)
    tests = [f"{value.sql} IS NOT NULL"]
    tests += [f"{value.sql} >= {axis.first.sql}"] if axis.first is not None else []
    tests += [f"{value.sql} < {axis.last.sql}"] if axis.last is not None else []
    before = scope.relation
    return Filter(before.columns, before, " AND ".join(tests))


def _bucket(scope: Scope, axis: _Axis) -> Typed:
    """The beginning of the step that a row falls into, counted from the first one."""
    value, first, step = axis.value, axis.first, axis.step
    if first is None:
        function = registry.scalar("bin")
        if function is None:
            raise not_supported("bin")
        return function.build(BoundCall("bin", (value, step), (), scope.context("")))
    if axis.is_time:
        return Typed(f"time_bucket({step.sql}, {value.sql}, {first.sql})", value.type)
    return Typed(f"{first.sql} + floor(({value.sql} - {first.sql}) / {step.sql}) * {step.sql}", value.type)


def _arrays(counted: Relation, axis: _Axis, key_count: int, defaults: list[Typed | None], axis_name: str) -> Relation:
    """One row for each key, with an array for each aggregate and one for the axis."""
    key_columns = counted.columns[:key_count]
    bucket = counted.columns[key_count]
    series = counted.columns[key_count + 1 :]
    keys: tuple[Item, ...] = tuple((one.identifier, one.sql) for one in key_columns)
    first = axis.first.sql if axis.first is not None else f"min({bucket.sql})"
    last = axis.last.sql if axis.last is not None else f"max({bucket.sql}) + {axis.step.sql}"
    parts: list[Item] = [("$b", f"list({bucket.sql})"), ("$axis", _steps(axis, first, last))]
    parts += [(f"$s{place}", f"list({one.sql})") for place, one in enumerate(series)]
    collected = Aggregate(key_columns, counted, keys, tuple(parts))
    present = Filter(key_columns, collected, '"$b" IS NOT NULL')
    columns = list(key_columns)
    items = [(one.identifier, one.sql) for one in key_columns]
    new = [*(one.name for one in series), axis_name]
    fresh = identifiers(new, (one.identifier for one in key_columns))
    for place, (name, identifier) in enumerate(zip(new, fresh, strict=True)):
        columns.append(Column(name, _DYNAMIC, identifier, nullable=False))
        if place < len(series):
            items.append((identifier, _filled(series[place], place, defaults[place])))
        else:
            items.append((identifier, f'to_json(list_transform("$axis", lambda t: {_shown(axis)}))'))
    return Project(tuple(columns), present, tuple(items))


def _steps(axis: _Axis, first: str, last: str) -> str:
    if axis.is_time:
        return f"range({first}, {last}, {axis.step.sql})"
    if {axis.value.type, axis.step.type} <= {KustoType.INT, KustoType.LONG}:
        return f"range(CAST({first} AS BIGINT), CAST({last} AS BIGINT), CAST({axis.step.sql} AS BIGINT))"
    count = f"CAST(ceil(({last} - {first}) / {axis.step.sql}) AS BIGINT)"
    return f"list_transform(range({count}), lambda i: {first} + i * {axis.step.sql})"


def _shown(axis: _Axis) -> str:
    return "strftime(t, '%Y-%m-%dT%H:%M:%S.%f') || '0Z'" if axis.is_time else "t"


def _filled(series: Column, place: int, default: Typed | None) -> str:
    """The values of one aggregate along the axis; the NaN of an average over nothing, which JSON lacks, is null."""
    found = f'"$s{place}"[list_position("$b", t)]'
    if default is None:
        default = literal("" if series.type is _STRING else 0, _STRING if series.type is _STRING else KustoType.LONG)
    if series.type is _REAL and default.type in NUMBERS:
        default = Typed(f"CAST({default.sql} AS DOUBLE)", _REAL)
    if series.type is KustoType.TIMESPAN or series.type is KustoType.DATETIME or default.type is not series.type:
        nothing = f"to_json({default.sql})" if default.constant is not None else "NULL"
        chosen = f'CASE WHEN list_contains("$b", t) THEN to_json({found}) ELSE {nothing} END'
    elif series.type is _REAL:
        chosen = f"CASE WHEN isnan({found}) THEN NULL ELSE coalesce({found}, {default.sql}) END"
    else:
        chosen = f"coalesce({found}, {default.sql})"
    return f'to_json(list_transform("$axis", lambda t: {chosen}))'
