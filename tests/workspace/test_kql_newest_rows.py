"""`arg_max` and `arg_min` by a key: a choice of rows and the aggregate answer the same, nulls and ties included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

ROWS = """datatable(K:string, T:datetime, N:long, D:dynamic)[
  'a', datetime(2026-01-01), 1, dynamic({"x":1}),
  'a', datetime(2026-01-03), long(null), dynamic(null),
  'a', datetime(2026-01-02), 3, dynamic([1]),
  'b', datetime(null), 4, dynamic("s"),
  '', datetime(2026-01-05), 5, dynamic(null),
  'b', datetime(2026-01-04), 6, dynamic({})]"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("newest"))
    yield opened
    opened.close()


def rows(workspace: Workspace, kql: str) -> Any:
    return [list(row) for row in workspace.query(kql).rows]


@pytest.mark.parametrize(
    ("kql", "expected"),
    [
        (
            "summarize arg_max(T, *) by K | order by K asc | project K, T, N, D",
            [
                ["", "2026-01-05T00:00:00Z", 5, None],
                ["a", "2026-01-03T00:00:00Z", None, None],
                ["b", "2026-01-04T00:00:00Z", 6, "{}"],
            ],
        ),
        (
            "summarize arg_min(T, N), First = min(N), count(), max(T) by K | order by K asc",
            [
                ["", "2026-01-05T00:00:00Z", 5, 5, 1, "2026-01-05T00:00:00Z"],
                ["a", "2026-01-01T00:00:00Z", 1, 1, 3, "2026-01-03T00:00:00Z"],
                ["b", "2026-01-04T00:00:00Z", 6, 4, 2, "2026-01-04T00:00:00Z"],
            ],
        ),
        ("where isnull(T) | summarize arg_max(T, *) by K", [["b", None, 4, "s"]]),
        ("where K == 'none' | summarize arg_max(T, *) by K", []),
        ("summarize arg_max(N, K) by Day = bin(T, 7d) | summarize Highest = max(N)", [[6]]),
        (
            "summarize Latest = arg_max(T, N) by K | where K == 'a' | project Latest, N",
            [["2026-01-03T00:00:00Z", None]],
        ),
        ("summarize arg_max(T, N), Sum = sum(N) by K | where K == 'a' | project N, Sum", [[None, 4]]),
        ("summarize arg_max(T, N) | project N", [[5]]),
    ],
)
def test_the_row_of_the_extreme_comes_whole(workspace: Workspace, kql: str, expected: list[list[Any]]) -> None:
    assert rows(workspace, f"{ROWS} | {kql}") == expected


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    values=st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.integers(-3, 3), st.integers(0, 99)), min_size=1, max_size=12
    ),
    extreme=st.sampled_from(["max", "min"]),
)
def test_each_group_gets_a_row_of_its_own_with_the_extreme(
    workspace: Workspace, values: list[tuple[str, int | None, int]], extreme: str
) -> None:
    cells = ", ".join(f"'{key}', long({'null' if when is None else when}), {value}" for key, when, value in values)
    table = f"datatable(K:string, W:long, V:long)[{cells}]"
    found = {row[0]: (row[1], row[2]) for row in rows(workspace, f"{table} | summarize arg_{extreme}(W, V) by K")}
    assert set(found) == {key for key, _, _ in values}
    for key, (when, value) in found.items():
        told = [each for group, each, _ in values if group == key and each is not None]
        assert when == ((max if extreme == "max" else min)(told) if told else None)
        assert (key, when, value) in values
