"""Mathematics, bits, bins of numbers, units of measure, and the text of sizes.

Source: the Kusto pages named like the functions. What is outside of a function's domain is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kql_duckdb.expressions import Typed, literal
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
)
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import python_function
from kql_duckdb.types import INTEGERS, NUMBERS

_REAL_FUNCTIONS = {
    "exp": "exp({0})",
    "exp2": "pow(2e0, {0})",
    "exp10": "pow(10e0, {0})",
    "sqrt": "CASE WHEN {0} >= 0 OR isnan({0}) THEN sqrt({0}) END",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "tan": "tan({0})",
    "cot": "cot({0})",
    "atan": "atan({0})",
    "asin": "CASE WHEN {0} BETWEEN -1 AND 1 OR isnan({0}) THEN asin({0}) END",
    "acos": "CASE WHEN {0} BETWEEN -1 AND 1 OR isnan({0}) THEN acos({0}) END",
    "degrees": "degrees({0})",
    "radians": "radians({0})",
    "gamma": "gamma({0})",
    "loggamma": "lgamma({0})",
    # A real for every type, and 0 for null.
    "sign": "CAST(coalesce(sign({0}), 0) AS DOUBLE)",
    "erf": "kql_erf({0})",
    "erfc": "1 - kql_erf({0})",
} | {
    # Minus infinity for 0, where DuckDB raises, and null for a negative number.
    name: f"CASE WHEN {{0}} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {{0}} > 0 OR isnan({{0}}) THEN {sql}({{0}}) END"
    for name, sql in (("log", "ln"), ("log2", "log2"), ("log10", "log10"))
}


@python_function("kql_erf", ("DOUBLE",), "DOUBLE")
def _erf(value: float | None) -> float | None:
    return None if value is None else math.erf(value)


def _absolute(call: BoundCall) -> Typed:
    value = call.arguments[0]
    if value.type is TIMESPAN:
        return fill("to_microseconds(abs(epoch_us({0})))", TIMESPAN, value)
    if value.type is DATETIME:
        raise call.invalid("argument #1 must be a number or a timespan, not datetime.", "SEM0201")
    kind = LONG if value.type is INT else value.type
    return fill("TRY(abs({0}))" if kind is LONG else "abs({0})", kind, convert(value, kind))


def _rounded(call: BoundCall) -> Typed:
    value, *precision = call.arguments
    if not precision:
        return fill("round({0})", REAL, convert(value, REAL))
    clamped = "CAST(least(greatest({1}, -400), 400) AS INTEGER)"
    return fill(f"round({{0}}, {clamped})", REAL, convert(value, REAL), convert(precision[0], LONG))


def _ceiling(call: BoundCall) -> Typed:
    value = call.arguments[0]
    return value if value.type in INTEGERS else fill(f"CAST(ceil({{0}}) AS {value.type.held})", value.type, value)


def _power(call: BoundCall) -> Typed:
    return fill("power({0}, {1})", REAL, *(convert(argument, REAL) for argument in call.arguments))


def _random(call: BoundCall) -> Typed:
    """A real below 1, or a whole number below the limit, which is a real too."""
    if not call.arguments:
        return Typed("random()", REAL, nullable=False)
    return fill("floor(random() * {0})", REAL, call.arguments[0])


def bin_of(call: BoundCall) -> Typed:
    """`bin(value, size)`: the largest multiple of the size that is not above the value; times count from year 1."""
    value, size = call.arguments
    if value.type is DYNAMIC:
        value = convert(value, size.type if size.type is not TIMESPAN else DATETIME)
    if size.type is TIMESPAN:
        return _bin_of_time(call, value, size)
    if value.type not in NUMBERS or size.type not in NUMBERS:
        raise call.invalid(f"a value of type {value.type} has no bins of type {size.type}.", "SEM0232")
    if {value.type, size.type} <= INTEGERS:
        value, size = convert(value, LONG), convert(size, LONG)
        if size.is_constant and size.constant is not None and size.constant > 0:
            return fill("{0} - ({0} % {1} + {1}) % {1}", LONG, value, size)
        signed = "CASE WHEN ({0} < 0) <> ({1} < 0) THEN {0} + sign({1}) - {1} ELSE {0} END"
        return fill(f"CAST(({signed}) // nullif({{1}}, 0) * {{1}} AS BIGINT)", LONG, value, size)
    kind = DECIMAL if {value.type, size.type} <= INTEGERS | {DECIMAL} else REAL
    made = fill("floor({0} / {1}) * {1}", REAL, convert(value, REAL), convert(size, REAL))
    return convert(made, kind)


def _bin_of_time(call: BoundCall, value: Typed, size: Typed) -> Typed:
    if value.type is TIMESPAN:
        width = "nullif(epoch_us({1}), 0)"
        floored = f"epoch_us({{0}}) - ((epoch_us({{0}}) % {width}) + {width}) % {width}"
        return fill(f"to_microseconds({floored})", TIMESPAN, value, size)
    if value.type is not DATETIME:
        raise call.invalid(f"a value of type {value.type} has no bins of time.", "SEM0232")
    if size.is_constant and (size.constant is None or not size.constant):
        return literal(None, DATETIME)
    width = "{1}" if size.is_constant else "CASE WHEN epoch_us({1}) > 0 THEN {1} END"
    return fill(f"time_bucket({width}, {{0}}, TIMESTAMP '0001-01-01')", DATETIME, value, size)


_FLOORED = "CASE WHEN {1} > 0 THEN {2} + floor(({0} - {2}) / {1}) * {1} END"


def _bin_at(call: BoundCall) -> Typed:
    """The fixed point is the border of a bin."""
    value, size, fixed = call.arguments
    if size.type is TIMESPAN and value.type is fixed.type and value.type in (DATETIME, TIMESPAN):
        micros = [fill("CAST(epoch_us({0}) AS DOUBLE)", REAL, each) for each in (value, size, fixed)]
        made = "make_timestamp" if value.type is DATETIME else "to_microseconds"
        start = fill(_FLOORED, REAL, *micros)
        return fill(f"{made}(CAST({{0}} AS BIGINT))", value.type, start)
    if not {value.type, size.type, fixed.type} <= NUMBERS:
        raise call.invalid("the value, the size and the fixed point must go together.", "SEM0232")
    start = fill(_FLOORED, REAL, *(convert(each, REAL) for each in call.arguments))
    return convert(start, LONG) if {value.type, size.type, fixed.type} <= INTEGERS else start


def _around(call: BoundCall) -> Typed:
    value, center, delta = call.arguments
    if {value.type, center.type, delta.type} == {TIMESPAN}:
        near = "epoch_us({0}) BETWEEN epoch_us({1}) - epoch_us({2}) AND epoch_us({1}) + epoch_us({2})"
        return fill(near, BOOL, value, center, delta)
    if value.type is DATETIME and (center.type, delta.type) == (DATETIME, TIMESPAN):
        return fill("{0} BETWEEN {1} - {2} AND {1} + {2}", BOOL, value, center, delta)
    if not {value.type, center.type, delta.type} <= NUMBERS:
        raise call.invalid("the value, the center and the distance must go together.", "SEM0201")
    return fill("{0} BETWEEN {1} - {2} AND {1} + {2}", BOOL, *(convert(each, REAL) for each in call.arguments))


@python_function("kql_shift_left", ("BIGINT", "BIGINT"), "BIGINT")
def _shift_left(value: int | None, count: int | None) -> int | None:
    """Bits that go beyond the 64th are lost."""
    if value is None or count is None or not 0 <= count < 64:
        return None
    shifted = (value << count) & (2**64 - 1)
    return shifted - 2**64 if shifted >= 2**63 else shifted


_SIZES = ("Bytes", "KB", "MB", "GB", "TB", "PB", "EB")


@python_function("kql_format_bytes", ("DOUBLE", "BIGINT", "VARCHAR"), "VARCHAR")
def _format_bytes(size: float | None, precision: int | None, unit: str) -> str:
    if size is None or precision is None or (unit and unit not in _SIZES):
        return ""
    precision = min(precision, 30)
    if not math.isfinite(size):
        return ""
    power = _SIZES.index(unit) if unit else min(6, int(math.log(max(abs(size), 1), 1024) + 1e-12))
    shown = round(size / 1024**power, max(precision, 0))
    digits = str(int(shown)) if precision <= 0 or shown == int(shown) else f"{shown:.{precision}f}".rstrip("0")
    return f"{digits} {_SIZES[power]}"


def _size_text(call: BoundCall) -> Typed:
    size, *given = call.arguments
    defaults = (literal(0, LONG), literal("", STRING))
    return fill("kql_format_bytes({0}, {1}, {2})", STRING, convert(size, REAL), *given, *defaults[len(given) :])


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (Lentz)."""
    tiny, c, d = 1e-300, 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 + numerator * d, 1 + numerator / c
            d, c = 1 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
            total *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return total


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


