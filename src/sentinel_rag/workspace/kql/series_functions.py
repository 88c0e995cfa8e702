"""Series: arithmetic, comparison, filling and statistics over arrays of numbers, as `make-series` makes them.

Source: the Kusto pages "series_add()", "series_fill_linear()", "series_stats_dynamic()" and their siblings. Only what
those pages define exactly is here: decomposition, outliers, periods and filters leave choices open and stay refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, bound_all, json_array, number_of, scalar

_WHOLE = "regexp_matches(CAST({0} AS VARCHAR), '^-?\\d+$')"
_INTEGER = "TRY_CAST(CAST({0} AS VARCHAR) AS BIGINT)"


def _json_number(value: str) -> str:
    """A real as JSON; what JSON has no number for is written as Kusto writes it, in quotes."""
    return (
        f"CASE WHEN isnan({value}) THEN to_json('NaN') WHEN isinf({value}) "
        f"THEN to_json(CASE WHEN {value} > 0 THEN 'Infinity' ELSE '-Infinity' END) ELSE to_json({value}) END"
    )


def _numbers(series: str) -> str:
    return f"list_transform({json_array(series)}, lambda _e: {number_of('_e')})"


def _each(series: str, result: str) -> str:
    """`result` over `_n`, the number of each element; null where there is none."""
    element = bound("_n", number_of("_e"), f"CASE WHEN _n IS NOT NULL THEN {result} END")
    return f"to_json(list_transform({json_array(series)}, lambda _e: {element}))"


def _real_function(expression: str) -> Callable[[str], str]:
    def write(series: str) -> str:
        return _each(series, bound("_y", f"CAST({expression} AS DOUBLE)", _json_number("_y")))

    return write


def _keeping_integers(function: str) -> Callable[[str], str]:
    def write(series: str) -> str:
        whole = f"to_json(CAST({function}({_INTEGER.format('_e')}) AS BIGINT))"
        real = _json_number(f"CAST({function}(_n) AS DOUBLE)")
        return _each(series, f"CASE WHEN {_WHOLE.format('_e')} THEN {whole} ELSE {real} END")

    return write


def _pairs(left: str, right: str, result: str) -> str:
    """`result` over `_x.a` and `_x.b`, the elements at one place, and `_x.m` and `_x.n`, their numbers."""
    element = bound_all(
        "_x",
        f"CASE WHEN _x.m IS NOT NULL AND _x.n IS NOT NULL THEN {result} END",
        a="_p.a[_i + 1]",
        b="_p.b[_i + 1]",
        m=number_of("_p.a[_i + 1]"),
        n=number_of("_p.b[_i + 1]"),
    )
    return bound_all(
        "_p",
        "CASE WHEN _p.a IS NOT NULL AND _p.b IS NOT NULL THEN "
        f"to_json(list_transform(range(greatest(len(_p.a), len(_p.b))), lambda _i: {element})) END",
        a=json_array(left),
        b=json_array(right),
    )


def _arithmetic(operator: str) -> Callable[[str, str], str]:
    """Two whole numbers give a whole one."""

    def write(left: str, right: str) -> str:
        both = f"{_WHOLE.format('_x.a')} AND {_WHOLE.format('_x.b')}"
        whole = f"to_json({_INTEGER.format('_x.a')} {operator} {_INTEGER.format('_x.b')})"
        return _pairs(left, right, f"CASE WHEN {both} THEN {whole} ELSE {_json_number(f'(_x.m {operator} _x.n)')} END")

    return write


def _real_pairs(expression: str) -> Callable[[str, str], str]:
    def write(left: str, right: str) -> str:
        return _pairs(left, right, bound("_y", f"CAST({expression} AS DOUBLE)", _json_number("_y")))

    return write


def _comparison(operator: str) -> Callable[[str, str], str]:
    def write(left: str, right: str) -> str:
        return _pairs(left, right, f"to_json(_x.m {operator} _x.n)")

    return write


def _missing(placeholder: str) -> str:
    """Whether the element `_e` stands for a missing value."""
    if not placeholder:
        return "(_e IS NULL)"
    number = f"TRY_CAST(CAST({placeholder} AS VARCHAR) AS DOUBLE)"
    return f"(CASE WHEN {number} IS NULL THEN _e IS NULL ELSE coalesce({number_of('_e')} = {number}, false) END)"


def _with_gaps(series: str, placeholder: str, body: str) -> str:
    """`body` over `_s.l`, the elements, and `_s.g`, the same with null for what is missing."""
    gaps = f"list_transform(_s.l, lambda _e: CASE WHEN {_missing(placeholder)} THEN NULL ELSE _e END)"
    return bound(
        "_s",
        f"struct_pack(l := {json_array(series)})",
        f"CASE WHEN _s.l IS NULL THEN NULL ELSE {bound('_s', f'struct_pack(l := _s.l, g := {gaps})', body)} END",
    )


def _filled(series: str, placeholder: str, replacement: str) -> str:
    return _with_gaps(
        series,
        placeholder,
        f"to_json(list_transform(_s.l, lambda _e, _i: CASE WHEN _s.g[_i] IS NOT NULL THEN _e ELSE {replacement} END))",
    )


def _fill_const(series: str, constant: str, placeholder: str = "") -> str:
    return _filled(series, placeholder, f"to_json({constant})")


def _fill_forward(series: str, placeholder: str = "") -> str:
    last = "list_filter(list_slice(_s.g, 1, _i), lambda _v: _v IS NOT NULL)[-1]"
    return _filled(series, placeholder, f"coalesce({last}, _e)")


def _fill_backward(series: str, placeholder: str = "") -> str:
    following = "list_filter(list_slice(_s.g, _i, len(_s.g)), lambda _v: _v IS NOT NULL)[1]"
    return _filled(series, placeholder, f"coalesce({following}, _e)")


def _fill_linear(series: str, placeholder: str = "", edges: str = "true", constant: str = "0") -> str:
    """Between two whole-number neighbours of a series of whole numbers the value is cut to one."""
    places = "list_filter(range(1, len(_s.g) + 1), lambda _k: _s.g[_k] IS NOT NULL)"
    integers = f"len(list_filter(_s.g, lambda _v: _v IS NOT NULL AND NOT {_WHOLE.format('_v')})) = 0"
    low, high = number_of("_g.g[_q.p]"), number_of("_g.g[_q.n]")
    value = f"({low} + ({high} - {low}) * (_i - _q.p) / (_q.n - _q.p))"
    between = f"CASE WHEN _g.w THEN to_json(CAST(trunc({value}) AS BIGINT)) ELSE to_json({value}) END"
    at = bound_all(
        "_q",
        f"CASE WHEN _q.p IS NOT NULL AND _q.n IS NOT NULL THEN {between} "
        f"WHEN coalesce({edges}, true) THEN coalesce(_g.g[_q.p], _g.g[_q.n]) ELSE _e END",
        p="list_filter(_g.k, lambda _k: _k < _i)[-1]",
        n="list_filter(_g.k, lambda _k: _k > _i)[1]",
    )
    body = bound_all(
        "_g",
        f"to_json(CASE WHEN len(_g.k) = 0 THEN list_transform(_g.l, lambda _e: to_json(CAST({constant} AS DOUBLE))) "
        f"ELSE list_transform(_g.l, lambda _e, _i: CASE WHEN _g.g[_i] IS NOT NULL THEN _e ELSE {at} END) END)",
        l="_s.l",
        g="_s.g",
        k=places,
        w=integers,
    )
    return _with_gaps(series, placeholder, body)


def _sum(series: str) -> str:
    return f"CAST(list_sum({_numbers(series)}) AS DOUBLE)"


def _product(series: str) -> str:
    return f"CAST(list_product({_numbers(series)}) AS DOUBLE)"


def _magnitude(series: str) -> str:
    return f"sqrt(list_sum(list_transform({_numbers(series)}, lambda _n: _n * _n)))"


def _broadcast(value: str, other: str) -> str:
    """An array of numbers, or one number for each element of the other array."""
    number = f"TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE)"
    return f"coalesce({_numbers(value)}, list_transform({json_array(other)}, lambda _e: {number}))"


def _dot(left: str, right: str) -> str:
    """Over the shorter of the two; null if one is empty."""
    return bound_all(
        "_d",
        "list_sum(list_transform(range(least(len(_d.a), len(_d.b))), lambda _i: _d.a[_i + 1] * _d.b[_i + 1]))",
        a=_broadcast(left, right),
        b=_broadcast(right, left),
    )


def _cosine(left: str, right: str, left_size: str = "", right_size: str = "") -> str:
    return (
        f"({_dot(left, right)} / (coalesce({left_size or 'NULL'}, {_magnitude(left)}) "
        f"* coalesce({right_size or 'NULL'}, {_magnitude(right)})))"
    )


def _pearson(left: str, right: str) -> str:
    """Null if the lengths differ or an element is no number."""
    centred = "(_c.{0}[_i + 1] - list_avg(_c.{0}))"

    def total(first: str, second: str) -> str:
        product = f"{centred.format(first)} * {centred.format(second)}"
        return f"list_sum(list_transform(range(len(_c.a)), lambda _i: {product}))"

    return bound_all(
        "_c",
        "CASE WHEN len(_c.a) = len(_c.b) AND len(list_filter(list_concat(_c.a, _c.b), lambda _n: _n IS NULL)) = 0 "
        f"THEN {total('a', 'b')} / sqrt({total('a', 'a')} * {total('b', 'b')}) END",
        a=_numbers(left),
        b=_numbers(right),
    )


def _statistics(series: str, ignore: str = "false") -> str:
    """A bag of min, max, their places, avg, stdev, variance (both of a sample), sum and len."""
    finite = "list_filter(_s.n, lambda _n: _n IS NOT NULL AND isfinite(_n))"
    spread = "CASE WHEN len(_f) > 1 THEN coalesce({0}(_f), 0) ELSE 0.0 END"
    bag = (
        "json_object('min', list_min(_f), 'min_idx', list_position(_s.n, list_min(_f)) - 1, "
        "'max', list_max(_f), 'max_idx', list_position(_s.n, list_max(_f)) - 1, 'avg', list_avg(_f), "
        f"'stdev', {spread.format('list_stddev_samp')}, 'variance', {spread.format('list_var_samp')}, "
        "'sum', list_sum(_f), 'len', len(_s.n))"
    )
    nothing = (
        "json_object('min', NULL, 'min_idx', NULL, 'max', NULL, 'max_idx', NULL, 'avg', NULL, 'stdev', NULL, "
        "'variance', NULL, 'sum', NULL, 'len', len(_s.n))"
    )
    return bound_all(
        "_s",
        "CASE WHEN _s.n IS NULL THEN NULL ELSE "
        + bound("_f", finite, f"CASE WHEN len(_f) = len(_s.n) OR {ignore} THEN {bag} ELSE {nothing} END")
        + " END",
        n=_numbers(series),
    )


def _fit_line(series: str) -> str:
    """A bag of the least-squares line over places 1, 2, 3, ...; null if an element is no number."""
    line = "list_transform(range(len(_y)), lambda _i: _r.b + _r.a * _i)"
    residual = "list_transform(range(len(_y)), lambda _i: _y[_i + 1] - (_r.b + _r.a * _i))"
    mean_x = "(len(_y) - 1) / 2.0"
    products = f"list_sum(list_transform(range(len(_y)), lambda _i: (_i - {mean_x}) * (_y[_i + 1] - list_avg(_y))))"
    squares = f"list_sum(list_transform(range(len(_y)), lambda _i: (_i - {mean_x}) * (_i - {mean_x})))"
    slope = bound("_a", f"{products} / {squares}", f"struct_pack(a := _a, b := list_avg(_y) - _a * {mean_x})")
    bag = (
        f"json_object('rsquare', 1 - list_var_pop({residual}) / list_var_pop(_y), 'slope', _r.a, "
        f"'variance', list_var_samp(_y), 'rvariance', list_var_samp({residual}), 'interception', _r.b - _r.a, "
        f"'line_fit', {line})"
    )
    return bound(
        "_y",
        _numbers(series),
        "CASE WHEN len(_y) > 1 AND len(list_filter(_y, lambda _n: _n IS NULL)) = 0 THEN "
        + bound("_r", slope, bag)
        + " END",
    )


_REAL_FUNCTIONS = {
    "acos": "CASE WHEN _n BETWEEN -1 AND 1 THEN acos(_n) ELSE 'NaN' END",
    "asin": "CASE WHEN _n BETWEEN -1 AND 1 THEN asin(_n) ELSE 'NaN' END",
    "atan": "atan(_n)",
    "ceiling": "ceil(_n)",
    "cos": "cos(_n)",
    "exp": "exp(_n)",
    "floor": "floor(_n)",
    "log": "ln(_n)",
    "sin": "sin(_n)",
    "tan": "tan(_n)",
}

_COMPARISONS = {
    "equals": "=",
    "not_equals": "<>",
    "greater": ">",
    "greater_equals": ">=",
    "less": "<",
    "less_equals": "<=",
}

FUNCTIONS: tuple[WrittenFunction, ...] = (
    *(scalar(f"series_{name}", _real_function(sql), 1) for name, sql in _REAL_FUNCTIONS.items()),
    *(scalar(f"series_{name}", _comparison(operator), 2) for name, operator in _COMPARISONS.items()),
    scalar("series_abs", _keeping_integers("abs"), 1),
    scalar("series_sign", _keeping_integers("sign"), 1),
    scalar("series_add", _arithmetic("+"), 2),
    scalar("series_subtract", _arithmetic("-"), 2),
    scalar("series_multiply", _arithmetic("*"), 2),
    scalar("series_divide", _real_pairs("_x.m / _x.n"), 2),
    scalar("series_pow", _real_pairs("power(_x.m, _x.n)"), 2),
    scalar("series_fill_const", _fill_const, 2, 3),
    scalar("series_fill_forward", _fill_forward, 1, 2),
    scalar("series_fill_backward", _fill_backward, 1, 2),
    scalar("series_fill_linear", _fill_linear, 1, 2, 3, 4),
    scalar("series_sum", _sum, 1),
    scalar("series_product", _product, 1),
    scalar("series_magnitude", _magnitude, 1),
    scalar("series_dot_product", _dot, 2),
    scalar("series_cosine_similarity", _cosine, 2, 3, 4),
    scalar("series_pearson_correlation", _pearson, 2),
    scalar("series_stats_dynamic", _statistics, 1, 2),
    scalar("series_fit_line_dynamic", _fit_line, 1),
)
