"""Aggregates: types and names of the columns as Kusto gives them, large sets, and what is refused."""

from __future__ import annotations

import pytest

from sentinel_rag.workspace.queries import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

THREE = "range x from 1 to 3 step 1"


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