@python_function("kql_beta", ("VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE"), "DOUBLE")
def _beta(kind: str, x: float | None, alpha: float | None, beta: float | None) -> float | None:
    if x is None or alpha is None or beta is None:
        return None
    if alpha <= 0 or beta <= 0 or not 0 <= x <= 1:
        return math.nan if kind != "inv" or alpha <= 0 or beta <= 0 else None
    if kind == "cdf":
        return incomplete_beta(x, alpha, beta)
    if kind == "pdf":
        if x in (0, 1):
            return 0.0
        scale = math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
        return math.exp(scale + (alpha - 1) * math.log(x) + (beta - 1) * math.log1p(-x))
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(middle, alpha, beta) < x else (low, middle)
    return (low + high) / 2


@python_function("kql_welch_test", ("DOUBLE",) * 6, "DOUBLE")
def _welch(
    mean1: float, variance1: float, count1: float, mean2: float, variance2: float, count2: float
) -> float | None:
    """The two-sided probability of a difference of means as large as this."""
    if None in (mean1, variance1, count1, mean2, variance2, count2) or count1 < 2 or count2 < 2:
        return None
    first, second = variance1 / count1, variance2 / count2
    if first + second <= 0:
        return None
    try:
        freedom = (first + second) ** 2 / (first**2 / (count1 - 1) + second**2 / (count2 - 1))
        square = (mean1 - mean2) ** 2 / (first + second)
        return incomplete_beta(freedom / (freedom + square), freedom / 2, 0.5)
    except (OverflowError, ZeroDivisionError, ValueError):
        return None


