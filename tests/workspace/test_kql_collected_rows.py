"""What `make_list` and `make_set` collect: the same values in the same order, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace.open(tmp_path_factory.mktemp("collected"))
    yield workspace
    workspace.close()


TEN = "range x from 1 to 10 step 1"
LATE = "range x from 1 to 100000 step 1 | extend t = iff(x == 99999, 'late', 'early')"


@pytest.mark.parametrize(
    ("kql", "row"),
    [
        (f"{TEN} | summarize make_set(x, 3), make_list(x, 3)", ("[1,2,3]", "[1,2,3]")),
        (f"{TEN} | summarize make_set_if(x, x > 5, 2), make_list_if(x, x > 5, 2)", ("[6,7]", "[6,7]")),
        (f"{TEN} | where x > 10 | summarize make_set(x), make_set(x, 2), make_list(x)", ("[]", "[]", "[]")),
        (f"{LATE} | summarize make_set(t, 2), make_set(t)", ('["early","late"]', '["early","late"]')),
        (f"{LATE} | summarize make_set(t, 1)", ('["early"]',)),
        (
            "range x from 1 to 100000 step 1 | summarize s = make_set(x % 1000), f = make_set(x % 1000, 70) "
            "| project array_length(s), array_length(f), tostring(s[0]), tostring(s[999]), tostring(f[69])",
            (1000, 70, "1", "0", "70"),
        ),
        (
            "datatable(d: dynamic) [dynamic([1, 2, [3]]), dynamic([2, 4]), dynamic(5), dynamic(null), dynamic([])] "
            "| summarize make_set(d), make_set(d, 2), make_list(d, 2)",
            ("[1,2,[3],4,5]", "[1,2]", "[[1,2,[3]],[2,4]]"),
        ),
        (
            "range x from 1 to 2 step 1 | summarize make_set(1s * x), make_list(datetime(2024-01-01) + 1h * x, 1)",
            ('["00:00:01","00:00:02"]', '["2024-01-01T01:00:00.0000000Z"]'),
        ),
        ("range x from 1 to 200 step 1 | summarize a = makelist(x), b = makeset(x) "
         "| project array_length(a), array_length(b)", (128, 128)),
    ],
)  # fmt: skip
def test_collections_keep_the_order_of_the_rows_and_their_size(
    empty: Workspace, kql: str, row: tuple[Any, ...]
) -> None:
    assert empty.query(kql).rows == [row]
