"""Aggregate functions: counting, sums, statistics, collections, and values of the row with an extreme.

Source: the Kusto pages named like the functions, and what was measured on Kusto for groups without a value: a sum is 0,
an average NaN, a deviation 0, a collection empty. Aggregates that are estimates in Azure are exact here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import (
    BOOL,
    DATETIME,
    DECIMAL,
    DYNAMIC,
    GUID,
    INT,
    LONG,
    REAL,
    STRING,
    TIMESPAN,
    convert,
    json_value,
    nullable_text,
    to_string,
)
from kql_duckdb.functions.definitions import (
    AggregateFunction,
    BoundCall,
    Builder,
    Output,
    aggregate,
    aggregated_over,
    fill,
)
from kql_duckdb.functions.dynamics import MAX_ARRAY
from kql_duckdb.functions.operators import condition
from kql_duckdb.functions.python_functions import python_function
from kql_duckdb.types import INTEGERS, NUMBERS, KustoType


def _only(call: BoundCall, place: int) -> tuple[str, tuple[Typed, ...]]:
    """The filter of an `...if` aggregate, whose condition is the argument at `place`; nothing for any other."""
    if place >= len(call.arguments):
        return "", ()
    return " FILTER (WHERE {1})", (condition(call, call.arguments[place]),)


def _conditional(call: BoundCall) -> bool:
    return call.name.endswith("if")


def _value(call: BoundCall) -> tuple[Typed, str, tuple[Typed, ...]]:
    """The first argument, and the filter by the second where the name ends in `if`."""
    only, conditions = _only(call, 1) if _conditional(call) else ("", ())
    return call.arguments[0], only, conditions


def _ordered(call: BoundCall, value: Typed) -> Typed:
    if value.type is DYNAMIC:
        raise not_supported(
            f"{call.name}() of a dynamic",
            "a dynamic has no order; convert it with tolong(), todatetime() or tostring()",
        )
    return value


def _extreme(call: BoundCall) -> Typed:
    value, only, conditions = _value(call)
    _ordered(call, value)
    made = aggregated_over(f"{call.name[:3]}({{0}}){only}", value.type, value, *conditions)
    return to_string(replace(made, nullable=True)) if value.type is STRING else made


def _count(call: BoundCall) -> Typed:
    if not call.arguments or (call.name == "count" and call.arguments[0].type is not BOOL):
        return Typed("count(*)", LONG, nullable=False, aggregated=True)
    test = condition(call, call.arguments[0])
    return replace(aggregated_over("count(*) FILTER (WHERE {0})", LONG, test), nullable=False)


def _distinct(call: BoundCall) -> Typed:
    value, only, conditions = _value(call)
    counted = nullable_text(value) if value.type is DYNAMIC else value
    return replace(aggregated_over(f"count(DISTINCT {{0}}){only}", LONG, counted, *conditions), nullable=False)


def _sum(call: BoundCall) -> Typed:
    value, only, conditions = _value(call)
    if value.type is TIMESPAN:
        total = f"to_microseconds(CAST(coalesce(sum(epoch_us({{0}})){only}, 0) AS BIGINT))"
        return aggregated_over(total, TIMESPAN, value, *conditions)
    if value.type not in NUMBERS:
        raise call.invalid(f"a value of type {value.type} has no sum.", "SEM0201")
    kind = LONG if value.type in INTEGERS else value.type
    return aggregated_over(f"CAST(coalesce(sum({{0}}){only}, 0) AS {kind.held})", kind, value, *conditions)


def _average(call: BoundCall) -> Typed:
    value, only, conditions = _value(call)
    if value.type in (DATETIME, TIMESPAN):
        made = "make_timestamp" if value.type is DATETIME else "to_microseconds"
        mean = f"{made}(CAST(trunc(avg(epoch_us({{0}})){only}) AS BIGINT))"
        return aggregated_over(mean, value.type, value, *conditions)
    if value.type not in NUMBERS:
        raise call.invalid(f"a value of type {value.type} has no average.", "SEM0201")
    if value.type is DECIMAL:
        return aggregated_over(f"CAST(avg({{0}}){only} AS {DECIMAL.held})", DECIMAL, value, *conditions)
    return aggregated_over(f"coalesce(avg({{0}}){only}, CAST('NaN' AS DOUBLE))", REAL, value, *conditions)


_STATISTICS = {
    "stdev": "stddev_samp",
    "stdevp": "stddev_pop",
    "variance": "var_samp",
    "variancep": "var_pop",
    "covariance": "covar_samp",
    "covariancep": "covar_pop",
}


def _statistic(call: BoundCall) -> Typed:
    name = call.name.removesuffix("if")
    count = 2 if name.startswith("covariance") else 1
    only, conditions = _only(call, count) if _conditional(call) else ("", ())
    if any(each.type not in NUMBERS for each in call.arguments[:count]):
        raise call.invalid("expects numbers.", "SEM0201")
    values = [convert(each, REAL) for each in call.arguments[:count]]
    listed = "{0}" if count == 1 else "{0}, {1}"
    only = only.replace("{1}", f"{{{count}}}")
    return aggregated_over(f"coalesce({_STATISTICS[name]}({listed}){only}, 0e0)", REAL, *values, *conditions)


def _bits(call: BoundCall) -> Typed:
    name = {"and": "bit_and", "or": "bit_or", "xor": "bit_xor"}[call.name.removeprefix("binary_all_")]
    return aggregated_over(f"{name}({{0}})", LONG, convert(call.arguments[0], LONG))


def _any(call: BoundCall) -> Typed:
    value, only, conditions = _value(call)
    made = aggregated_over(f"any_value({{0}}){only}", value.type, value, *conditions)
    return to_string(replace(made, nullable=True)) if value.type is STRING else made


def _any_columns(call: BoundCall) -> Output:
    """One column for each argument."""
    prefix = "any_" if call.name == "any" else ""
    columns = []
    for argument in call.arguments:
        one = replace(call, arguments=(argument,))
        columns.append((f"{prefix}{argument.name}", _any(one)))
    return tuple(columns)


def _row_of_extreme(call: BoundCall) -> Output:
    """The extreme, and the other arguments at the first row that has it; at the first row where it is always null."""
    extreme, *returned = call.arguments
    _ordered(call, extreme)
    word = "max" if call.name.endswith("max") else "min"
    old = not call.name.startswith("arg_")
    columns = [(f"{word}_{extreme.name}" if old else extreme.name or f"{word}_", _extreme_value(word, extreme))]
    for argument in returned:
        found = f"CASE WHEN count({{1}}) > 0 THEN arg_{word}_null({{0}}, {{1}}) ELSE first({{0}}) END"
        made = aggregated_over(found, argument.type, argument, extreme)
        made = to_string(replace(made, nullable=True)) if argument.type is STRING else made
        columns.append((f"{word}_{extreme.name}_{argument.name}" if old else argument.name, made))
    return tuple(columns)


def _extreme_value(word: str, value: Typed) -> Typed:
    made = aggregated_over(f"{word}({{0}})", value.type, value)
    return to_string(replace(made, nullable=True)) if value.type is STRING else made


# Collections. A list of values as DuckDB holds them becomes one of JSON elements at the end, so that a set of five of a
# million rows makes JSON of five.

_PLAIN = frozenset((STRING, LONG, INT, BOOL, GUID))
_FIRST, _FEW = 8_192, 64

# The different values of a list, each where it first stands. Few are looked for one by one; of more the first rows are
# sorted, which nearly always hold them all. Where they do not the order is DuckDB's, as Kusto leaves it open.
_BY_PLACE = (
    "list_transform(list_sort(list_transform(_few, lambda _v: struct_pack(i := list_position(_values, _v), v := _v))), "
    "lambda _p: _p.v)"
)
_OF_FIRST = (
    "list_transform([list_sort(list_transform(list_slice(_values, 1, {first}), "
    "lambda _v, _i: struct_pack(k := _v, i := _i)))], "
    "lambda _sorted: list_transform(list_sort(list_transform(list_filter(_sorted, "
    "lambda _p, _i: _i = 1 OR _sorted[_i - 1].k IS DISTINCT FROM _p.k), lambda _p: _p.i)), lambda _i: _values[_i]))[1]"
)
_WHOLE = (
    "list_transform([list_distinct(_values)], lambda _few: "
    f"CASE WHEN len(_few) <= {_FEW} THEN {_BY_PLACE} "
    f"ELSE list_transform([{_OF_FIRST.replace('{first}', str(_FIRST))}], "
    "lambda _head: CASE WHEN len(_head) = len(_few) THEN _head ELSE _few END)[1] END)[1]"
)


def _different(values: str, size: Typed | None) -> str:
    """SQL of the different values; of a set with a size the first rows are looked at first."""
    found = _WHOLE
    if size is not None and size.is_constant and 0 < int(size.constant or 0) < _FIRST:
        head = _OF_FIRST.replace("{first}", str(4 * int(size.constant) + _FEW))
        enough = f"CASE WHEN len(_head) >= {int(size.constant)} THEN _head ELSE {_WHOLE} END"
        found = f"list_transform([{head}], lambda _head: {enough})[1]"
    return f"list_transform([{values}], lambda _values: {found})[1]"


def _elements(kind: KustoType, values: str) -> str:
    """SQL of the JSON elements for a list of values of type `kind`."""
    if kind in _PLAIN or kind is DYNAMIC:
        return values
    element = json_value(Typed("_v", kind, simple=True)).sql
    return f"list_transform({values}, lambda _v: {element})"


def _parts(values: str) -> str:
    """An array among dynamic values stands for its elements."""
    return f"flatten(list_transform({values}, lambda _v: coalesce(TRY_CAST(_v AS JSON[]), [_v])))"


def _cut(values: str, size: Typed | None) -> str:
    if size is None:
        return f"list_slice({values}, 1, {MAX_ARRAY})"
    if size.is_constant and size.constant is not None:
        return f"list_slice({values}, 1, {min(int(size.constant), MAX_ARRAY)})"
    return f"list_slice({values}, 1, least({size.sql}, {MAX_ARRAY}))"


def _collected(call: BoundCall) -> tuple[str, tuple[Typed, ...], Typed | None]:
    """SQL of the list of values that are not null, what it reads, and the size that is asked for."""
    conditional = call.name.endswith("_if")
    value, *rest = call.arguments
    tests, read = [], [value]
    if value.type is DYNAMIC:
        tests.append("({0} ->> '$') IS NOT NULL")
    elif value.type is STRING:
        read = [to_string(value)]
    else:
        tests.append("{0} IS NOT NULL")
    if conditional:
        tests.append("{1}")
        read.append(condition(call, rest.pop(0)))
    only = f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""
    sizes = {"makelist": 128, "makeset": 128}
    default = literal(sizes[call.name], LONG) if call.name in sizes else None
    return f"coalesce(list({{0}}){only}, [])", tuple(read), convert(rest[0], LONG) if rest else default


def _list(call: BoundCall) -> Typed:
    values, read, size = _collected(call)
    elements = _elements(call.arguments[0].type, _cut(values, size))
    return replace(aggregated_over(f"to_json({elements})", DYNAMIC, *read), nullable=False)


def _list_with_nulls(call: BoundCall) -> Typed:
    value = call.arguments[0]
    elements = _elements(value.type, _cut("coalesce(list({0}), [])", None))
    return replace(aggregated_over(f"to_json({elements})", DYNAMIC, value), nullable=False)


def _set(call: BoundCall) -> Typed:
    values, read, size = _collected(call)
    kind = call.arguments[0].type
    found = _different(_parts(values) if kind is DYNAMIC else values, size)
    return replace(aggregated_over(f"to_json({_elements(kind, _cut(found, size))})", DYNAMIC, *read), nullable=False)


def _bag(call: BoundCall) -> Typed:
    """Of several values for one key the first stays; Kusto leaves open which."""
    value, *rest = call.arguments
    if value.type is not DYNAMIC:
        raise call.invalid(f"argument #1 must be dynamic, not {value.type}.", "SEM0201")
    tests, read = ["json_type({0}) = 'OBJECT'"], [value]
    if call.name.endswith("_if"):
        tests.append("{1}")
        read.append(condition(call, rest.pop(0)))
    size = convert(rest[0], LONG).sql if rest else str(MAX_ARRAY)
    merged = f"kql_bag_of(coalesce(list({{0}}) FILTER (WHERE {' AND '.join(tests)}), []), {size})"
    return replace(aggregated_over(merged, DYNAMIC, *read), nullable=False)


def _percentile_name(call: BoundCall, percent: Typed) -> str:
    shown = f"{percent.constant:g}" if percent.is_constant else ""
    return f"percentile_{call.arguments[0].name}_{shown}".replace(".", "_")


def _share(call: BoundCall, percent: Typed) -> float:
    if not percent.is_constant or percent.type not in NUMBERS or not 0 <= float(percent.constant) <= 100:
        raise call.invalid("a percentile must be a constant from 0 to 100.", "SEM0207")
    return float(percent.constant) / 100


def _weighted(call: BoundCall) -> bool:
    return call.name.startswith(("percentilew", "percentilesw"))


def _percentile(call: BoundCall, percent: Typed) -> Typed:
    """By nearest rank."""
    value = _ordered(call, call.arguments[0])
    share = _share(call, percent)
    if not _weighted(call):
        made = aggregated_over(f"quantile_disc({{0}}, CAST({share!r} AS DOUBLE))", value.type, value)
        return to_string(replace(made, nullable=True)) if value.type is STRING else made
    number, back = _as_number(call, value)
    weights = convert(call.arguments[1], LONG)
    listed = "list(struct_pack(v := {0}, w := {1})) FILTER (WHERE {0} IS NOT NULL AND {1} > 0)"
    made = aggregated_over(f"kql_weighted_percentile({listed}, CAST({share!r} AS DOUBLE))", REAL, number, weights)
    return fill(back, value.type, made)


def _as_number(call: BoundCall, value: Typed) -> tuple[Typed, str]:
    """A value as a real, and what makes one of its type of a real."""
    if value.type in (DATETIME, TIMESPAN):
        made = "make_timestamp" if value.type is DATETIME else "to_microseconds"
        return fill("CAST(epoch_us({0}) AS DOUBLE)", REAL, value), f"{made}(CAST({{0}} AS BIGINT))"
    if value.type not in NUMBERS:
        raise call.invalid(f"a value of type {value.type} has no weight.", "SEM0201")
    return convert(value, REAL), f"CAST({{0}} AS {value.type.held})"


def _percents(call: BoundCall) -> list[Typed]:
    given = list(call.arguments[2 if _weighted(call) else 1 :])
    if len(given) == 1 and given[0].type is DYNAMIC and given[0].is_constant and isinstance(given[0].constant, list):
        return [literal(float(one), REAL) for one in given[0].constant]
    return given


def _one_percentile(call: BoundCall) -> Typed:
    return _percentile(call, _percents(call)[0])


def _percentile_columns(call: BoundCall) -> Output:
    return tuple((_percentile_name(call, percent), _percentile(call, percent)) for percent in _percents(call))


def _percentile_array(call: BoundCall) -> Typed:
    values = [json_value(_percentile(call, percent)) for percent in _percents(call)]
    listed = ", ".join(f"{{{place}}}" for place in range(len(values)))
    return fill(f"json_array({listed})", DYNAMIC, *values)


@python_function("kql_weighted_percentile", ("STRUCT(v DOUBLE, w BIGINT)[]", "DOUBLE"), "DOUBLE")
def _weighted_percentile(rows: list[dict[str, float]] | None, share: float) -> float | None:
    """The value at the nearest rank, as if each stood as often as it weighs."""
    ordered = sorted((row["v"], row["w"]) for row in rows or ())
    rank, seen = share * sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        seen += weight
        if seen >= rank:
            return value
    return None


@python_function("kql_bag_of", ("JSON[]", "BIGINT"), "JSON")
def _bag_of(bags: list[str], size: int | None) -> str:
    merged: dict[str, object] = {}
    for bag in bags:
        for key, value in json.loads(bag).items():
            merged.setdefault(key, value)
    return json_text(dict(list(merged.items())[: MAX_ARRAY if size is None else size]))


def _sketch(call: BoundCall) -> Typed:
    """The different values by their hashes; Azure keeps an estimate."""
    _, conditions = _only(call, 1) if call.name == "hll_if" else ("", ())
    present = "{0} IS NOT NULL" + (" AND {1}" if conditions else "")
    listed = f"coalesce(list(DISTINCT hash({{0}})) FILTER (WHERE {present}), [])"
    return aggregated_over(f"to_json({listed})", DYNAMIC, call.arguments[0], *conditions)


def _merged_sketch(call: BoundCall) -> Typed:
    listed = "coalesce(list(TRY_CAST({0} AS VARCHAR[])) FILTER (WHERE {0} IS NOT NULL), [])"
    return aggregated_over(f"to_json(list_distinct(flatten({listed})))", DYNAMIC, call.arguments[0])


_EXACT_HERE = "exact here, an estimate in Azure for large groups"
_SKETCH = "holds hashes of the different values, not Azure's sketch: only for hll_merge and dcount_hll"
_SET_ORDER = "elements as they first appear (in no order for a large group); Azure promises no order"


def _pair(
    name: str, arguments: str, made: Builder, *, prefix: str | None = None, note: str = ""
) -> list[AggregateFunction]:
    """An aggregate and its form with a condition."""
    status = "partly" if note else "exact"
    return [
        aggregate(f"{name}({arguments})", made, prefix=prefix, status=status, note=note),
        aggregate(
            f"{name}if({arguments}, predicate: any)",
            made,
            prefix=None if prefix is None else prefix,
            status=status,
            note=note,
        ),
    ]


def _several(
    signature: str, one: Callable[[BoundCall], Typed], many: Callable[[BoundCall], Output], **kw: str
) -> AggregateFunction:
    status = "partly" if kw.get("note") else "exact"
    return aggregate(signature, one, columns=many, prefix=kw.get("prefix"), status=status, note=kw.get("note", ""))


def _first_of(many: Callable[[BoundCall], Output]) -> Callable[[BoundCall], Typed]:
    return lambda call: many(call)[0][1]


FUNCTIONS: tuple[AggregateFunction, ...] = (
    aggregate("count(predicate?: any)", _count),
    aggregate("cnt()", _count),
    aggregate("countif(predicate: any)", _count, prefix="countif"),
    *_pair("sum", "expr: summable", _sum),
    *_pair("avg", "expr: summable", _average),
    *_pair("min", "expr: any", _extreme),
    *_pair("max", "expr: any", _extreme),
    *(one for name in ("stdev", "stdevp", "variance", "variancep") for one in _pair(name, "expr: number", _statistic)),
    *(one for name in ("covariance", "covariancep") for one in _pair(name, "expr1: number, expr2: number", _statistic)),
    aggregate("dcount(expr: any, accuracy?: any)", _distinct, status="partly", note=_EXACT_HERE),
    aggregate("dcountif(expr: any, predicate: any, accuracy?: any)", _distinct, status="partly", note=_EXACT_HERE),
    *_pair("count_distinct", "expr: any", _distinct),
    *(aggregate(f"binary_all_{name}(expr: any)", _bits, prefix="") for name in ("and", "or", "xor")),
    _several("take_any(expr: any...)", _any, _any_columns, prefix=""),
    _several("any(expr: any...)", _any, _any_columns),
    aggregate("take_anyif(expr: any, predicate: any)", _any, prefix=""),
    aggregate("anyif(expr: any, predicate: any)", _any),
    *(
        _several(f"{name}(extreme: any, returned?: any...)", _first_of(_row_of_extreme), _row_of_extreme, prefix="")
        for name in ("arg_max", "arg_min", "argmax", "argmin")
    ),
    *(aggregate(f"{name}(expr: any, maxSize?: long)", _list, prefix="list") for name in ("make_list", "makelist")),
    aggregate("make_list_if(expr: any, predicate: any, maxSize?: long)", _list, prefix="list"),
    aggregate("make_list_with_nulls(expr: any)", _list_with_nulls, prefix="list"),
    *(
        aggregate(f"{name}(expr: any, maxSize?: long)", _set, prefix="set", status="partly", note=_SET_ORDER)
        for name in ("make_set", "makeset")
    ),
    aggregate(
        "make_set_if(expr: any, predicate: any, maxSize?: long)", _set, prefix="set", status="partly", note=_SET_ORDER
    ),
    aggregate("make_bag(expr: any, maxSize?: long)", _bag, prefix="bag"),
    aggregate("make_dictionary(expr: any, maxSize?: long)", _bag, prefix="dictionary"),
    aggregate("make_bag_if(expr: any, predicate: any, maxSize?: long)", _bag, prefix="bag"),
    *(
        _several(f"{name}(expr: any, percentile: any...)", _one_percentile, _percentile_columns, note=_EXACT_HERE)
        for name in ("percentile", "percentiles")
    ),
    *(
        _several(
            f"{name}(expr: any, weight: long, percentile: any...)",
            _one_percentile,
            _percentile_columns,
            note=_EXACT_HERE,
        )
        for name in ("percentilew", "percentilesw")
    ),
    aggregate(
        "percentiles_array(expr: any, percentile: any...)",
        _percentile_array,
        prefix="percentiles",
        status="partly",
        note=_EXACT_HERE,
    ),
    aggregate(
        "percentilesw_array(expr: any, weight: long, percentile: any...)",
        _percentile_array,
        prefix="percentiles",
        status="partly",
        note=_EXACT_HERE,
    ),
    aggregate("hll(expr: any, accuracy?: any)", _sketch, status="partly", note=_SKETCH),
    aggregate("hll_if(expr: any, predicate: any, accuracy?: any)", _sketch, status="partly", note=_SKETCH),
    aggregate("hll_merge(hll: dynamic)", _merged_sketch, status="partly", note=_SKETCH),
)
