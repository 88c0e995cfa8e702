"""Mathematics, bits, bins of numbers, units of measure, and the text of sizes.

Source: the Kusto pages named like the functions. What is outside of a function's domain is null.
"""

from __future__ import annotations

import math
from functools import cache

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import convert
from kql_duckdb.functions.definitions import BoundCall, fill, python, pythons, rows, scalar
from kql_duckdb.types import DATETIME, DECIMAL, DYNAMIC, INTEGERS, LONG, NUMBERS, REAL, TIMESPAN

pythons(
    {
        "kql_erf(value: real): real": lambda value: math.erf(value),
        "beta_cdf(x: real, alpha: real, beta: real): real": lambda x, alpha, beta: (
            incomplete_beta(x, alpha, beta) if min(alpha, beta) > 0 and 0 <= x <= 1 else math.nan
        ),
        # Bits that go beyond the 64th are lost.
        "binary_shift_left(value: long, shift: long): long": lambda value, count: (
            ((value << count) + 2**63) % 2**64 - 2**63 if 0 <= count < 64 else None
        ),
    }
)


@scalar("bin|floor(value: any, roundTo: any)")
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
    width = "CASE WHEN epoch_us({1}) > 0 THEN {1} END"
    return fill(f"time_bucket({width}, {{0}}, TIMESTAMP '0001-01-01')", DATETIME, value, size)


_SIZES = ("Bytes", "KB", "MB", "GB", "TB", "PB", "EB")


@python('format_bytes(size: real, precision: long = 0, format: string = ""): string')
def _format_bytes(size: float, precision: int, unit: str) -> str:
    if (unit and unit not in _SIZES) or not math.isfinite(size):
        return ""
    precision = min(precision, 30)
    power = _SIZES.index(unit) if unit else min(6, int(math.log(max(abs(size), 1), 1024) + 1e-12))
    shown = round(size / 1024**power, max(precision, 0))
    digits = str(int(shown)) if precision <= 0 or shown == int(shown) else f"{shown:.{precision}f}".rstrip("0")
    return f"{digits} {_SIZES[power]}"


def _beta_fraction(x: float, a: float, b: float) -> float:
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
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


@python("beta_inv(x: real, alpha: real, beta: real): real")
def _beta_inv(x: float, alpha: float, beta: float) -> float | None:
    if alpha <= 0 or beta <= 0 or not 0 <= x <= 1:
        return math.nan if alpha <= 0 or beta <= 0 else None
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(middle, alpha, beta) < x else (low, middle)
    return (low + high) / 2


@python("welch_test(mean1: real, variance1: real, count1: real, mean2: real, variance2: real, count2: real): real")
def _welch(
    mean1: float, variance1: float, count1: float, mean2: float, variance2: float, count2: float
) -> float | None:
    """The two-sided probability of a difference of means as large as this."""
    if count1 < 2 or count2 < 2:
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


_MEASURES = "length mass speed angle energy force volume temperature".split()  # noqa: SIM905 - a word list reads better


@cache
def _units(measure: str) -> dict[str, tuple[float, float]]:
    """Factor and offset of each unit."""
    listed = next(units for name, _, units in (row.partition(": ") for row in rows("units.txt")) if name == measure)
    parts = ((unit, value.partition(",")) for unit, _, value in (one.partition("=") for one in listed.split()))
    return {unit: (float(factor), float(offset or 0)) for unit, (factor, _, offset) in parts}


@scalar(f"{'|'.join(f'convert_{one}' for one in _MEASURES if one != 'angle')}(value: real, from: string, to: string)")
@scalar("convert_angle(value: real, from: string, to: string)", note="the unit Tilt is refused")
def _converted(call: BoundCall) -> Typed:
    """Null for a unit that there is not."""
    names = [call.constant_text(place) for place in (1, 2)]
    if None in names:
        raise call.invalid("the units must be string literals.", "SEM0207")
    if "Tilt" in names:
        raise not_supported("the unit 'Tilt'")
    units = _units(call.name.removeprefix("convert_"))
    source, target = units.get(str(names[0])), units.get(str(names[1]))
    if source is None or target is None:
        return literal(None, REAL)
    numbers = [literal(each, REAL) for each in (*source[::-1], *target[::-1])]
    return fill("({0} + {1}) * {2} / {4} - {3}", REAL, call.arguments[0], *numbers)
