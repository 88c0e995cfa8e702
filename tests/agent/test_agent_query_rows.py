"""Rows of stored queries: what they say first, a column that a question asks for, and shares of rows that are sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from cited_sentences import doubts
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Picture
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import rows_result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-8")]

SHIPPED = tuple(template.to_row() for template in load_templates().values())
AGENTS = ("Firefox", "Chrome", "Chrome")
SIGN_INS: list[dict[str, Any]] = [
    {
        "TimeGenerated": f"2024-07-1{9 - place // 10}T10:{59 - place % 10}:00Z",
        "UserPrincipalName": "ana@contoso.example",
        "Location": "PT",
        "ResultType": "0" if place else "500121",
        "UserAgent": AGENTS[place % 3],
    }
    for place in range(30)
]


async def ask(
    question: str,
    rows: list[dict[str, Any]] = SIGN_INS,
    time: str = "TimeGenerated",
    totals: Mapping[str, int] | None = None,
) -> tuple[Answer, Any]:
    def run(arguments: JsonObject) -> QueryResult:
        first, limit = int(str(arguments.get("offset", 0))), int(str(arguments.get("limit", 20)))
        found = rows_result(rows[first : first + limit], total=len(rows), table="SigninLogs", time_column=time)
        summary = {"template": arguments["template"], "description": "A query.", "totals": dict(totals or {})}
        types = {"TimeGenerated": "datetime", "SignIns": "long"}
        columns = tuple(replace(each, type=types.get(each.name, "string")) for each in found.columns)
        return replace(found, columns=columns, summary=summary)

    gateway = small_estate(
        list_kql_templates=lambda _: rows_result(SHIPPED, table="", time_column=""), run_kql_query=run
    )
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s"))
    assert not doubts(answer.sentences, answer.results, timezone="UTC", said=[question])
    return answer, [dict(call.arguments) for call in gateway.calls if call.tool_name == "run_kql_query"]


async def test_events_say_the_newest_and_what_all_of_them_share() -> None:
    answer, _ = await ask("sign-ins of ana@contoso.example", SIGN_INS[:12])
    first, *_ = answer.text.splitlines()
    assert first.startswith(
        "12 rows for `ana@contoso.example`, newest first. On top: 2024-07-19 10:59:00 UTC, ResultType `500121`"
    )
    assert "These rows share Location `PT`." in first
    assert "ResultType: `0` (11), `500121` (1)." in first
    assert answer.tables[0].columns == ("TimeGenerated", "ResultType", "UserAgent")


async def test_a_value_that_is_a_part_of_what_was_asked_is_still_said() -> None:
    answer, _ = await ask("sign-ins from 203.0.113.66", [row | {"ResultType": "0"} for row in SIGN_INS[:9]])
    assert "These rows share" in answer.text
    assert "ResultType `0`" in answer.text


async def test_what_only_the_rows_that_are_shown_share_is_said_of_those() -> None:
    answer, _ = await ask("sign-ins of ana@contoso.example")
    assert "The rows shown share Location `PT`." in answer.text
    assert "ResultType: `" not in answer.text


async def test_a_column_that_is_asked_for_is_counted_over_every_page() -> None:
    answer, calls = await ask("user agents used by ana@contoso.example")
    assert calls[-1]["limit"] == 100
    assert answer.text.splitlines()[0] == "2 values of UserAgent; most are `Chrome`: 20 of 30 rows."
    assert [row[:2] for row in answer.tables[0].rows] == [("Chrome", "20"), ("Firefox", "10")]


async def test_one_value_in_every_row_is_said_as_that() -> None:
    answer, _ = await ask("which browser does ana@contoso.example use", [row | {"Browser": "Edge"} for row in SIGN_INS])
    assert answer.text.splitlines()[0] == "Browser is `Edge` in all of 30 rows."


async def test_rows_that_are_asked_for_with_a_column_stay_rows() -> None:
    answer, calls = await ask("sign-ins of ana@contoso.example with user agents")
    assert len(calls) == 1
    assert answer.tables[0].columns[:2] == ("TimeGenerated", "UserAgent")


@pytest.mark.parametrize(
    "said", ["is {} still logged in", "does {} have an active session", "is {} signed in anywhere"]
)
async def test_a_session_is_no_row_and_the_last_sign_in_is_told(said: str) -> None:
    answer, _ = await ask(said.format("ana@contoso.example"))
    assert answer.text.startswith(
        "The logs tell when somebody signed in, not whether the session is still open.\n30 rows"
    )


async def test_a_share_is_calculated_over_rows_that_are_sums() -> None:
    answer, _ = await ask(
        "share of sign-ins by country", [{"Country": "PT", "SignIns": 3}, {"Country": "RO", "SignIns": 1}]
    )
    assert answer.text.splitlines()[0] == "2 values of Country; most are `PT`: 3 of 4 SignIns."


DAYS = [{"Day": f"2024-07-{10 + place}T00:00:00Z", "SignIns": count} for place, count in enumerate((3, 9, 4, 7))]


@pytest.mark.parametrize(
    ("rows", "totals", "first", "picture"),
    [
        (DAYS, {"SignIns": 23}, "Most SignIns: `2024-07-11T00:00:00Z` 9, `2024-07-13", Picture.RANKING),
        (sorted(DAYS, key=lambda row: row["SignIns"]), {"SignIns": 23}, "Fewest SignIns: `2024-07-10", Picture.RANKING),
        ([{**row, "SignIns": 1} for row in DAYS], {"SignIns": 4}, "4 rows. Sums: SignIns 4.", Picture.NONE),
        (DAYS, {}, "4 rows.", Picture.NONE),
        ([{**row, "Day": "2024-07-10"} for row in DAYS], {"SignIns": 23}, "4 rows. Sums: SignIns 23.", Picture.NONE),
    ],
)
async def test_rows_of_sums_say_first_who_leads_them(
    rows: list[dict[str, Any]], totals: dict[str, int], first: str, picture: Picture
) -> None:
    """The largest by its value and not by its place; nothing leads where all are the same or nothing is summed up."""
    answer, _ = await ask("sign-ins per day", rows, totals=totals)
    assert answer.text.startswith(first)
    assert answer.tables[0].picture is picture
