"""Values at the edges of their types, and scalar functions around aggregates, as Kusto answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

ROWS = (
    "datatable(t:datetime, s:string, n:long)"
    "[datetime(2024-01-01 00:00), 'a', 1, datetime(2024-01-02 06:00), 'b', 2] | summarize x = "
)
BAG = "print d = dynamic({'k': 'v', 'K': 'w'}), k = 'K' | project x = "

ANSWERS: dict[str, object] = {
    "print todatetime('2020-01-01 00:00:00 +02:00')": "2019-12-31T22:00:00Z",
    "print todatetime('2020-01-01 00:00:00 +0200')": "2019-12-31T22:00:00Z",
    "print todatetime('2020-01-01 00:00:00.5 -01:30')": "2020-01-01T01:30:00.5Z",
    "print todatetime('nonsense +02:00')": None,
    "print datetime(2020-01-01 00:00:00 +02:00)": "2019-12-31T22:00:00Z",
    "datatable(s:string)['2020-01-01 00:00 +02:00'] | project todatetime(s)": "2019-12-31T22:00:00Z",
    "print make_datetime(99999, 1, 1)": None,
    "print make_datetime(0, 1, 1)": None,
    "print make_datetime(9999, 12, 31)": "9999-12-31T00:00:00Z",
    "print make_datetime(1, 1, 1)": "0001-01-01T00:00:00Z",
    "print datetime(9999-12-31) + 1000d": None,
    "print datetime(0001-01-01) - 1d": None,
    "print datetime_add('year', 100000, datetime(2024-01-01))": None,
    "print datetime(9999-12-31 23:59:59.999999)": "9999-12-31T23:59:59.999999Z",
    f"{ROWS}datetime_diff('hour', max(t), min(t))": 30,
    f"{ROWS}datetime_part('year', max(t))": 2024,
    f"{ROWS}datetime_add('day', 1, max(t))": "2024-01-03T06:00:00Z",
    f"{ROWS}format_timespan(max(t) - min(t), 'd.hh')": "1.06",
    f"{ROWS}case(count() > 5, 'many', count() > 1, 'some', 'one')": "some",
    f"{ROWS}bin(max(n), 5)": 0,
    f"{ROWS}strcat_array(make_list(s), ',')": "a,b",
    f"{ROWS}tostring(make_list(s)[0])": "a",
    f"{ROWS}toint(make_list(n)[1]) + 1": 3,
    f"{ROWS}iff(max(n) in (2, 3), 'yes', 'no')": "yes",
    f"{BAG}d[tostring(bag_keys(d)[0])]": "v",
    f"{BAG}d[tolower(k)]": "v",
    f"{BAG}d[strcat(k, '')]": "w",
    "print d = dynamic([1, 2, 3]), k = 'ab' | project x = d[strlen(k)]": "3",
    "print tostring(1.0 / 0)": "Infinity",
    "print tostring(-1.0 / 0)": "-Infinity",
    "print tostring(0.0 / 0)": "NaN",
    "print tostring(1e21)": "1E+21",
    "print tostring(0.00001)": "1E-05",
    "print tostring(1.5)": "1.5",
    "print tostring(1.0)": "1.0",
    "print strcat('a', 1e21)": "a1E+21",
    "datatable(r:real)[1e300] | project strcat(r, 'e')": "1E+300e",
    "print tostring('1e+21 of text')": "1e+21 of text",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("edges") / "workspace")
    yield opened
    opened.close()


@pytest.mark.parametrize("kql", ANSWERS)
def test_the_answer_is_that_of_kusto(workspace: Workspace, kql: str) -> None:
    assert workspace.query(kql).rows == [(ANSWERS[kql],)]
