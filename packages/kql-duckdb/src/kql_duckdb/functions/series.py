"""Series: arithmetic, comparison, filling, filters and statistics over arrays of numbers, as `make-series` makes them.

Source: the Kusto pages named like the functions. Only what those pages define exactly is here: decomposition, outliers
and periods leave choices open and are refused by name (`refused`).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import BOOL, DYNAMIC, LONG, REAL, convert, json_value
from kql_duckdb.functions.definitions import BoundCall, Output, ScalarFunction, fill, function
from kql_duckdb.functions.dynamics import member_of
from kql_duckdb.functions.python_functions import dynamic_function

Number = int | float


def _number(value: Any) -> Number | None:
    """The number in an element; null for text, booleans, arrays and bags."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value if isinstance(value, (int, float)) else None


def _numbers(series: Any) -> list[Number | None] | None:
    return [_number(element) for element in series] if isinstance(series, list) else None


def _complete(series: Any) -> list[Number] | None:
    """The numbers of a series without a gap; null if there is one."""
    found = _numbers(series)
    if found is None or None in found:
        return None
    return [number for number in found if number is not None]


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


@dynamic_function("kql_series_each", ("JSON", "VARCHAR"))
def _each(series: Any, name: str) -> list[Any] | None:
    numbers = _numbers(series)
    return (
        None if numbers is None else [None if number is None else _computed(_EACH[name], number) for number in numbers]
    )


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
    "add": lambda left, right: left + right,
    "subtract": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": _quotient,
    "pow": _power,
    "greater": lambda left, right: left > right,
    "greater_equals": lambda left, right: left >= right,
    "less": lambda left, right: left < right,
    "less_equals": lambda left, right: left <= right,
    "equals": lambda left, right: left == right,
    "not_equals": lambda left, right: left != right,
}


@dynamic_function("kql_series_pairs", ("JSON", "JSON", "VARCHAR"))
def _pairs(left: Any, right: Any, name: str) -> list[Any] | None:
    """Place by place; one number stands for each place of the other series."""
    if not isinstance(left, list) and not isinstance(right, list):
        return None
    size = max(len(side) for side in (left, right) if isinstance(side, list))
    first, second = (_spread(side, size) for side in (left, right))
    return [
        None if a is None or b is None else _computed(_PAIRS[name], a, b) for a, b in zip(first, second, strict=True)
    ]


def _spread(side: Any, size: int) -> list[Number | None]:
    if isinstance(side, list):
        return [_number(element) for element in side] + [None] * (size - len(side))
    return [_number(side)] * size


def _gaps(series: Any, placeholder: float | None) -> list[bool] | None:
    """Whether each element stands for a missing value."""
    if not isinstance(series, list):
        return None
    if placeholder is None or math.isnan(placeholder):
        return [element is None for element in series]
    return [_number(element) == placeholder for element in series]


@dynamic_function("kql_series_fill_const", ("JSON", "JSON", "DOUBLE"))
def _fill_const(series: Any, constant: Any, placeholder: float | None) -> list[Any] | None:
    gaps = _gaps(series, placeholder)
    return None if gaps is None else [constant if gap else one for one, gap in zip(series, gaps, strict=True)]


@dynamic_function("kql_series_fill", ("JSON", "DOUBLE", "BOOLEAN"))
def _fill(series: Any, placeholder: float | None, backward: bool) -> list[Any] | None:
    """Each gap as the last value before it, or the next one after it."""
    gaps = _gaps(series, placeholder)
    if gaps is None:
        return None
    pairs = list(zip(series, gaps, strict=True))
    filled, last, found = [], None, False
    for element, gap in reversed(pairs) if backward else pairs:
        if not gap:
            last, found = element, True
        filled.append(last if gap and found else element)
    return filled[::-1] if backward else filled


