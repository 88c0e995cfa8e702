"""Series: arithmetic, comparison, filling, filters and statistics over arrays of numbers, as `make-series` makes them.

Source: the Kusto pages named like the functions. Decomposition, outliers and periods are in `decomposition`.
"""

from __future__ import annotations

import bisect
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kql_duckdb.expressions import Typed
from kql_duckdb.functions.conversion import convert
from kql_duckdb.functions.definitions import BoundCall, Output, fill, number, python, pythons, rows, scalar, with_rest
from kql_duckdb.functions.dynamics import member_of, spread
from kql_duckdb.types import DYNAMIC, KustoType

Number = int | float


def numbers(series: list[Any]) -> list[Number | None]:
    """The numbers of a series, null for anything else."""
    return [number(element) for element in series]


_EACH: dict[str, Callable[[Number], Number]] = {
    "abs": abs,
    "sign": lambda number: (number > 0) - (number < 0),
    "ceiling": lambda number: float(math.ceil(number)),
    "floor": lambda number: float(math.floor(number)),
    "exp": math.exp,
    "log": lambda number: math.log(number) if number > 0 else -math.inf if number == 0 else math.nan,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": lambda number: math.asin(number) if -1 <= number <= 1 else math.nan,
    "acos": lambda number: math.acos(number) if -1 <= number <= 1 else math.nan,
    "atan": math.atan,
}


@python("kql_series_each(series: array, name: string): dynamic")
def _each(series: list[Any], name: str) -> list[Any]:
    return [None if one is None else _computed(_EACH[name.removeprefix("series_")], one) for one in numbers(series)]


def _computed(made: Callable[..., Any], *numbers: Number) -> Any:
    try:
        return made(*numbers)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _quotient(left: Number, right: Number) -> float:
    if right != 0:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)


def _power(base: Number, exponent: Number) -> float:
    found = math.nan if base == 0 and exponent < 0 else float(base) ** exponent
    return found if isinstance(found, float) else math.nan


