"""Statements of KQL in the workspace: how a text is parsed, its literals, its times, its collected rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.workspace.queries import Cell, KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

PACKAGE = Path(__file__).resolve().parents[2] / "packages" / "kql-duckdb"
LINES = (PACKAGE / "tests" / "functions" / "statements.jsonl").read_text(encoding="utf-8").splitlines()
STATEMENTS = [json.loads(line) for line in LINES if not any(said in line for said in ("now()", "ago("))]
TOGETHER = 40


def test_each_statement_of_the_engine_answers_the_same(kql_workspace: Workspace, subtests: pytest.Subtests) -> None:
    for start in range(0, len(STATEMENTS), TOGETHER):
        asked = STATEMENTS[start : start + TOGETHER]
        answer = kql_workspace.query("print " + ", ".join(f"x{n} = {each[0]}" for n, each in enumerate(asked)))
        for (expression, kind, value), column, found in zip(asked, answer.columns, answer.rows[0], strict=True):
            with subtests.test(expression):
                assert column.type == kind
                exact = not isinstance(found, float) or isinstance(value, str | None)
                assert found == value if exact else math.isclose(found, value, rel_tol=1e-9)


Evaluate = Callable[[str], tuple[str, Cell]]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("parse_command_line('a', 'posix')", "windows"),
        ("parse_user_agent('Mozilla/5.0', 'browser')", "parse_user_agent"),
        ("extract_json('$..a', '{}')", "path"),
        ("extract('a', 0, 'a', 'long')", "typeof"),
    ],
)
def test_what_cannot_be_parsed_exactly_is_refused(evaluated: Evaluate, expression: str, reason: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert reason in str(refusal.value)
    assert refusal.value.next_step


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("datetime(2020-13-45x)", "datetime literal"),
        ("datetime(yesterday)", "datetime literal"),
        ("1tick", "timespan"),
        ("time(soon)", "timespan literal"),
        ("9223372036854775808", "long"),
        ("int(2147483648)", "int literal"),
    ],
)
def test_a_literal_that_cannot_be_held_is_refused_and_never_null(
    evaluated: Evaluate, expression: str, name: str
) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert name in str(refusal.value)
    assert refusal.value.next_step


@pytest.mark.parametrize(
    "expression",
    [
        "datetime_part('nanosecond', datetime(2020-01-01 00:00:00.1234567))",
        "datetime_diff('nanosecond', datetime(2020-01-01 00:00:00.1234567), datetime(2020-01-01))",
    ],
)
def test_digits_that_a_time_here_does_not_have_are_refused(evaluated: Evaluate, expression: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert "nanosecond" in str(refusal.value)


def test_the_parts_of_a_time_are_ints_and_ticks_print_as_zero(evaluated: Evaluate) -> None:
    assert evaluated("datetime_part('microsecond', datetime(2020-01-01 00:00:00.123456))") == ("int", 123456)
    assert evaluated("hourofday(datetime(2020-01-01 13:00)) * 1000000000") == ("long", 13_000_000_000)
    formatted = "format_datetime(datetime(2020-01-01 00:00:05.5), 'HH:mm:ss.fffffff [FFFFFFF]')"
    assert evaluated(formatted) == ("string", "00:00:05.5000000 [5000000]")
    assert evaluated("abs(-90m)") == ("timespan", "01:30:00")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"])
def test_the_place_of_a_public_address_is_not_guessed(evaluated: Evaluate, address: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(f"geo_info_from_ip_address('{address}')")
    assert "geo_info_from_ip_address has no data here" in str(refusal.value)
    assert refusal.value.next_step


def test_rows_that_are_filtered_out_do_not_stop_a_query(kql_workspace: Workspace) -> None:
    answer = kql_workspace.query(
        "datatable(ip:string)['10.0.0.1', '8.8.8.8'] | where ipv4_is_private(ip) "
        "| extend g = geo_info_from_ip_address(ip) | where isempty(g.country) | count"
    )
    assert answer.rows == [(1,)]


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
            "range x from 1 to 100000 step 1 | summarize s = make_set(x % 500), f = make_set(x % 500, 70) "
            "| project array_length(s), array_length(f), tostring(s[0]), tostring(s[499]), tostring(f[69])",
            (500, 70, "1", "0", "70"),
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
