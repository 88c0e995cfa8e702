"""Incidents side by side: which are compared, what the table holds, and what they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import INCIDENTS

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome, Table
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, denial, rows_result

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


def asked(gateway: ScriptedGateway) -> list[tuple[str, object]]:
    return [(call.tool_name, call.arguments.get("incident")) for call in gateway.calls]


def table(answer: Answer, title: str) -> Table:
    return next(each for each in answer.tables if each.title == title)


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("before", "question", "incidents"),
    [
        (None, "compare 12 and 18", ["12", "18"]),
        (None, "compare incidents 12, 18 and 31", ["12", "18", "31"]),
        (None, "what is the difference between incident 12 and incident 31?", ["12", "31"]),
        (None, "12 vs 31", ["12", "31"]),
        (None, "what do 12 and 31 share?", ["12", "31"]),
        (None, "are 12 and 31 related?", ["12", "31"]),
        (None, "which accounts do 12 and 31 have in common", ["12", "31"]),
        ("list open incidents", "compare [1] and [2]", ["40", "31"]),
        ("list open incidents", "compare them", ["40", "31", "18", "12"]),
        ("list incidents", "compare the first two", ["40", "31"]),
        ("what is incident 12 about", "compare it with 31", ["12", "31"]),
    ],
)
async def test_what_is_compared(
    ask: Ask, gateway: ScriptedGateway, before: str | None, question: str, incidents: list[str]
) -> None:
    if before is not None:
        await ask(before)
        gateway.calls.clear()
    answer = await ask(question)
    assert asked(gateway) == [("get_incident_detail", each) for each in incidents]
    assert answer.outcome is Outcome.ANSWERED


@pytest.mark.parametrize(
    ("before", "question", "says"),
    [
        (None, "compare 12", "Compared with what?"),
        (None, "compare them", "Which one do you mean?"),
        (None, "compare the high incidents", "Name both incidents"),
        ("list open incidents", "compare [1] and [9]", "no such row"),
    ],
)
async def test_what_is_not_clear_is_asked_back(
    ask: Ask, gateway: ScriptedGateway, before: str | None, question: str, says: str
) -> None:
    if before is not None:
        await ask(before)
    gateway.calls.clear()
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert says in answer.text
    assert not gateway.calls


@pytest.mark.parametrize("question", ["compare this week with last week", "more alerts this week than last week?"])
async def test_windows_are_compared_as_before(ask: Ask, gateway: ScriptedGateway, question: str) -> None:
    await ask(question)
    assert [call.tool_name for call in gateway.calls] == ["get_threat_summary", "get_threat_summary"]


async def test_fields_stand_side_by_side_with_what_differs_and_what_is_shared(ask: Ask) -> None:
    answer = await ask("compare 12 and 31")
    fields = {row[0]: row[1:] for row in table(answer, "Side by side").rows}
    assert table(answer, "Side by side").columns == ("Field", "[1] Incident 12", "[2] Incident 31")
    assert fields["Severity"] == ("High", "Medium")
    assert fields["Owner"] == ("m.keller", "Ines Duarte")
    assert fields["Alerts"] == ("2", "2")
    assert fields["Tactics"] == ("Execution, LateralMovement", "CredentialAccess, Execution")
    assert fields["Entities: account"] == ("1", "2")
    assert "They differ in severity, owner, tactics, techniques." in answer.text
    assert "The same in both: status." in answer.text
    assert "Shared entities: 1." in answer.text
    assert "Shared tactics: Execution." in answer.text
    assert table(answer, "Shared entities").rows == (("account", "m.keller", "2", "1"),)
    follow = await ask("who owns [2]?")
    assert "Ines Duarte" in follow.text


async def test_of_three_what_two_share_is_told_too(ask: Ask) -> None:
    answer = await ask("what do 12, 18 and 31 share?")
    assert [each.title for each in answer.tables] == ["Shared entities"]
    assert table(answer, "Shared entities").columns[2:] == ("Alerts of 12", "Alerts of 18", "Alerts of 31")
    assert table(answer, "Shared entities").rows == (
        ("account", "m.keller", "2", "1", "1"),
        ("host", "dc-01.contoso.example", "1", "1", "-"),
    )


async def test_only_the_kind_that_was_asked_for_is_compared(ask: Ask) -> None:
    answer = await ask("which hosts do 12, 18 and 31 share?")
    assert [row[:2] for row in table(answer, "Shared entities").rows] == [("host", "dc-01.contoso.example")]


async def test_nothing_shared_is_said_so(ask: Ask) -> None:
    answer = await ask("what do 12 and 40 share")
    assert "No entity is named by alerts of both." in answer.text


async def test_an_incident_that_does_not_exist_leaves_nothing_to_compare(ask: Ask) -> None:
    answer = await ask("compare 12 and 99")
    assert answer.outcome is Outcome.NO_DATA
    assert "No incident matches `99`" in answer.text
    assert answer.text.endswith("So there is nothing to compare.")


async def test_entities_that_were_cut_are_told() -> None:
    rows = [
        {"number": number, "title": "t", "severity": "High",
         "entities": {"host": [{"name": f"h{number}", "alerts": 1}]}, "entity_counts": {"host": 120},
         "tactics": [], "techniques": []}
        for number in (1, 2)
    ]  # fmt: skip
    gateway = small_estate(get_incident_detail=[rows_result([row], summary={"alert_count": 1}) for row in rows])
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("compare 1 and 2", "s"))
    assert "they may share more" in answer.text


async def test_a_refusal_is_told(ask: Ask) -> None:
    gateway = small_estate(get_incident_detail=denial())
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("compare 12 and 31", "s"))
    assert answer.outcome is Outcome.DENIED


async def test_one_field_of_several_incidents_is_told_of_each(ask: Ask, gateway: ScriptedGateway) -> None:
    answer = await ask("who owns 12, 18 and 31?")
    assert asked(gateway) == [("get_incident_detail", each) for each in ("12", "18", "31")]
    assert answer.text.count("Owner:") == 3


async def test_one_of_several_incidents_with_the_number_is_picked_and_the_comparison_goes_on() -> None:
    first, second, third = (incident.row() for incident in INCIDENTS[:3])
    several, two = rows_result([second, third]), [rows_result([first]), rows_result([third])]
    gateway = small_estate(get_incident_detail=[two[0], several, *two])
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    asked_back = await analyst.answer(Question("compare 12 and 118", "s"))
    assert asked_back.outcome is Outcome.CLARIFICATION
    picked = await analyst.answer(Question("[2]", "s"))
    assert table(picked, "Side by side").rows
    assert asked(gateway)[-2:] == [("get_incident_detail", "12"), ("get_incident_detail", third["incident_name"])]


async def test_two_periods_stand_beside_each_other_with_what_changed(ask: Ask) -> None:
    periods = table(await ask("compare july with june"), "The two periods")
    assert periods.columns == ("What", "Later", "Earlier", "Change")
    for row in periods.rows:
        later, earlier = (0 if cell == "-" else int(cell) for cell in row[1:3])
        assert int(row[3]) == later - earlier