_PAIRS: dict[str, Callable[[Number, Number], Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": _quotient, "pow": _power,
    "greater": operator.gt, "greater_equals": operator.ge, "less": operator.lt, "less_equals": operator.le,
    "equals": operator.eq, "not_equals": operator.ne,
}  # fmt: skip


@python("kql_series_pairs(left: nullable, right: json, name: string): dynamic")
def _pairs(left: Any, right: Any, name: str) -> list[Any] | None:
    """Place by place; one number stands for each place of the other series."""
    if not isinstance(left, list) and not isinstance(right, list):
        return None
    size = max(len(side) for side in (left, right) if isinstance(side, list))
    first, second = (numbers(spread(side, size)) for side in (left, right))
    made = _PAIRS[name.removeprefix("series_")]
    return [None if a is None or b is None else _computed(made, a, b) for a, b in zip(first, second, strict=True)]


def _gaps(series: list[Any], placeholder: float | None) -> list[bool]:
    """Whether each element stands for a missing value."""
    if placeholder is None or math.isnan(placeholder):
        return [element is None for element in series]
    return [number(element) == placeholder for element in series]


@python("series_fill_const(series: array, constant_value: json = 0, missing_value_placeholder: real = null): dynamic")
def _fill_const(series: list[Any], constant: Any, placeholder: float | None) -> list[Any]:
    return [constant if gap else one for one, gap in zip(series, _gaps(series, placeholder), strict=True)]


def _fill(series: list[Any], placeholder: float | None) -> list[Any]:
    """Each gap as the last value before it; those before the first value stay."""
    filled: list[Any] = []
    found = False
    for element, gap in zip(series, _gaps(series, placeholder), strict=True):
        filled.append(filled[-1] if gap and found else element)
        found = found or not gap
    return filled


pythons({
    "series_fill_forward(series: array, missing_value_placeholder: real = null): dynamic": _fill,
    "series_fill_backward(series: array, missing_value_placeholder: real = null): dynamic": (
        lambda series, placeholder: _fill(series[::-1], placeholder)[::-1]
    ),
    "series_sum(series: numbers): real": lambda series: float(math.fsum(series)),
    "series_product(series: numbers): real": lambda series: float(math.prod(series)),
    "series_magnitude(series: numbers): real": lambda series: _magnitude(series),
    "kql_series_fit_line(series: numbers): dynamic": lambda series: _fitted(series) if len(series) > 1 else None,
})  # fmt: skip


def _magnitude(series: list[Number]) -> float:
    return math.sqrt(math.fsum(value * value for value in series))


@python(
    "series_fill_linear(series: array, missing_value: real = null, fill_edges?: bool = true, "
    "constant_value?: real = 0): dynamic"
)
def _fill_linear(series: list[Any], placeholder: float | None, edges: bool | None, constant: float | None) -> list[Any]:
    """Between two whole neighbours of a series of whole numbers the value is cut to one."""
    gaps = _gaps(series, placeholder)
    known = [place for place, gap in enumerate(gaps) if not gap]
    if not known:
        return [constant] * len(series)
    whole = all(isinstance(series[place], int) for place in known)
    filled = list(series)
    for place in (place for place, gap in enumerate(gaps) if gap):
        following = bisect.bisect(known, place)
        before, after = known[max(following - 1, 0)], known[min(following, len(known) - 1)]
        if before < place < after:
            low, high = number(series[before]), number(series[after])
            if low is not None and high is not None:
                value = low + (high - low) * (place - before) / (after - before)
                filled[place] = int(value) if whole else value
        elif edges is not False:
            filled[place] = series[before if place > after else after]
    return filled


@python("series_dot_product(series1: json, series2: json): real")
def _dot(left: Any, right: Any) -> float | None:
    """Over the shorter of the two; a number stands for each place."""
    size = min((len(side) for side in (left, right) if isinstance(side, list)), default=1)
    first, second = (numbers(side if isinstance(side, list) else [side] * size) for side in (left, right))
    pairs = list(zip(first, second, strict=False))
    if not pairs or None in first or None in second:
        return None
    return math.fsum(a * b for a, b in pairs if a is not None and b is not None)


@python(
    "series_cosine_similarity(series1: numbers, series2: numbers, magnitude1: real = null, "
    "magnitude2: real = null): real"
)
def _cosine(left: list[Number], right: list[Number], left_size: float | None, right_size: float | None) -> float | None:
    product = _dot(left, right)
    if product is None:
        return None
    return _quotient(product, (left_size or _magnitude(left)) * (right_size or _magnitude(right)))


@python("series_pearson_correlation(series1: numbers, series2: numbers): real")
def _pearson(first: list[Number], second: list[Number]) -> float | None:
    """Null if the lengths differ."""
    if not first or len(first) != len(second):
        return None
    a, b = ([value - math.fsum(side) / len(side) for value in side] for side in (first, second))
    spread = math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    return _quotient(math.fsum(x * y for x, y in zip(a, b, strict=True)), spread)


def _variance(values: list[Number], freedom: int = 1) -> float:
    if len(values) <= freedom:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - freedom)


def _define(signature: str, sql: str, parts: str, note: str) -> None:
    """Define a function of `series.txt`."""

    def bag(call: BoundCall) -> Typed:
        return fill(with_rest(sql, call.arguments), DYNAMIC, *call.arguments)

    def columns(call: BoundCall) -> Iterator[tuple[str, Typed]]:
        made, series = bag(call), call.arguments[0].name
        for name, kind in re.findall(r"(\w+): (\w+)", parts):
            part = member_of(made, name)
            yield f"{call.name}_{series}_{name}", part if kind == DYNAMIC else convert(part, KustoType(kind))

    value = bag if signature.endswith(": bag") else lambda call: next(columns(call))[1]
    scalar(signature, note=note, columns=lambda call: tuple(columns(call)))(value)


for _row in rows("series.txt"):
    _found = re.fullmatch(r"(.*: \w+) = (.*?) -> (.*?)(?: -- (.*))?", _row)
    assert _found is not None, _row
    _define(*_found.groups(default=""))


