"""Series functions: Kusto's documented answers, gaps, and series of unequal length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

SERIES: list[tuple[str, str, Cell]] = [
    ("series_add(dynamic([1, 2, 4]), dynamic([4, 2, 1]))", "dynamic", "[5,4,5]"),
    ("series_add(dynamic([1, 2.5]), dynamic([4, 2, 1]))", "dynamic", "[5,4.5,null]"),
    ("series_subtract(dynamic([1, 'x']), dynamic([4, 2]))", "dynamic", "[-3,null]"),
    ("series_multiply(dynamic([1, 2]), dynamic([4, 2]))", "dynamic", "[4,4]"),
    ("series_divide(dynamic([1, 2, 4]), dynamic([4, 2, 1]))", "dynamic", "[0.25,1.0,4.0]"),
    ("series_divide(dynamic([2]), dynamic([0]))", "dynamic", '["Infinity"]'),
    ("series_pow(dynamic([1, 2, 3, 4]), dynamic([1, 2, 3, 0.5]))", "dynamic", "[1.0,4.0,27.0,2.0]"),
    ("series_greater(dynamic([1, 2, 4]), dynamic([4, 2, 1]))", "dynamic", "[false,false,true]"),
    ("series_less_equals(dynamic([1, 2, 4]), dynamic([4, 2, 1]))", "dynamic", "[true,true,false]"),
    ("series_equals(dynamic([1, 2]), dynamic([4, 2.0]))", "dynamic", "[false,true]"),
    ("series_not_equals(dynamic([1, 2]), dynamic([4, null]))", "dynamic", "[true,null]"),
    ("series_abs(dynamic([-6.5, 0, 8]))", "dynamic", "[6.5,0,8]"),
    ("series_sign(dynamic([-6, 0, 8]))", "dynamic", "[-1,0,1]"),
    ("series_ceiling(dynamic([-1.5, 1, 2.5]))", "dynamic", "[-1.0,1.0,3.0]"),
    ("series_floor(dynamic([-1.5, 1, 2.5]))", "dynamic", "[-2.0,1.0,2.0]"),
    ("series_exp(dynamic([0]))", "dynamic", "[1.0]"),
    ("series_log(dynamic([1, 'x']))", "dynamic", "[0.0,null]"),
    ("series_fill_const(dynamic([111, null, 36]), 0.0)", "dynamic", "[111,0.0,36]"),
    ("series_fill_const(dynamic([111, -1, 36]), 0, -1)", "dynamic", "[111,0,36]"),
    ("series_fill_forward(dynamic([null, null, 36, 41, null]))", "dynamic", "[null,null,36,41,41]"),
    ("series_fill_backward(dynamic([111, null, 36, null]))", "dynamic", "[111,36,36,null]"),
    ("series_fill_linear(dynamic([null, 111.0, null, 36.0, null]))", "dynamic", "[111.0,111.0,73.5,36.0,36.0]"),
    (
        "series_fill_linear(dynamic([null, 111, null, 36, 41, null, null, 16]))",
        "dynamic",
        "[111,111,73,36,41,32,24,16]",
    ),
    (
        "series_fill_linear(dynamic([null, 1.0, null, 3.0, null]), real(null), false)",
        "dynamic",
        "[null,1.0,2.0,3.0,null]",
    ),
    ("series_fill_linear(dynamic([null, null]), real(null), true, 3.14159)", "dynamic", "[3.14159,3.14159]"),
    ("series_fill_linear(dynamic([null]))", "dynamic", "[0.0]"),
    ("series_sum(dynamic([1, 2, 3, 4]))", "real", 10.0),
    ("series_product(dynamic([1, 2, 3, 4]))", "real", 24.0),
    ("series_magnitude(dynamic([3, 4]))", "real", 5.0),
    ("series_dot_product(dynamic([1, 2, 4]), dynamic([4, 2, 1]))", "real", 12.0),
    ("series_dot_product(dynamic([1, 2, 3]), 10)", "real", 60.0),
    ("round(series_cosine_similarity(dynamic([3, 4]), dynamic([4, 3])), 6)", "real", 0.96),
    ("series_pearson_correlation(dynamic([1, 2, 3, 4, 5]), dynamic([2, 4, 6, 8, 10]))", "real", 1.0),
    ("series_pearson_correlation(dynamic([1, 2]), dynamic([2, 4, 6]))", "real", None),
    ("series_stats_dynamic(dynamic([23, 46, 23, 87, 4, 8, 3, 75, 2, 56, 13, 75, 32, 16, 29])).min_idx", "dynamic", "8"),
    ("round(toreal(series_stats_dynamic(dynamic([23, 46, 23, 87, 4, 8, 3])).stdev), 4)", "real", 30.1536),
    ("series_stats_dynamic(dynamic([1, null])).avg", "dynamic", None),
    ("series_stats_dynamic(dynamic([1, null]), true).avg", "dynamic", "1.0"),
    (
        "round(toreal(series_fit_line_dynamic(dynamic([2, 5, 6, 8, 11, 15, 17, 18, 25, 26, 30, 30])).slope), 3)",
        "real",
        2.731,
    ),
    (
        "round(toreal(series_fit_line_dynamic(dynamic([2, 5, 6, 8, 11, 15, 17, 18, 25, 26, 30, 30])).rvariance), 3)",
        "real",
        1.686,
    ),
    (
        "round(toreal(series_fit_line_dynamic(dynamic([2, 5, 6, 8, 11, 15, 17, 18, 25, 26, 30, 30])).interception), 3)",
        "real",
        -1.667,
    ),
    (
        "round(toreal(series_fit_line_dynamic(dynamic([2, 5, 6, 8, 11, 15, 17, 18, 25, 26, 30, 30])).line_fit[0]), 3)",
        "real",
        1.064,
    ),
]


@pytest.mark.parametrize(("expression", "type_", "value"), SERIES)
def test_series_functions_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)