@dynamic_function("kql_series_fill_linear", ("JSON", "DOUBLE", "BOOLEAN", "DOUBLE"))
def _fill_linear(
    series: Any, placeholder: float | None, edges: bool | None, constant: float | None
) -> list[Any] | None:
    """Between two whole neighbours of a series of whole numbers the value is cut to one."""
    gaps = _gaps(series, placeholder)
    if gaps is None:
        return None
    known = [place for place, gap in enumerate(gaps) if not gap]
    if not known:
        return [constant] * len(series)
    whole = all(isinstance(series[place], int) for place in known)
    filled = list(series)
    before = None
    following = iter([*known, None])
    after = next(following)
    for place, gap in enumerate(gaps):
        if not gap:
            before, after = place, next(following)
        elif before is not None and after is not None:
            low, high = _number(series[before]), _number(series[after])
            if low is not None and high is not None:
                value = low + (high - low) * (place - before) / (after - before)
                filled[place] = int(value) if whole else value
        elif edges is not False:
            filled[place] = series[after if before is None else before]
    return filled


@dynamic_function("kql_series_measure", ("JSON", "VARCHAR"), "DOUBLE")
def _measure(series: Any, name: str) -> float | None:
    numbers = _complete(series)
    if numbers is None:
        return None
    measures: dict[str, Callable[[list[Number]], float]] = {
        "sum": math.fsum,
        "product": math.prod,
        "magnitude": lambda values: math.sqrt(math.fsum(value * value for value in values)),
    }
    return float(measures[name](numbers))


@dynamic_function("kql_series_dot", ("JSON", "JSON"), "DOUBLE")
def _dot(left: Any, right: Any) -> float | None:
    """Over the shorter of the two; a number stands for each place."""
    first = _complete(left if isinstance(left, list) else [left] * len(right if isinstance(right, list) else [0]))
    second = _complete(right if isinstance(right, list) else [right] * len(left if isinstance(left, list) else [0]))
    if not first or not second:
        return None
    return math.fsum(a * b for a, b in zip(first, second, strict=False))


@dynamic_function("kql_series_cosine", ("JSON", "JSON", "DOUBLE", "DOUBLE"), "DOUBLE")
def _cosine(left: Any, right: Any, left_size: float | None, right_size: float | None) -> float | None:
    product, first, second = _dot(left, right), _measure(left, "magnitude"), _measure(right, "magnitude")
    if product is None or first is None or second is None:
        return None
    return _quotient(product, (left_size or first) * (right_size or second))


@dynamic_function("kql_series_pearson", ("JSON", "JSON"), "DOUBLE")
def _pearson(left: Any, right: Any) -> float | None:
    """Null if the lengths differ or an element is no number."""
    first, second = _complete(left), _complete(right)
    if not first or not second or len(first) != len(second):
        return None
    a, b = ([value - math.fsum(side) / len(side) for value in side] for side in (first, second))
    spread = math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    return _quotient(math.fsum(x * y for x, y in zip(a, b, strict=True)), spread)


def _variance(values: list[Number], freedom: int = 1) -> float:
    if len(values) <= freedom:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - freedom)


_STATISTICS = ("min", "min_idx", "max", "max_idx", "avg", "stdev", "variance")


@dynamic_function("kql_series_stats", ("JSON", "BOOLEAN"))
def _statistics(series: Any, ignore: bool | None) -> dict[str, Any] | None:
    """The extremes and their places, the mean, and deviation and variance of a sample."""
    numbers = _numbers(series)
    if numbers is None:
        return None
    finite = [number for number in numbers if number is not None and math.isfinite(number)]
    if not finite or (len(finite) < len(numbers) and not ignore):
        return dict.fromkeys((*_STATISTICS, "sum")) | {"len": len(numbers)}
    low, high = min(finite), max(finite)
    variance = _variance(finite)
    return {
        "min": float(low),
        "min_idx": numbers.index(low),
        "max": float(high),
        "max_idx": numbers.index(high),
        "avg": math.fsum(finite) / len(finite),
        "stdev": math.sqrt(variance),
        "variance": variance,
        "sum": float(math.fsum(finite)),
        "len": len(numbers),
    }


_LINE = ("rsquare", "slope", "variance", "rvariance", "interception", "line_fit")


def _line_through(values: list[Number]) -> tuple[float, float]:
    """Slope and value at place 0 of the least-squares line."""
    middle, mean = (len(values) - 1) / 2, math.fsum(values) / len(values)
    squares = math.fsum((place - middle) ** 2 for place in range(len(values)))
    products = math.fsum((place - middle) * (value - mean) for place, value in enumerate(values))
    slope = products / squares if squares else 0.0
    return slope, mean - slope * middle