@python("kql_series_stats(series: array, ignore?: bool): dynamic")
def _statistics(series: list[Any], ignore: bool | None) -> dict[str, Any]:
    """The extremes and their places, the mean, and deviation and variance of a sample."""
    found = numbers(series)
    finite = [number for number in found if number is not None and math.isfinite(number)]
    if not finite or (len(finite) < len(found) and not ignore):
        names = ("min", "min_idx", "max", "max_idx", "avg", "stdev", "variance", "sum")
        return dict.fromkeys(names) | {"len": len(found)}
    low, high = min(finite), max(finite)
    variance = _variance(finite)
    return {
        "min": float(low),
        "min_idx": found.index(low),
        "max": float(high),
        "max_idx": found.index(high),
        "avg": math.fsum(finite) / len(finite),
        "stdev": math.sqrt(variance),
        "variance": variance,
        "sum": float(math.fsum(finite)),
        "len": len(found),
    }


def line_through(values: Sequence[Number]) -> tuple[float, float]:
    """Slope and value at place 0 of the least-squares line."""
    middle, mean = (len(values) - 1) / 2, math.fsum(values) / len(values)
    squares = math.fsum((place - middle) ** 2 for place in range(len(values)))
    products = math.fsum((place - middle) * (value - mean) for place, value in enumerate(values))
    slope = products / squares if squares else 0.0
    return slope, mean - slope * middle


def _fitted(values: list[Number]) -> dict[str, Any]:
    slope, start = line_through(values)
    line = [start + slope * place for place in range(len(values))]
    residual: list[Number] = [value - fit for value, fit in zip(values, line, strict=True)]
    whole = _variance(values, 0)
    return {
        "rsquare": 1 - _variance(residual, 0) / whole if whole else 1.0,
        "slope": slope,
        "variance": _variance(values),
        "rvariance": _variance(residual),
        # The page counts places from 1.
        "interception": start - slope,
        "line_fit": line,
    }


@python("series_fir(series: numbers, filter: numbers, normalize?: bool = true, center?: bool = false): dynamic")
def _fir(values: list[Number], weights: list[Number], normalize: bool | None, center: bool | None) -> list[Any] | None:
    """A moving sum with weights, which add up to 1 if they are normalized."""
    if not weights:
        return None
    total = math.fsum(weights)
    if normalize is not False and total > 0:
        weights = [weight / total for weight in weights]
    shift = len(weights) // 2 if center else 0
    padded = [*[0.0] * (len(weights) - 1), *map(float, values), *[0.0] * shift]
    return [
        math.fsum(map(operator.mul, reversed(weights), padded[place : place + len(weights)]))
        for place in range(shift, len(values) + shift)
    ]


@python("series_iir(series: numbers, numerators: numbers, denominators: numbers): dynamic")
def _iir(values: list[Number], above: list[Number], below: list[Number]) -> list[Any] | None:
    """A recursive filter: what goes in by the numerators, what came out before by the denominators."""
    if not above or not below or below[0] == 0:
        return None
    made: list[float] = []
    for place in range(len(values)):
        coming = math.fsum(weight * values[place - back] for back, weight in enumerate(above) if back <= place)
        gone = math.fsum(weight * made[place - back] for back, weight in enumerate(below) if 0 < back <= place)
        made.append((coming - gone) / below[0])
    return made


@python("kql_series_fft(real: numbers, imaginary: numbers, inverse: bool): dynamic")
def _fourier(first: list[Number], second: list[Number], inverse: bool) -> list[list[float]] | None:
    """Real and imaginary parts."""
    import numpy as np  # here, since only queries over series need wait for it

    if len(first) != len(second) or not first:
        return None if first or second else [[], []]
    made = (np.fft.ifft if inverse else np.fft.fft)(np.array(first, float) + 1j * np.array(second, float))
    return [made.real.tolist(), made.imag.tolist()]


def _fft_columns(call: BoundCall) -> Output:
    found = _fft(call)
    return tuple((f"{call.name}_{part}", member_of(found, place)) for place, part in enumerate(("real", "imag")))


@scalar("series_fft|series_ifft(series: dynamic, series_imaginary?: dynamic)", columns=_fft_columns)
def _fft(call: BoundCall) -> Typed:
    real, *imaginary = call.arguments
    zeros = "to_json(list_transform(TRY_CAST({0} AS JSON[]), lambda _: 0))"
    inverse = "TRUE" if call.name == "series_ifft" else "FALSE"
    template = f"kql_series_fft({{0}}, {'{1}' if imaginary else zeros}, {inverse})"
    return fill(template, DYNAMIC, real, *imaginary)
