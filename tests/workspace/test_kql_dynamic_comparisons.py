"""A dynamic compared with a number or a time: converted without rounding, and null where it cannot be."""

from __future__ import annotations

import pytest

from sentinel_rag.workspace.queries import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

ROWS = """datatable(i:long, d:dynamic)[
    1, dynamic({'n': 2, 't': '2020-01-02T00:00:00Z', 's': '01:00:00'}),
    2, dynamic({'n': 2.4, 't': 'never', 's': 'soon'}),
    3, dynamic({'n': '10', 't': '2019-01-01'}),
    4, dynamic({'n': 'many'}),
    5, dynamic({'n': null}),
    6, dynamic(null),
    7, dynamic({'n': 9007199254740993})
]"""


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("d.n == 2", [1]),
        ("2 == d.n", [1]),
        ("d.n > 2", [2, 3, 7]),
        ("d.n >= 2", [1, 2, 3, 7]),
        ("9 < d.n", [3, 7]),
        ("d.n < 2.5", [1, 2]),
        ("d.n != 2", [2, 3, 4, 5, 6, 7]),
        ("d.n == 9007199254740993", [7]),
        ("d.n == 9007199254740992", []),
        ("d.n between (2 .. 10)", [1, 2, 3]),
        ("d.n in (2, 3)", [1]),
        ("d.n !in (2, 3)", [2, 3, 4, 5, 6, 7]),
        ("d.n == toint('2')", [1]),
        ("d.n == -2", []),
        ("d.t > datetime(2019-06-01)", [1]),
        ("d.t < datetime(2019-06-01)", [3]),
        ("d.s > 30m", [1]),
    ],
)
def test_dynamics_are_compared_as_what_they_hold(kql_workspace: Workspace, condition: str, found: list[int]) -> None:
    answer = kql_workspace.query(f"{ROWS} | where {condition} | sort by i asc | project i")
    assert [row[0] for row in answer.rows] == found
    extended = f"{ROWS} | extend n = d.n, t = d.t, s = d.s | where {condition.replace('d.', '')} | sort by i asc"
    assert [row[0] for row in kql_workspace.query(f"{extended} | project i").rows] == found


@pytest.mark.parametrize(
    "operator",
    ["sort by d.n asc", "top 1 by d.n", "summarize max(d.n)", "summarize minif(d.n, i > 1)", "order by d"],
)
def test_dynamics_have_no_order(kql_workspace: Workspace, operator: str) -> None:
    with pytest.raises(KqlError) as refusal:
        kql_workspace.query(f"{ROWS} | {operator}")
    assert "a dynamic has no order" in str(refusal.value)


def test_converted_dynamics_are_ordered_as_numbers(kql_workspace: Workspace) -> None:
    answer = kql_workspace.query(f"{ROWS} | where i < 4 | sort by todouble(d.n) desc | project i")
    assert [row[0] for row in answer.rows] == [3, 2, 1]
    assert kql_workspace.query(f"{ROWS} | where i < 4 | summarize max(tolong(d.n))").rows == [(10,)]


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (
            "let held = (bag:dynamic, key:string) { tostring(bag[key]) }; print v = held(dynamic({'a b': 5}), 'a b')",
            "5",
        ),
        ("datatable(d:dynamic, k:string)[dynamic({'x': {'y': 7}}), 'x'] | project v = tolong(d[k].y)", 7),
        ("datatable(d:dynamic, k:string)[dynamic({'x': [1, 2]}), 'x'] | project v = tolong(d[k][1])", 2),
        ("datatable(d:dynamic, k:string)[dynamic({'x': 1}), 'none'] | project v = isnull(d[k])", True),
        ("datatable(d:dynamic, i:long)[dynamic([4, 5]), 1] | project v = tolong(d[i])", 5),
    ],
)
def test_keys_that_a_row_holds(kql_workspace: Workspace, query: str, value: object) -> None:
    assert kql_workspace.query(query).rows == [(value,)]
