"""`summarize` and `make-series`: keys, aggregates and expressions over aggregates.

An expression of `summarize` is bound twice as it were: what stands inside an aggregate over the rows, the rest over
the result, in which each aggregate is a column. Where all aggregates are bare there is no second step. `make-series`
counts rows by key and bucket first; then each key gets arrays over the whole axis, whose gaps take the default. Without
`from` or `to` an axis begins with the first and ends with the last bucket that the key has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kql_duckdb.algebra import Column, Item, Relation, Select, key_of, made_columns, projected
from kql_duckdb.binder.expressions import bind_expression, bound_call, value_outside, with_names
from kql_duckdb.binder.naming import Namer, declared_names
from kql_duckdb.binder.scope import Environment, Rows, Scope
from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, column, literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import AggregateFunction, BoundCall
from kql_duckdb.syntax import ast
from kql_duckdb.types import DATETIME, DYNAMIC, INTEGERS, LONG, NUMBERS, REAL, STRING, TIMESPAN

_OF_ROWS = frozenset(("arg_max", "arg_min", "argmax", "argmin", "take_any", "any", "anyif", "take_anyif"))
"""Aggregates that give columns of a row, and so take `*`."""
_ORDERED = ("make_list", "makelist", "make_set", "makeset", "make_bag", "make_dictionary", "take_any")


class AggregateScope(Scope):
    """The result of the aggregates, which are added to it as they are met."""

    def __init__(self, inner: Scope) -> None:
        super().__init__(inner.binder, Rows(inner.binder, _RESULT), inner.environment, {})
        self.inner = Scope(inner.binder, inner.rows, inner.environment, inner.columns)
        self.inner.in_aggregate = True
        self.aggregates: dict[str, str] = {}
        """SQL of an aggregate -> its hidden column."""

    def aggregate(self, node: ast.Call) -> Typed | None:
        function = registry.aggregate(node.name)
        if function is None:
            return None
        return self.added(function.build(aggregate_call(self.inner, function, node)))

    def added(self, value: Typed) -> Typed:
        name = self.aggregates.setdefault(value.sql, f"$agg{len(self.aggregates)}")
        return column(f'"{name}"', value.type, nullable=value.nullable, name=value.name)

    def inside(self, environment: Environment) -> Scope:
        made = AggregateScope(self.inner.inside(environment))
        made.rows, made.aggregates = self.rows, self.aggregates
        return made

    def after(self, computed: Relation) -> Relation:
        """`computed`, which holds the aggregates, with what was hoisted over them."""
        hoisted, relation = [], self.rows.relation
        while isinstance(relation, Select):
            hoisted.append(relation.items)
            relation = relation.input
        for items in reversed(hoisted):
            computed = Select(computed.columns, computed, items)
        return computed


_RESULT = Relation(())
"""Stands for the result of the aggregates until it is made."""


def aggregate_call(scope: Scope, function: AggregateFunction, node: ast.Call) -> BoundCall:
    """The call over the rows; a star is left out for `count(*)` and is all columns for the aggregates of rows."""
    arguments = tuple(one for one in node.arguments if not isinstance(one.value, ast.Pattern))
    call = bound_call(scope, function, replace(node, arguments=arguments))
    if node.name.lower().startswith(_ORDERED) and scope.relation.serialized:
        call = replace(call, context=scope.context(ordered=True))
    return call


def summarize(scope: Scope, node: ast.Construct) -> Relation:
    spelled = declared_names([*node.keys, *(one for one in node.aggregates if one.names)], "summarize")
    namer = Namer(spelled, skip=scope.columns)
    keys = []
    for one in node.keys:
        value = bind_expression(scope, one.expression)
        if value.windowed:
            value = scope.hoist(value)
        elif node.bin is not None and value.type in (DATETIME, TIMESPAN):
            value = scope.built("bin", value, bind_expression(scope, node.bin))
        keys.append(value.named(namer.of(one)))
    # A star leaves out the columns that are keys as they are.
    bare = frozenset(one.expression.name for one in node.keys if isinstance(one.expression, ast.Name))
    result = AggregateScope(scope)
    made = [(one, value) for one in node.aggregates for value in aggregated_columns(result, one, bare)]
    return grouped(scope.relation, keys, [value.named(namer.of(one, value.name)) for one, value in made], result)


def aggregated_columns(result: AggregateScope, one: ast.Named, keys: frozenset[str] = frozenset()) -> list[Typed]:
    """The columns of one expression, each with the name that the query or the aggregate gives it."""
    node = one.expression
    function = registry.aggregate(node.name) if isinstance(node, ast.Call) else None
    if function is None or not isinstance(node, ast.Call):
        return with_names(result, one, [bind_expression(result, node).named("")])
    with result.binder.at(node):
        call = aggregate_call(result.inner, function, node)
        if node.name.lower() in _OF_ROWS and any(isinstance(one.value, ast.Pattern) for one in node.arguments):
            given = keys.union(one.name for one in call.arguments)
            others = (value for name, value in result.inner.columns.items() if name not in given)
            call = replace(call, arguments=(*call.arguments, *others))
        default = function.default_column_name(call.arguments[0].name if call.arguments else "")
        made = [value.named(name or default) for name, value in function.build_columns(call)]
    return [result.added(value) for value in with_names(result, one, made)]


def grouped(
    relation: Relation, keys: Sequence[Typed], values: Sequence[Typed] = (), result: AggregateScope | None = None
) -> Relation:
    """One row for each combination of `keys`, with `values` over the aggregates of `result`."""
    keys = [key_of(one) for one in keys]
    columns = made_columns([*keys, *values])
    key_columns = columns[: len(keys)]
    items = tuple((one.identifier, value.sql) for one, value in zip(columns, [*keys, *values], strict=True))
    aggregates = {} if result is None else {f'"{name}"': sql for sql, name in result.aggregates.items()}
    if all(value.sql in aggregates for value in values):
        bare = tuple((name, aggregates[sql]) for name, sql in items[len(keys) :])
        return relation.aggregated(columns, items[: len(keys)], bare)
    assert result is not None
    inner = tuple((name, sql) for sql, name in result.aggregates.items())
    computed = relation.aggregated(key_columns, items[: len(keys)], inner)
    shown = (*(one.sql for one in key_columns), *(value.sql for value in values))
    return result.after(computed).computed(columns, shown)


_BUCKET = "$bucket"


@dataclass(frozen=True)
class _Axis:
    """What a series runs along, in SQL: `value` in a row, up to but without `last`."""

    value: Typed
    first: str
    last: str
    step: Typed

    @property
    def is_time(self) -> bool:
        return self.value.type is DATETIME

    def tests(self, value: Typed) -> str:
        """Whether the value of a row is on the axis."""
        tests = [f"{value.sql} IS NOT NULL"]
        tests += [f"{value.sql} >= {self.first}"] if self.first else []
        tests += [f"{value.sql} < {self.last}"] if self.last else []
        return " AND ".join(tests)

    def bucket(self, scope: Scope) -> Typed:
        """The beginning of the step that a row falls into, counted from the first one."""
        value, first, step = self.value, self.first, self.step.sql
        if not first:
            return scope.built("bin", value, self.step)
        if self.is_time:
            return Typed(f"time_bucket({step}, {value.sql}, {first})", value.type)
        return Typed(f"{first} + floor(({value.sql} - {first}) / {step}) * {step}", value.type)

    def steps(self, bucket: Column) -> str:
        """A list of all steps, given the column with the buckets of one key."""
        first, step = self.first or f"min({bucket.sql})", self.step.sql
        last = self.last or f"max({bucket.sql}) + {step}"
        if self.is_time:
            return f"range({first}, {last}, {step})"
        if {self.value.type, self.step.type} <= INTEGERS:
            return f"range(CAST({first} AS BIGINT), CAST({last} AS BIGINT), CAST({step} AS BIGINT))"
        count = f"CAST(ceil(({last} - {first}) / {step}) AS BIGINT)"
        return f"list_transform(range({count}), lambda i: {first} + i * {step})"


def make_series(scope: Scope, node: ast.Construct) -> Relation:
    axis = _axis(scope, node)
    skip = list(scope.columns)
    test = axis.tests(scope.simple(axis.value))
    scope = scope.over(scope.relation.filtered(test).unordered())
    declared = [*node.keys, *(one.column for one in node.aggregates if one.column.names)]
    namer = Namer(declared_names(declared, "make-series"), skip=skip)
    names = [namer.of(one) for one in node.keys]
    keys = [bind_expression(scope, one.expression).named(name) for one, name in zip(node.keys, names, strict=True)]
    keys.append(axis.bucket(scope).named(_BUCKET))
    result = AggregateScope(scope)
    values: list[Typed] = []
    defaults: list[Typed | None] = []
    for series in node.aggregates:
        for value in aggregated_columns(result, series.column):
            values.append(value.named(namer.of(series.column, value.name)))
            defaults.append(None if series.default is None else bind_expression(scope.outside(), series.default))
    counted = grouped(scope.relation, keys, values, result)
    return _arrays(counted, axis, len(names), defaults, namer.of(node.axis))


def _axis(scope: Scope, node: ast.Construct) -> _Axis:
    value = bind_expression(scope, node.axis.expression)
    # Bounds stand in the row's filter and over its groups, so they are no columns of either.
    bounds = [None if one is None else value_outside(scope, one) for one in (node.first, node.last)]
    step = value_outside(scope, node.step)
    if value.type is not DATETIME and value.type not in NUMBERS and value.type is not TIMESPAN:
        raise not_supported("make-series", f"over a {value.type}")
    if step.is_constant and not step.constant:
        raise scope.binder.fault(node.step, "The step of make-series is 0.")
    if value.type in (DATETIME, TIMESPAN) and step.type is not TIMESPAN:
        raise scope.binder.fault(node.step, f"The step over a {value.type} must be a timespan.")
    if value.type is TIMESPAN:
        raise not_supported("make-series", "over a timespan")
    first, last = ("" if one is None else scope.converted(one, value.type).sql for one in bounds)
    # The end of `in range()` belongs to the series, that of `to` does not.
    return _Axis(value, first, f"({last} + {step.sql})" if node.in_range and last else last, step)


def _arrays(counted: Relation, axis: _Axis, key_count: int, defaults: list[Typed | None], axis_name: str) -> Relation:
    """One row for each key, with an array for each aggregate and one for the axis."""
    keys, bucket, series = counted.columns[:key_count], counted.columns[key_count], counted.columns[key_count + 1 :]
    parts: list[Item] = [("$b", f"list({bucket.sql})"), ("$axis", axis.steps(bucket))]
    parts += [(f"$s{place}", f"list({one.sql})") for place, one in enumerate(series)]
    by = tuple((one.identifier, one.sql) for one in keys)
    present = counted.aggregated(keys, by, tuple(parts)).filtered('"$b" IS NOT NULL')
    values = [one.typed for one in keys]
    values += [_filled(one, place, default) for place, (one, default) in enumerate(zip(series, defaults, strict=True))]
    time = "strftime(t, '%Y-%m-%dT%H:%M:%S.%f') || '0Z'" if axis.is_time else "t"
    times = f'to_json(list_transform("$axis", lambda t: {time}))'
    return projected(present, [*values, Typed(times, DYNAMIC, nullable=False, name=axis_name)])


def _filled(series: Column, place: int, default: Typed | None) -> Typed:
    """The values of one aggregate along the axis; the NaN of an average over nothing, which JSON lacks, is null."""
    found = f'"$s{place}"[list_position("$b", t)]'
    if default is None:
        default = literal("" if series.type is STRING else 0, STRING if series.type is STRING else LONG)
    if series.type is REAL and default.type in NUMBERS:
        default = Typed(f"CAST({default.sql} AS DOUBLE)", REAL)
    if series.type is TIMESPAN or series.type is DATETIME or default.type is not series.type:
        nothing = f"to_json({default.sql})" if default.constant is not None else "NULL"
        chosen = f'CASE WHEN list_contains("$b", t) THEN to_json({found}) ELSE {nothing} END'
    elif series.type is REAL:
        chosen = f"CASE WHEN isnan({found}) THEN NULL ELSE coalesce({found}, {default.sql}) END"
    else:
        chosen = f"coalesce({found}, {default.sql})"
    return Typed(f'to_json(list_transform("$axis", lambda t: {chosen}))', DYNAMIC, nullable=False, name=series.name)
