"""Aggregates: values, types and names of the columns as Kusto gives them, over rows, nulls and no rows at all."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.workspace.kql.errors import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

THREE = "range x from 1 to 3 step 1"
TIMES = f"{THREE} | extend t = datetime(2020-01-01) + x * 1d"
PEOPLE = "datatable(s:string, n:long)['b', 1, 'a', 2, 'b', 3, '', long(null)]"
BAGS = "datatable(d:dynamic)[dynamic({'a':1}), dynamic({'b':2,'a':3}), dynamic(5), dynamic(null)]"
LISTS = "datatable(d:dynamic)[dynamic(['x','y']), dynamic(['y','z'])]"
NOTHING = "range x from 1 to 0 step 1"


@pytest.mark.parametrize(
    ("query", "row"),
    [
        (f"{PEOPLE} | summarize make_set(s), make_list(s)", ('["b","a",""]', '["b","a","b",""]')),
        (
            f"{PEOPLE} | summarize make_set(s, 2), make_list(s, 3), make_list(n)",
            ('["b","a"]', '["b","a","b"]', "[1,2,3]"),
        ),
        (f"{PEOPLE} | summarize make_set_if(s, n > 1), make_list_if(s, n > 0, 1)", ('["a","b"]', '["b"]')),
        (
            f"{PEOPLE} | summarize make_list_with_nulls(n), makeset(n), makelist(n, 1)",
            ("[1,2,3,null]", "[1,2,3]", "[1]"),
        ),
        (
            f"{LISTS} | summarize make_set(d), make_list(d), make_set(d, 2)",
            ('["x","y","z"]', '[["x","y"],["y","z"]]', '["x","y"]'),
        ),
        (
            f"{BAGS} | summarize make_bag(d), make_bag(d, 1), make_bag_if(d, isnotnull(d.b))",
            ('{"a":1,"b":2}', '{"a":1}', '{"b":2,"a":3}'),
        ),
        (
            f"{TIMES} | summarize make_list(t, 1), make_set(t - datetime(2020-01-01))",
            ('["2020-01-02T00:00:00.0000000Z"]', '["1.00:00:00","2.00:00:00","3.00:00:00"]'),
        ),
        (
            f"{THREE} | summarize avg(x * 1h), sum(x * 1h), sumif(x * 1h, x > 1), avgif(x * 1h, x > 5)",
            ("02:00:00", "06:00:00", "05:00:00", None),
        ),
        (f"{THREE} | summarize max(x * 1h), min(datetime(2020-01-01) + x * 1d)", ("03:00:00", "2020-01-02T00:00:00Z")),
        ("range x from 1 to 100 step 1 | summarize percentile(x, 50), percentiles_array(x, 5, 95)", (50, "[5,95]")),
        ("range x from 1 to 100 step 1 | summarize percentiles(x, 5, 50, 95)", (5, 50, 95)),
        (
            f"{THREE} | summarize stdev(x), stdevp(x), variance(x), variancep(x)",
            (1.0, 0.816496580927726, 1.0, 0.6666666666666666),
        ),
        (
            f"{THREE} | summarize stdevif(x, x > 1), varianceif(x, x > 1), variancepif(x, x > 1)",
            (0.7071067811865476, 0.5, 0.25),
        ),
        (
            f"{THREE} | summarize covariance(x, x * 2), covariancep(x, x), covarianceif(x, x, x < 3)",
            (2.0, 0.6666666666666666, 0.5),
        ),
        (f"{THREE} | summarize binary_all_and(x), binary_all_or(x), binary_all_xor(x)", (0, 3, 0)),
        (
            f"{PEOPLE} | summarize dcount(s), count_distinct(s), count_distinctif(s, n > 0), countif(n > 1)",
            (3, 3, 2, 2),
        ),
        (
            f"{PEOPLE} | summarize minif(n, n > 1), maxif(n, n < 3), take_anyif(s, n == 2), count(), sum(n)",
            (2, 2, "a", 4, 6),
        ),
        (f"{PEOPLE} | summarize arg_max(n, s), arg_min(n, s)", (3, "b", 1, "b")),
        (
            f"{NOTHING} | summarize count(), sum(x), avg(x), min(x), make_list(x), "
            "make_set(x), dcount(x), stdev(x), make_bag(pack('a', x))",
            (0, 0, "NaN", None, "[]", "[]", 0, 0.0, "{}"),
        ),
    ],
)
def test_aggregates_answer_as_kusto_does(kql_workspace: Workspace, query: str, row: tuple[Any, ...]) -> None:
    assert kql_workspace.query(query).rows == [row]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (
            f"{THREE} | summarize percentiles(x, 5, 50.5, 95) by k = x % 2",
            [("k", "long"), ("percentile_x_5", "long"), ("percentile_x_50_5", "long"), ("percentile_x_95", "long")],
        ),
        (f"{THREE} | summarize (a, b) = percentiles(x, 5, 50)", [("a", "long"), ("b", "long")]),
        (f"{THREE} | summarize p = percentiles(x, 5, 50)", [("p", "long"), ("percentile_x_50", "long")]),
        (f"{THREE} | extend y = x | summarize take_any(x, y)", [("x", "long"), ("y", "long")]),
        (f"{THREE} | extend y = 'a' | summarize (m, n) = arg_max(x, y)", [("m", "long"), ("n", "string")]),
        (
            f"{THREE} | summarize make_bag(pack('a', x)), make_list_with_nulls(x), make_set_if(x, x > 1), "
            "anyif(x, x > 1)",
            [("bag_", "dynamic"), ("list_x", "dynamic"), ("set_x", "dynamic"), ("anyif_x", "long")],
        ),
        (
            "print s = dynamic([1, 2]) | project series_stats(s)",
            [
                ("series_stats_s_min", "real"),
                ("series_stats_s_min_idx", "long"),
                ("series_stats_s_max", "real"),
                ("series_stats_s_max_idx", "long"),
                ("series_stats_s_avg", "real"),
                ("series_stats_s_stdev", "real"),
                ("series_stats_s_variance", "real"),
            ],
        ),
        (
            "print s = dynamic([1, 2]) | extend (Fit, Slope) = series_fit_line(s) | project-away s",
            [("Fit", "real"), ("Slope", "real")],
        ),
        (
            "print a = dynamic([2, 1]), b = dynamic(['x', 'y']) | extend (p, q) = array_sort_asc(a, b) | project p, q",
            [("p", "dynamic"), ("q", "dynamic")],
        ),
    ],
)
def test_several_columns_come_with_their_names_and_types(
    kql_workspace: Workspace, query: str, columns: list[tuple[str, str]]
) -> None:
    assert [(column.name, column.type) for column in kql_workspace.query(query).columns] == columns


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "print a = dynamic([3, 1, 2]), b = dynamic(['c', 'a', 'b']), c = dynamic([1]) "
            "| extend (p, q, r) = array_sort_asc(a, b, c) | project p, q, r",
            [("[1,2,3]", '["a","b","c"]', None)],
        ),
        ("print a = dynamic([3, 1]), b = dynamic(['c', 'a']) | project array_sort_desc(a, b)[1]", [('["c","a"]',)]),
        (f"{THREE} | extend y = x * 10 | summarize (m, n) = arg_max(x, y)", [(3, 30)]),
    ],
)
def test_values_of_several_columns(kql_workspace: Workspace, query: str, rows: list[tuple[Any, ...]]) -> None:
    assert kql_workspace.query(query).rows == rows


def test_a_large_set_keeps_the_order_of_its_first_appearance(kql_workspace: Workspace) -> None:
    query = (
        "range x from 1 to 60000 step 1 | summarize s = make_set(x % 5000, 3000) "
        "| project array_length(s), s[0], s[2999]"
    )
    assert kql_workspace.query(query).rows == [(3000, "1", "3000")]


def test_a_set_of_a_large_group_is_whole(kql_workspace: Workspace) -> None:
    few = (
        "range x from 1 to 30000 step 1 | extend s = strcat('k', x % 3) | summarize make_set(s), make_set_if(x, x < 3)"
    )
    assert kql_workspace.query(few).rows == [('["k1","k2","k0"]', "[1,2]")]
    many = "range x from 1 to 30000 step 1 | extend y = x % 700 | summarize s = make_set(y)"
    counted = kql_workspace.query(f"{many} | mv-expand y = s to typeof(long) | summarize count(), dcount(y), max(y)")
    assert counted.rows == [(700, 700, 699)]


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("let f = (a:long, b:long) { a - b }; print f(b=1, a=5)", (4,)),
        ("let f = (a:long, b:long) { print x = a - b }; f(b=1, a=5)", (4,)),
        (f"{THREE} | summarize arg_max(x, z=x)", (3, 3)),
    ],
)
def test_an_argument_with_a_name_is_taken_by_it(kql_workspace: Workspace, query: str, row: tuple[Any, ...]) -> None:
    assert kql_workspace.query(query).rows == [row]


@pytest.mark.parametrize("aggregate", ["tdigest(x)", "percentile_tdigest(x, 50)"])
def test_aggregates_that_are_not_exact_are_refused_by_name(kql_workspace: Workspace, aggregate: str) -> None:
    with pytest.raises(KqlError) as refusal:
        kql_workspace.query(f"{THREE} | summarize {aggregate}")
    assert aggregate.partition("(")[0] in str(refusal.value)
    assert refusal.value.kql_code == "SEN0001"


@pytest.mark.parametrize(
    "query",
    [
        f"{THREE} | summarize (a, b) = count()",
        f"{THREE} | extend (a, b) = x + 1",
        f"{THREE} | summarize (a, b) = max(x) by x",
    ],
)
def test_more_names_than_values_are_refused(kql_workspace: Workspace, query: str) -> None:
    with pytest.raises(KqlError) as refusal:
        kql_workspace.query(query)
    assert "(a, b) =" in str(refusal.value)