def _fitted(values: list[Number]) -> dict[str, Any]:
    slope, start = _line_through(values)
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


@dynamic_function("kql_series_fit_line", ("JSON",))
def _fit_line(series: Any) -> dict[str, Any] | None:
    values = _complete(series)
    return _fitted(values) if values is not None and len(values) > 1 else None


@dynamic_function("kql_series_fir", ("JSON", "JSON", "BOOLEAN", "BOOLEAN"))
def _fir(series: Any, coefficients: Any, normalize: bool | None, center: bool | None) -> list[Any] | None:
    """A moving sum with weights, which add up to 1 if they are normalized."""
    values, weights = _complete(series), _complete(coefficients)
    if values is None or not weights:
        return None
    total = math.fsum(weights)
    if normalize is not False and total > 0:
        weights = [weight / total for weight in weights]
    shift = len(weights) // 2 if center else 0
    padded = [0.0] * (len(weights) - 1) + [float(value) for value in values] + [0.0] * shift
    moved = [
        math.fsum(weight * padded[place + len(weights) - 1 - back] for back, weight in enumerate(weights))
        for place in range(len(values) + shift)
    ]
    return moved[shift:]


@dynamic_function("kql_series_iir", ("JSON", "JSON", "JSON"))
def _iir(series: Any, numerators: Any, denominators: Any) -> list[Any] | None:
    """A recursive filter: what goes in by the numerators, what came out before by the denominators."""
    values, above, below = _complete(series), _complete(numerators), _complete(denominators)
    if values is None or not above or not below or below[0] == 0:
        return None
    made: list[float] = []
    for place in range(len(values)):
        coming = math.fsum(weight * values[place - back] for back, weight in enumerate(above) if back <= place)
        gone = math.fsum(weight * made[place - back] for back, weight in enumerate(below) if 0 < back <= place)
        made.append((coming - gone) / below[0])
    return made


@dynamic_function("kql_series_fft", ("JSON", "JSON", "BOOLEAN"))
def _fourier(real: Any, imaginary: Any, inverse: bool) -> list[list[float]] | None:
    """Real and imaginary parts; of a length that is no power of two by the sum itself."""
    first = _complete(real)
    second = _complete(imaginary) if imaginary is not None else [0.0] * len(first or [])
    if first is None or second is None or len(first) != len(second):
        return None
    made = _transformed([complex(a, b) for a, b in zip(first, second, strict=True)], 1 if inverse else -1)
    scale = len(made) if inverse and made else 1
    return [[value.real / scale for value in made], [value.imag / scale for value in made]]


def _transformed(values: list[complex], sign: int) -> list[complex]:
    size = len(values)
    if size <= 1:
        return values
    if size % 2:
        turns = [cmath.exp(sign * 2j * cmath.pi * place / size) for place in range(size)]
        return [sum(value * turns[k * n % size] for n, value in enumerate(values)) for k in range(size)]
    even, odd = _transformed(values[::2], sign), _transformed(values[1::2], sign)
    turned = [cmath.exp(sign * 2j * cmath.pi * place / size) * value for place, value in enumerate(odd)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]


def _bag_columns(template: str, parts: tuple[str, ...], dynamics: tuple[str, ...]) -> Callable[[BoundCall], Output]:
    """One column for each part of the bag that `template` makes; places are whole numbers."""

    def build(call: BoundCall) -> Output:
        given = [*call.arguments, literal(False, BOOL)]
        bag = fill(template, DYNAMIC, *given)
        name = call.arguments[0].name
        columns = []
        for part in parts:
            kind = DYNAMIC if part in dynamics else LONG if part.endswith("_idx") else REAL
            member = member_of(bag, part)
            columns.append((f"{call.name}_{name}_{part}", member if kind is DYNAMIC else convert(member, kind)))
        return tuple(columns)

    return build


def _fft_columns(call: BoundCall) -> Output:
    found = _fft(call)
    return tuple((f"{call.name}_{part}", member_of(found, place)) for place, part in enumerate(("real", "imag")))


def _fft(call: BoundCall) -> Typed:
    imaginary = call.arguments[1] if len(call.arguments) > 1 else literal(None, DYNAMIC)
    inverse = "TRUE" if call.name == "series_ifft" else "FALSE"
    return fill(f"kql_series_fft({{0}}, {{1}}, {inverse})", DYNAMIC, call.arguments[0], imaginary)


