"""Values at the edges of their types, and scalar functions around aggregates, as Kusto answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sentinel_rag.workspace.queries import KqlError
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
    r"datatable(s:string)['\\xAA'] | project base64_encode_tostring(s)": "XHhBQQ==",
    r"print base64_encode_tostring('C:\\Windows\\x')": "QzpcV2luZG93c1x4",
    "print base64_encode_tostring('Grüße')": "R3LDvMOfZQ==",
    r"print base64_decode_tostring(base64_encode_tostring('C:\\Grüße'))": r"C:\Grüße",
    "print base64_encodestring('x')": "eA==",
    "print d = dynamic({'a': 'x'}) | project base64_encode_tostring(d.a)": "eA==",
    r"print hash_md5('C:\\Wü')": "b2f134707488922fde77e2c280766d36",
    "print tostring('1e+21 of text')": "1e+21 of text",
}

RANGES = {
    "range x from 1.5 to 3.5 step 1": ("real", "[1.5,2.5,3.5]"),
    "range x from 1 to 10 step 2.6": ("real", "[1.0,3.6,6.2,8.8]"),
    "range x from 0 to 1 step 0.25": ("real", "[0.0,0.25,0.5,0.75,1.0]"),
    "let s = 0.5; range x from 1 to 2 step s": ("real", "[1.0,1.5,2.0]"),
    "range x from 3.0 to 1 step -1": ("real", "[3.0,2.0,1.0]"),
    "range x from 5.0 to 1 step 1": ("real", "[]"),
    "range x from 1 to 3.9 step 1": ("long", "[1,2,3]"),
    "range x from 3 to 1 step -1": ("long", "[3,2,1]"),
    "range x from 1h to 3h step 1h": ("timespan", '["01:00:00","02:00:00","03:00:00"]'),
    "range x from 0s to 1s step 500ms": ("timespan", '["00:00:00","00:00:00.5000000","00:00:01"]'),
    "range x from datetime(2024-01-01) to datetime(2024-01-02) step 12h": (
        "datetime",
        '["2024-01-01T00:00:00.0000000Z","2024-01-01T12:00:00.0000000Z","2024-01-02T00:00:00.0000000Z"]',
    ),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("edges") / "workspace")
    yield opened
    opened.close()


@pytest.mark.parametrize("kql", ANSWERS)
def test_the_answer_is_that_of_kusto(workspace: Workspace, kql: str) -> None:
    assert workspace.query(kql).rows == [(ANSWERS[kql],)]


@pytest.mark.parametrize("source", RANGES)
def test_a_range_has_the_type_and_the_values_of_its_start_and_step(workspace: Workspace, source: str) -> None:
    kind, values = RANGES[source]
    assert workspace.query(f"{source} | getschema | project ColumnType").rows == [(kind,)]
    assert workspace.query(f"{source} | summarize tostring(make_list(x))").rows == [(values,)]


@pytest.mark.parametrize("step", ["0", "0.0"])
def test_a_range_without_a_step_is_refused(workspace: Workspace, step: str) -> None:
    with pytest.raises(KqlError, match="The step of range is 0"):
        workspace.query(f"range x from 1 to 3 step {step}")


KEYED = "datatable(k:string, v:long)['a', 1, 'b', 2] "


@pytest.mark.parametrize(
    ("kql", "names", "rows"),
    [
        ("sort by v desc | serialize | extend r = row_number() | project r, k", "r k", [(1, "b"), (2, "a")]),
        ("sort by v desc | serialize // in order\n| extend p = prev(k) | project p", "p", [("",), ("b",)]),
        ("serialize", "k v", [("a", 1), ("b", 2)]),
        ("extend s = 'x | serialize' | project s | take 1", "s", [("x | serialize",)]),
        ("extend kind = v, type = k | project kind, type", "kind type", [(1, "a"), (2, "b")]),
        ("extend kind = v | summarize n = count() by kind | sort by kind desc", "kind n", [(2, 1), (1, 1)]),
        (
            "join kind=inner (datatable(k:string)['a']) on k | summarize kind = count() by type = k",
            "type kind",
            [("a", 1)],
        ),
        ("extend d = dynamic({'kind': 'x'}) | project d.kind | take 1", "d_kind", [("x",)]),
        ("extend kind = v | render barchart with (title='x', kind=stacked)", "k v kind", [("a", 1, 1), ("b", 2, 2)]),
        ("project x = iff(v == 1, v, 0.5)", "x", [(1.0,), (0.5,)]),
        ("project x = case(v == 1, 2.5, v == 2, v, 3)", "x", [(2.5,), (2.0,)]),
        ("summarize x = max(iff(v > 1, v, 0.5))", "x", [(2.0,)]),
    ],
)
def test_words_that_the_grammar_knows_and_branches_of_two_numbers(
    workspace: Workspace, kql: str, names: str, rows: list[tuple[object, ...]]
) -> None:
    answer = workspace.query(f"{KEYED}| {kql}")
    assert (" ".join(column.name for column in answer.columns), answer.rows) == (names, rows)


def test_arithmetic_over_a_dynamic_is_refused_with_the_way_out(workspace: Workspace) -> None:
    with pytest.raises(KqlError) as refusal:
        workspace.query("print d = dynamic({'x': 5}) | project y = d.x + 1")
    assert "'+' with a dynamic value" in str(refusal.value)
    assert "tolong()" in str(refusal.value)
