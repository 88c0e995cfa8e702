"""Search operators over a table: case, terms, dynamics, nulls and empty texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.queries import Cell
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

ROWS = """datatable(i:long, s:string, d:dynamic)[
    1, 'Failed login for admin-user', dynamic({'a': 'admin', 'l': ['x', 'Admin']}),
    2, 'administrator logged in', dynamic({'a': null}),
    3, 'user_admin@contoso.com', dynamic(null),
    4, '', dynamic({'a': 'ADMIN 1'}),
    5, 'Éclair admin2 100% c:\\\\temp', dynamic({'a': 5})
]"""


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("s has 'admin'", [1, 3]),
        ("s has 'ADMIN'", [1, 3]),
        ("s !has 'admin'", [2, 4, 5]),
        ("s has_cs 'Admin'", []),
        ("s has 'admin-user'", [1]),
        ("s has 'min'", []),
        ("s has ''", [1, 2, 3, 4, 5]),
        ("s hasprefix 'admin'", [1, 2, 3, 5]),
        ("s hasprefix 'dmin'", []),
        ("s !hasprefix 'admin'", [4]),
        ("s hassuffix 'user'", [1, 3]),
        ("s hassuffix_cs 'ser'", [1, 3]),
        ("s hasprefix_cs 'Admin'", []),
        ("s has 'éclair'", [5]),
        ("s contains 'ADMIN'", [1, 2, 3, 5]),
        ("s contains_cs 'ADMIN'", []),
        ("s !contains 'admin'", [4]),
        ("s contains '%'", [5]),
        ("s contains '_'", [3]),
        ("s contains 'C:\\\\TEMP'", [5]),
        ("s startswith 'failed'", [1]),
        ("s startswith_cs 'failed'", []),
        ("s !startswith 'failed'", [2, 3, 4, 5]),
        ("s startswith 'user_'", [3]),
        ("s startswith '%'", []),
        ("s endswith '.COM'", [3]),
        ("s !endswith_cs '.COM'", [1, 2, 3, 4, 5]),
        ("s has_any ('login', 'LOGGED')", [1, 2]),
        ("s has_any ('a1', 'b', 'c', 'd', 'contoso', '100')", [3, 5]),
        ("s has_any (dynamic(['login', 'in']))", [1, 2]),
        ("s has_all ('failed', 'admin')", [1]),
        ("s has_all ('failed', 'mad')", []),
        ("s has_any (d.l)", [1]),
        ("s has_any (d.l, 'logged')", [1, 2]),
        ("s has_all (d.l)", []),
        ("s has_any (split('x,admin', ','))", [1, 3]),
        ("'Admin' in (d.l)", [1]),
        ("'admin' in~ (d.l)", [1]),
        ("s in (dynamic(['', 'x']), 'administrator logged in')", [2, 4]),
        ("'x' !in (d.l)", [2, 3, 4, 5]),
        ("i in (range(2, 3))", [2, 3]),
        ("s in~ ('ADMINISTRATOR LOGGED IN', '')", [2, 4]),
        ("s !in~ ('ADMINISTRATOR LOGGED IN')", [1, 3, 4, 5]),
        ("s =~ 'administrator LOGGED in'", [2]),
        ("s !~ ''", [1, 2, 3, 5]),
        ("s matches regex @'admin[a-z]'", [2]),
        ("d.a has 'admin'", [1, 4]),
        ("d.a =~ 'admin'", [1]),
        ("d has 'admin'", [1, 4]),
        ("tostring(d.l) contains 'admin'", [1]),
        ("d.a startswith 'adm'", [1, 4]),
        ("isempty(d.a)", [2, 3]),
        ("isnull(d.a)", [2, 3]),
    ],
)
def test_search_finds_the_rows_that_kusto_finds(kql_workspace: Workspace, condition: str, found: list[int]) -> None:
    answer = kql_workspace.query(f"{ROWS} | where {condition} | sort by i asc | project i")
    assert [row[0] for row in answer.rows] == found


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("has_any_index('this is an example', dynamic(['this', 'example']))", 0),
        ("has_any_index('this is an example', dynamic(['not', 'example']))", 1),
        ("has_any_index('this is an example', dynamic(['not', 'exam']))", -1),
        ("has_any_index('Example number 2', range(1, 3, 1))", 1),
        ("has_any_index('this is an example', dynamic([]))", -1),
    ],
)
def test_the_place_of_what_is_found(evaluated: Callable[[str], tuple[str, Cell]], expression: str, place: int) -> None:
    assert evaluated(expression) == ("long", place)