def _of_two(name: str) -> Callable[[BoundCall], Typed]:
    def build(call: BoundCall) -> Typed:
        left, right = (json_value(argument) for argument in call.arguments)
        return fill(f"kql_series_pairs({{0}}, {{1}}, '{name}')", DYNAMIC, left, right)

    return build


def _with_defaults(template: str, *defaults: Typed, result: Any = DYNAMIC) -> Callable[[BoundCall], Typed]:
    """A function whose last arguments may be left out."""

    def build(call: BoundCall) -> Typed:
        missing = template.count("{") - len(call.arguments)
        return fill(template, result, *call.arguments, *defaults[len(defaults) - missing :])

    return build


_NO_NUMBER, _YES, _NO = literal(None, REAL), literal(True, BOOL), literal(False, BOOL)
_STATS, _FIT = "kql_series_stats({0}, {1})", "kql_series_fit_line({0})"

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(function(f"series_{name}(series: dynamic): dynamic", f"kql_series_each({{0}}, '{name}')") for name in _EACH),
    *(function(f"series_{name}(series1: any, series2: any)", _of_two(name)) for name in _PAIRS),
    function(
        "series_fill_const(series: dynamic, constant_value?: number, missing_value_placeholder?: real)",
        lambda call: fill(
            "kql_series_fill_const({0}, {1}, {2})",
            DYNAMIC,
            call.arguments[0],
            json_value(call.arguments[1]) if len(call.arguments) > 1 else literal(0, DYNAMIC),
            call.arguments[2] if len(call.arguments) > 2 else _NO_NUMBER,
        ),
    ),
    function(
        "series_fill_forward(series: dynamic, missing_value_placeholder?: real)",
        _with_defaults("kql_series_fill({0}, {1}, FALSE)", _NO_NUMBER),
    ),
    function(
        "series_fill_backward(series: dynamic, missing_value_placeholder?: real)",
        _with_defaults("kql_series_fill({0}, {1}, TRUE)", _NO_NUMBER),
    ),
    function(
        "series_fill_linear(series: dynamic, missing_value?: real, fill_edges?: bool, constant_value?: real)",
        _with_defaults("kql_series_fill_linear({0}, {1}, {2}, {3})", _NO_NUMBER, _YES, literal(0.0, REAL)),
    ),
    *(
        function(f"series_{name}(series: dynamic): real", f"kql_series_measure({{0}}, '{name}')")
        for name in ("sum", "product", "magnitude")
    ),
    function("series_dot_product(series1: json, series2: json): real", "kql_series_dot({0}, {1})"),
    function(
        "series_cosine_similarity(series1: dynamic, series2: dynamic, magnitude1?: real, magnitude2?: real)",
        _with_defaults("kql_series_cosine({0}, {1}, {2}, {3})", _NO_NUMBER, _NO_NUMBER, result=REAL),
    ),
    function("series_pearson_correlation(series1: dynamic, series2: dynamic): real", "kql_series_pearson({0}, {1})"),
    *(
        function(
            f"{name}(series: dynamic, ignore_nonfinite?: bool)",
            _with_defaults(_STATS, _NO),
            columns=_bag_columns(_STATS, _STATISTICS, ()) if name == "series_stats" else None,
        )
        for name in ("series_stats", "series_stats_dynamic")
    ),
    *(
        function(
            f"{name}(series: dynamic): dynamic",
            _FIT,
            columns=_bag_columns(_FIT, _LINE, ("line_fit",)) if name == "series_fit_line" else None,
        )
        for name in ("series_fit_line", "series_fit_line_dynamic")
    ),
    function(
        "series_fir(series: dynamic, filter: dynamic, normalize?: bool, center?: bool)",
        _with_defaults("kql_series_fir({0}, {1}, {2}, {3})", _YES, _NO),
    ),
    function(
        "series_iir(series: dynamic, numerators: dynamic, denominators: dynamic): dynamic",
        "kql_series_iir({0}, {1}, {2})",
    ),
    *(
        function(f"{name}(series: dynamic, series_imaginary?: dynamic)", _fft, columns=_fft_columns)
        for name in ("series_fft", "series_ifft")
    ),
)
