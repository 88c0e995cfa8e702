"""Lists and counts without something: what is left out, what is asked back, and what is said where not all was seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryResult, format_time
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def column(answer: Answer, name: str) -> list[str]:
    (table,) = answer.tables
    return [row[table.columns.index(name)] for row in table.rows]


@pytest.mark.parametrize(
    ("question", "incidents"),
    [
        ("all incidents except incident 12", ["40", "31", "23", "18", "7"]),
        ("all incidents except 12 and 18", ["40", "31", "23", "7"]),
        ("list incidents without the low ones", ["40", "31", "18", "12", "7"]),
        ("incidents that are not high", ["31", "23", "7"]),
        ("incidents except low and informational, oldest first", ["12", "18", "31", "40"]),
        ("which incidents are not assigned to m.keller", ["40", "31", "18", "7"]),
        ("open incidents that don't involve m.keller", ["40"]),
        ("incidents other than phishing", ["31", "18", "12", "7"]),
        ("incidents except closed", ["40", "31", "18", "12"]),
        ("incidents no longer open", ["23", "7"]),
        ("which incidents are not assigned", ["40", "7"]),
        ("open incidents that are not assigned to anyone", ["40"]),
    ],
)
async def test_incidents_without(ask: Ask, question: str, incidents: list[str]) -> None:
    answer = await ask(question)
    if len(incidents) == 1:
        assert f"{incidents[0]}" in answer.text or column(answer, "Incident") == incidents
    assert column(answer, "Incident") == incidents
    assert column(answer, "") == [f"[{place}]" for place in range(1, len(incidents) + 1)]


@pytest.mark.parametrize(
    ("question", "incidents"),
    [
        ("alerts not in incident 12", ["40", "31", "31", "23", "18", "7"]),
        ("show all alerts except those of incident 12", ["40", "31", "31", "23", "18", "7"]),
        ("alerts except low and informational", ["40", "31", "31", "18", "12", "12"]),
        ("alerts of incident 12 except the medium ones", ["12"]),
        ("alerts not involving host web-03", ["40", "31", "23", "18", "12", "12", "7"]),
        ("alerts excluding informational in the last 30 days", ["40", "31", "31", "23", "18", "12", "12"]),
        ("alerts other than powershell", ["40", "31", "23", "18", "12", "12", "7"]),
    ],
)
async def test_alerts_without(ask: Ask, question: str, incidents: list[str]) -> None:
    assert column(await ask(question), "Incident") == incidents


@pytest.mark.parametrize(
    ("question", "kind", "limit"),
    [
        ("top hosts except web-03", "host", 21),
        ("top 5 hosts other than web-03 and dc-01.contoso.example", "host", 7),
        ("top accounts except m.keller", "account", 21),
    ],
)
async def test_a_ranking_without_named_rows(
    ask: Ask, gateway: ScriptedGateway, question: str, kind: str, limit: int
) -> None:
    whole = await ask(f"top {kind}s")
    answer = await ask(question)
    assert gateway.calls[-1].arguments == {"kind": kind, "limit": limit}
    names = [row[1] for row in answer.tables[0].rows]
    assert names == [
        row[1]
        for row in whole.tables[0].rows
        if not row[1].startswith(("web-03", "m.keller")) and not ("dc-01" in question and row[1].startswith("dc-01"))
    ]
    assert "Left out: " in answer.text
    assert f"First is `{names[0]}`" in answer.text
    assert [row[0] for row in answer.tables[0].rows] == [f"[{place}]" for place in range(1, len(names) + 1)]


async def test_a_ranking_without_a_row_that_it_does_not_hold_says_so(ask: Ask) -> None:
    answer = await ask("top hosts except web-99")
    assert "No row that came is called `web-99`, so nothing was left out for it." in answer.text


async def test_a_count_tells_the_whole_and_what_was_left_out(ask: Ask) -> None:
    answer = await ask("how many alerts are not high?")
    assert answer.text.splitlines()[0] == "5 of 8 alerts. Condition: `severity != High`."
    assert not answer.tables
    assert "Not all rows" not in answer.text


async def test_nothing_may_be_left(ask: Ask) -> None:
    answer = await ask("alerts on web-03 but not in incident 31")
    assert answer.outcome is Outcome.NO_DATA
    assert answer.text.startswith("None of the alerts is left.")


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("before", "question", "incidents"),
    [
        ("list incidents", "without the low ones", ["40", "31", "18", "12", "7"]),
        ("list open incidents", "except the medium ones", ["40", "18", "12"]),
        ("list open incidents", "which are not assigned", ["40"]),
    ],
)
async def test_something_is_left_out_of_the_last_list(
    ask: Ask, before: str, question: str, incidents: list[str]
) -> None:
    await ask(before)
    assert column(await ask(question), "Incident") == incidents


@pytest.mark.parametrize(
    "question",
    ["incidents without comments", "alerts that are not interesting", "incidents except those that nobody has read",
     "alerts except [2]"],
)  # fmt: skip
async def test_what_is_not_understood_whole_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert {call.tool_name for call in gateway.calls} <= {"get_top_entities", "list_kql_templates"}


@pytest.mark.parametrize("question", ["is incident 12 not closed?", "why was incident 12 not closed?"])
async def test_a_question_about_one_incident_leaves_nothing_out(
    ask: Ask, gateway: ScriptedGateway, question: str
) -> None:
    await ask(question)
    assert [call.tool_name for call in gateway.calls] == ["get_incident_detail"]


def pages(total: int, told: int) -> Callable[[Any], QueryResult]:
    """`total` alerts, a hundred at a time, of which each tenth is Low; the service tells `told` as their number."""

    def answer(arguments: Any) -> QueryResult:
        rows = [
            {
                "alert_id": f"id-{place}",
                "severity": "Low" if place % 10 == 0 else "High",
                "incident_number": place,
                "time": format_time(NOW - timedelta(minutes=place)),
            }
            for place in range(total)
        ]
        low = arguments.get("severity") == "Low"
        rows = [row for row in rows if not low or row["severity"] == "Low"]
        first = int(arguments.get("offset", 0))
        return rows_result(rows[first : first + 100], total=len(rows) if low else told)

    return answer


async def test_every_page_is_looked_at() -> None:
    gateway = small_estate(query_alerts=pages(250, 250))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("alerts except the low ones", "s"))
    assert answer.text.startswith("225 of 250 alerts.\n")
    assert "Rows shown: 20." in answer.text
    assert "Not all rows" not in answer.text
    assert column(answer, "Incident")[:3] == ["1", "2", "3"]


async def test_rows_that_were_not_seen_are_told() -> None:
    gateway = small_estate(query_alerts=pages(250, 5_000))
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("alerts except the low ones", "s"))
    assert "225 of 5000 alerts." in answer.text
    assert "Not all rows" in answer.text
