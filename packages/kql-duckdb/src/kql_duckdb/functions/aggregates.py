"""Functions over rows: aggregates of a group, and those over neighbouring rows such as `prev` and `row_number`.

Source: the Kusto pages named like the functions, and what was measured on Kusto for groups without a value: a sum is 0,
an average NaN, a deviation 0, a collection empty. Aggregates that are estimates in Azure are exact here. Functions over
neighbouring rows need an order that counts (`Context.row_order`); what is computed over another window first is a
column of its own (`Context.hoisted`), because SQL has no window inside a window.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import condition, convert, json_value, present
from kql_duckdb.functions.definitions import (
    ARGUMENT_KINDS,
    ArgumentKind,
    BoundCall,
    Output,
    aggregate,
    aggregated_over,
    fill,
    listed,
    python,
    rows,
    scalar,
)
from kql_duckdb.functions.dynamics import MAX_ARRAY, merged
from kql_duckdb.types import BOOL, DATETIME, DYNAMIC, GUID, INT, LONG, NUMBERS, REAL, STRING, TIMESPAN, KustoType

_EXACT_HERE = "exact here, an estimate in Azure for large groups"


def _ordered(call: BoundCall, place: int, value: Typed) -> Typed:
    if value.type is DYNAMIC:
        why = "a dynamic has no order; convert it with tolong(), todatetime() or tostring()"
        raise not_supported(f"{call.name}() of a dynamic", why)
    return value


ARGUMENT_KINDS["ordered"] = ArgumentKind(None, _ordered)


@aggregate("binary_all_and|binary_all_or|binary_all_xor(expr: to_long)", prefix="")
def _bits(call: BoundCall) -> Typed:
    return aggregated_over(f"bit_{call.name.removeprefix('binary_all_')}({{0}})", LONG, *call.arguments)


def _any_columns(call: BoundCall) -> Output:
    """One column for each argument."""
    prefix = "any_" if call.name == "any" else ""
    return tuple((f"{prefix}{one.name}", _any(replace(call, arguments=(one,)))) for one in call.arguments)


@aggregate("take_any(expr: any...)", columns=_any_columns, prefix="")
@aggregate("any(expr: any...)", columns=_any_columns)
@aggregate("take_anyif(expr: any, predicate: condition)", prefix="")
@aggregate("anyif(expr: any, predicate: condition)")
def _any(call: BoundCall) -> Typed:
    value = call.arguments[0]
    return aggregated_over("any_value({0}){?}", value.type, value, only=call.predicate)


def _row_of_extreme(call: BoundCall) -> Output:
    """The extreme, and the other arguments at the first row that has it; at the first row where it is always null."""
    extreme, *returned = call.arguments
    word = "max" if call.name.endswith("max") else "min"
    old = f"{word}_{extreme.name}" if not call.name.startswith("arg_") else ""
    columns = [(old or extreme.name or f"{word}_", aggregated_over(f"{word}({{0}})", extreme.type, extreme))]
    found = f"CASE WHEN count({{1}}) > 0 THEN arg_{word}_null({{0}}, {{1}}) ELSE first({{0}}) END"
    for one in returned:
        columns.append((f"{old}_{one.name}" if old else one.name, aggregated_over(found, one.type, one, extreme)))
    return tuple(columns)


@aggregate("arg_max|arg_min|argmax|argmin(extreme: ordered, returned?: any...)", columns=_row_of_extreme, prefix="")
def _extreme_of_row(call: BoundCall) -> Typed:
    return _row_of_extreme(call)[0][1]


# Collections. A list of values as DuckDB holds them becomes one of JSON elements at the end, so that a set of five of a
# million rows makes JSON of five.

_PLAIN = frozenset((STRING, LONG, INT, BOOL, GUID, DYNAMIC))
_FIRST = 10_000
(_IN_ORDER,) = rows("set.sql")


def _array(kind: KustoType, values: str, size: str) -> str:
    """SQL of the JSON array of the first values of a list."""
    first = f"list_slice({values}, 1, {size})"
    if kind in _PLAIN:
        return f"to_json({first})"
    return f"to_json(list_transform({first}, lambda _v: {json_value(Typed('_v', kind, simple=True)).sql}))"


def _parts(values: str) -> str:
    """An array among dynamic values stands for its elements."""
    return f"flatten(list_transform({values}, lambda _v: coalesce(TRY_CAST(_v AS JSON[]), [_v])))"


def _listed(value: str, tests: Sequence[str]) -> str:
    only = f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""
    return f"coalesce(list({value}){only}, [])"


def _collected(call: BoundCall, *values: Typed) -> tuple[tuple[Typed, ...], list[str], str]:
    """What a template reads (`values`, condition, size), SQL of what tells the rows to collect, and of the size."""
    value, *rest = call.arguments
    tests = {DYNAMIC: ["({0} ->> '$') IS NOT NULL"], STRING: []}.get(value.type, ["{0} IS NOT NULL"])
    if call.predicate is not None:
        tests = [*tests, f"{{{len(values)}}}"]
        values = (*values, call.predicate)
    size = rest[0] if rest else literal(128 if call.name in ("makelist", "makeset") else MAX_ARRAY, LONG)
    return (*values, size), tests, f"least({{{len(values)}}}, {MAX_ARRAY})"


@aggregate("make_list[_if]|makelist(expr: any, maxSize?: long)", prefix="list")
def _list(call: BoundCall) -> Typed:
    value = present(call.arguments[0])
    read, tests, size = _collected(call, value)
    return aggregated_over(_array(value.type, _listed("{0}", tests), size), DYNAMIC, *read, nullable=False)


@aggregate("make_list_with_nulls(expr: any)", prefix="list")
def _list_with_nulls(call: BoundCall) -> Typed:
    value = call.arguments[0]
    return aggregated_over(_array(value.type, _listed("{0}", ()), str(MAX_ARRAY)), DYNAMIC, value, nullable=False)


_SET_ORDER = f"elements as they first appear in the first {_FIRST:,} rows, then others by value; in no order in Azure"


@aggregate("make_set[_if]|makeset(expr: any, maxSize?: long)", prefix="set", note=_SET_ORDER)
def _set(call: BoundCall) -> Typed:
    value = call.arguments[0]
    row = call.context.hoisted(Typed("row_number() OVER ()", LONG), call.name)
    read, tests, size = _collected(call, value, present(value), row)
    # DISTINCT over the column as it stands reads DuckDB's dictionaries, which a null made a text would not.
    found = _listed("DISTINCT {0}", tests)
    first = _listed("struct_pack(i := {2}, v := {1})", [*tests, f"{{2}} <= {_FIRST}"])  # threads mix the rows
    head = f"list_transform(list_sort({first}), lambda _p: _p.v)"
    if value.type is DYNAMIC:
        found, head = f"list_distinct({_parts(found)})", _parts(head)
    elif value.type is STRING and value.nullable:
        found = f"list_distinct(list_transform({found}, lambda _v: coalesce(_v, '')))"
    ordered = _IN_ORDER.replace("{found}", found).replace("{head}", head).replace("{size}", size)
    return aggregated_over(_array(value.type, ordered, size), DYNAMIC, *read, nullable=False)


@aggregate("make_bag[_if](expr: dynamic, maxSize?: long)", prefix="bag")
@aggregate("make_dictionary(expr: dynamic, maxSize?: long)", prefix="dictionary")
def _bag(call: BoundCall) -> Typed:
    """Of several values for one key the first stays; Kusto leaves open which."""
    read, tests, size = _collected(call, call.arguments[0])
    bags = _listed("{0}", ["json_type({0}) = 'OBJECT'", *tests[1:]])
    return aggregated_over(f"kql_bag_of({bags}, {size})", DYNAMIC, *read, nullable=False)


def _percentile(call: BoundCall, percent: Typed) -> Typed:
    """By nearest rank."""
    value = call.arguments[0]
    known = percent.is_constant and percent.type in NUMBERS and percent.constant is not None
    if not known or not 0 <= float(percent.constant) <= 100:
        raise call.invalid("a percentile must be a constant from 0 to 100.", "SEM0207")
    share = f"CAST({float(percent.constant) / 100!r} AS DOUBLE)"
    if not _weighted(call):
        return aggregated_over(f"quantile_disc({{0}}, {share})", value.type, value)
    if value.type not in (*NUMBERS, DATETIME, TIMESPAN):
        raise call.invalid(f"a value of type {value.type} has no weight.", "SEM0201")
    inside = "ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL AND {1} > 0)"
    place = f"kql_place_of_share(list({{1}} {inside}, {share})"
    return aggregated_over(f"(list({{0}} {inside})[{place}]", value.type, value, convert(call.arguments[1], LONG))


def _weighted(call: BoundCall) -> bool:
    return call.name.startswith(("percentilew", "percentilesw"))


def _percents(call: BoundCall) -> list[Typed]:
    given = list(call.arguments[2 if _weighted(call) else 1 :])
    listed = given[0].constant if len(given) == 1 and given[0].type is DYNAMIC and given[0].is_constant else None
    if isinstance(listed, list) and all(type(one) in (int, float) for one in listed):
        return [literal(float(one), REAL) for one in listed]
    return given


def _percentile_columns(call: BoundCall) -> Output:
    columns = []
    for percent in _percents(call):
        value = _percentile(call, percent)
        name = f"percentile_{call.arguments[0].name}_{percent.constant:g}".replace(".", "_")
        columns.append((name, value))
    return tuple(columns)


@aggregate(
    "percentile|percentiles(expr: ordered, percentile: any...)",
    "percentilew|percentilesw(expr: ordered, weight: long, percentile: any...)",
    columns=_percentile_columns,
    note=_EXACT_HERE,
)
def _one_percentile(call: BoundCall) -> Typed:
    return _percentile(call, _percents(call)[0])


@aggregate(
    "percentiles_array(expr: ordered, percentile: any...)",
    "percentilesw_array(expr: ordered, weight: long, percentile: any...)",
    prefix="percentiles",
    note=_EXACT_HERE,
)
def _percentile_array(call: BoundCall) -> Typed:
    values = [json_value(_percentile(call, percent)) for percent in _percents(call)]
    return fill(f"json_array({listed(values)})", DYNAMIC, *values)


@python("kql_place_of_share(weights: BIGINT[], share: real): long")
def _place_of_share(weights: list[int], share: float) -> int | None:
    """The place, from 1, at which the weights reach their share."""
    rank = share * sum(weights)
    return next((place for place, seen in enumerate(itertools.accumulate(weights), 1) if seen >= rank), None)


@python("kql_bag_of(bags: json[], size: long): dynamic")
def _bag_of(bags: list[Any], size: int) -> dict[str, Any]:
    return dict(list(merged(bags).items())[:size])


def _order(call: BoundCall) -> str:
    if not call.context.row_order:
        raise call.invalid("the row set must be serialized: put sort by ... or serialize before it.")
    return f"ORDER BY {call.context.row_order}"


def _windowed(template: str, result: KustoType, *arguments: Typed, nullable: bool = True) -> Typed:
    made = aggregated_over(template, result, *arguments)
    return replace(made, windowed=True, aggregated=False, nullable=nullable)


def _plain(call: BoundCall, value: Typed) -> Typed:
    """The argument, as a column if it is itself over a window."""
    return call.context.hoisted(value, call.name) if value.windowed else value


@scalar("prev|next(column: any, offset?: long, default_value?: any)", windowed=True)
def _neighbour(call: BoundCall) -> Typed:
    value, *rest = call.arguments
    value = _plain(call, present(value))
    offset = convert(rest[0], LONG) if rest else literal(1, LONG)
    missing = convert(rest[1], value.type) if len(rest) > 1 else literal(None, value.type)
    word = "lag" if call.name == "prev" else "lead"
    template = f"{word}({{0}}, {{1}}, {{2}}) OVER ({_order(call)})"
    return _windowed(template, value.type, value, offset, _plain(call, missing), nullable=value.type is not STRING)


def _so_far(flag: Typed, window: str) -> Typed:
    """How many rows have the flag, up to each."""
    return _windowed(f"count(CASE WHEN {{0}} THEN 1 END) OVER ({window} ROWS UNBOUNDED PRECEDING)", LONG, flag)


def _partition(call: BoundCall, place: int) -> tuple[str, tuple[Typed, ...]]:
    """The window of the rows since the last restart, whose condition is the argument at `place`."""
    order = _order(call)
    if place >= len(call.arguments):
        return order, ()
    restart = _plain(call, condition(call, call.arguments[place]))
    if restart.is_constant and not restart.constant:
        return order, ()
    group = call.context.hoisted(_so_far(restart, order), call.name)
    return f"PARTITION BY {group.sql} {order}", (group,)


@scalar("row_number(startingIndex?: long, restart?: any)", windowed=True)
def _row_number(call: BoundCall) -> Typed:
    start = convert(call.arguments[0], LONG) if call.arguments else literal(1, LONG)
    window, _ = _partition(call, 1)
    return _windowed(f"row_number() OVER ({window}) + {{0}} - 1", LONG, start, nullable=False)


@scalar("row_cumsum(term: any, restart?: any)", windowed=True)
def _running_sum(call: BoundCall) -> Typed:
    value = _plain(call, call.arguments[0])
    if value.type not in NUMBERS:
        raise call.invalid(f"argument #1 must be a number, not {value.type}.", "SEM0201")
    window, _ = _partition(call, 1)
    template = f"CAST(coalesce(sum({{0}}) OVER ({window} ROWS UNBOUNDED PRECEDING), 0) AS {value.type.held})"
    return _windowed(template, value.type, value)


@scalar("row_rank_dense|row_rank_min(term: any, restart?: any)", windowed=True)
def _rank(call: BoundCall) -> Typed:
    """Counts the different terms so far, or gives the number of the first row of its term."""
    term = call.context.hoisted(call.arguments[0], call.name)
    window, _ = _partition(call, 1)
    changed = f"(row_number() OVER ({window}) = 1 OR lag({{0}}) OVER ({window}) IS DISTINCT FROM {{0}})"
    flag = call.context.hoisted(_windowed(changed, BOOL, term), call.name)
    if call.name == "row_rank_dense":
        return _so_far(flag, window)
    number = call.context.hoisted(_windowed(f"row_number() OVER ({window})", LONG), call.name)
    first = f"max(CASE WHEN {{0}} THEN {{1}} END) OVER ({window} ROWS UNBOUNDED PRECEDING)"
    return _windowed(first, LONG, flag, number)


@scalar(
    "row_window_session(expr: datetime, maxDistanceFromFirst: timespan, maxDistanceBetweenNeighbors: timespan, "
    "restart?: any)",
    windowed=True,
)
def _session(call: BoundCall) -> Typed:
    """The time at which the session of each row starts.

    A new one starts where a row is too far from the one before it, or from the first of its session.
    """
    moment = call.context.hoisted(call.arguments[0], call.name)
    longest, widest = call.arguments[1], call.arguments[2]
    window, groups = _partition(call, 3)
    gap = f"(lag({{0}}) OVER ({window}) IS NULL OR {{0}} - lag({{0}}) OVER ({window}) > {{1}})"
    apart = call.context.hoisted(_windowed(gap, BOOL, moment, widest), call.name)
    order = _order(call)
    run = call.context.hoisted(_so_far(apart, order), call.name)
    keys = ", ".join(each.sql for each in (*groups, run))
    so_far = f"list(epoch_us({{0}})) OVER (PARTITION BY {keys} {order} ROWS UNBOUNDED PRECEDING)"
    return _windowed(f"make_timestamp(kql_session({so_far}, epoch_us({{1}})))", DATETIME, moment, longest)


@python("kql_session(moments: BIGINT[], longest?: long): long")
def _session_start(moments: list[int | None], longest: int | None) -> int | None:
    """The first moment of the session to which the last one belongs."""
    start = None
    for moment in moments:
        if moment is not None and (start is None or (longest is not None and moment - start > longest)):
            start = moment
    return start