def _over_reals(name: str) -> Callable[[BoundCall], Typed]:
    return lambda call: fill(f"kql_beta('{name}', {{0}}, {{1}}, {{2}})", REAL, *call.arguments)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(function(f"{name}(number: real): real", sql) for name, sql in _REAL_FUNCTIONS.items()),
    function("abs(number: summable)", _absolute),
    function("round(number: number, precision?: long)", _rounded),
    function("ceiling(number: number)", _ceiling),
    function("pow(base: number, exponent: number)", _power),
    function("atan2(y: real, x: real): real", "atan2({0}, {1})"),
    function("pi(): real", "pi()"),
    function("rand(number?: long)", _random),
    function("new_guid()", lambda call: Typed("uuid()", GUID, nullable=False)),
    *(function(f"{name}(value: any, roundTo: any)", bin_of) for name in ("bin", "floor")),
    function("bin_at(value: any, bin_size: any, fixed_point: any)", _bin_at),
    function("around(value: any, center: any, delta: any)", _around),
    function("binary_and(value1: long, value2: long): long", "{0} & {1}"),
    function("binary_or(value1: long, value2: long): long", "{0} | {1}"),
    function("binary_xor(value1: long, value2: long): long", "xor({0}, {1})"),
    function("binary_not(value: long): long", "~{0}"),
    function("binary_shift_left(value: long, shift: long): long", "kql_shift_left({0}, {1})"),
    function("binary_shift_right(value: long, shift: long): long", "{0} >> {1}"),
    function("bitset_count_ones(value: long): long", "CAST(bit_count({0}) AS BIGINT)"),
    function(
        "format_bytes(size: number, precision?: long, format?: string)",
        _size_text,
    ),
    *(function(f"beta_{name}(x: real, alpha: real, beta: real)", _over_reals(name)) for name in ("cdf", "pdf", "inv")),
    function(
        "welch_test(mean1: real, variance1: real, count1: real, mean2: real, variance2: real, count2: real): real",
        "kql_welch_test({0}, {1}, {2}, {3}, {4}, {5})",
    ),
)
