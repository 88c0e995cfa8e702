"""Places in a line without numbers ("Hosts (2): a, b"), places of which nothing is known, and follow-ups that ask for
something else of the same incident."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import NOW

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]
FIRST = {"entity": "fin-ws-014.contoso.example", "entity_kind": "host"}
SECOND = {"entity": "dc-01.contoso.example", "entity_kind": "host"}


def last_call(gateway: ScriptedGateway) -> tuple[str, dict[str, object]]:
    return gateway.calls[-1].tool_name, dict(gateway.calls[-1].arguments)


@pytest.mark.requirement("CHAT-6")
async def test_the_nth_host_of_a_line_is_that_host(ask: Ask, gateway: ScriptedGateway) -> None:
    """Lead's findings A and B: the place was dropped, and "the second" was a line of an older table."""
    await ask("details of incident 12")
    await ask("which hosts are in it?")
    await ask("the first host: what other alerts name it?")
    assert last_call(gateway) == ("query_alerts", FIRST)
    await ask("and the second?")
    assert last_call(gateway) == ("query_alerts", SECOND)
    await ask("and the first one?")
    assert last_call(gateway) == ("query_alerts", FIRST)


async def test_the_line_is_stored_with_the_conversation(
    ask: Ask, analyst: OfflineAnalyst, gateway: ScriptedGateway
) -> None:
    await ask("which hosts are in incident 12?")
    remembered = analyst.remembered("shift-1")
    assert remembered is not None
    other = OfflineAnalyst(gateway, clock=lambda: NOW)
    other.recall("later", remembered)
    await other.answer(Question("alerts naming the second host", "later"))
    assert last_call(gateway) == ("query_alerts", SECOND)


async def test_a_place_beyond_the_line_is_asked_back(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("which hosts are in incident 12?")
    answer = await ask("alerts naming the fifth host")
    assert answer.outcome is Outcome.CLARIFICATION
    await ask("[2]")
    assert last_call(gateway) == ("query_alerts", SECOND)


@pytest.mark.parametrize("before", [None, "list high severity incidents"])
@pytest.mark.parametrize("question", ["alerts naming the second account", "alerts naming the third user"])
async def test_a_place_of_which_nothing_is_known_is_asked_back(
    ask: Ask, gateway: ScriptedGateway, before: str | None, question: str
) -> None:
    """Finding R15: the restriction was dropped, and every alert was listed."""
    if before is not None:
        await ask(before)
    calls = len(gateway.calls)
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert "Name the account" in answer.text
    assert len(gateway.calls) == calls


@pytest.mark.parametrize(
    ("question", "tool", "arguments"),
    [
        ("and its alerts?", "query_alerts", {"incident": "31"}),
        ("and its hosts?", "get_incident_detail", {"incident": "31"}),
        ("and the alerts of 12?", "query_alerts", {"incident": "12"}),
    ],
)
async def test_a_follow_up_that_names_a_field_asks_for_that_field(
    ask: Ask, gateway: ScriptedGateway, question: str, tool: str, arguments: dict[str, object]
) -> None:
    """Lead's finding C: the owner was told again."""
    await ask("which incidents are still open?")
    await ask("who owns the second one?")
    answer = await ask(question)
    assert last_call(gateway) == (tool, arguments)
    assert "Owner:" not in answer.text


async def test_a_follow_up_that_names_only_another_incident_asks_the_same(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("who owns incident 31?")
    answer = await ask("and 12?")
    assert last_call(gateway) == ("get_incident_detail", {"incident": "12"})
    assert "Owner:" in answer.text


@pytest.mark.parametrize(
    ("question", "incidents"),
    [("details of [2]", ["31"]), ("compare [1] and [2]", ["40", "31"]), ("who owns the second one?", ["31"])],
)
async def test_options_on_the_screen_are_no_things(
    ask: Ask, gateway: ScriptedGateway, question: str, incidents: list[str]
) -> None:
    """Lead's finding D: the options were taken, or a situation report was given."""
    await ask("list the open incidents")
    options = await ask("frobnicate the gadgets")
    assert "[1]" in options.text
    before = len(gateway.calls)
    await ask(question)
    assert [call.arguments["incident"] for call in gateway.calls[before:]] == incidents


async def test_options_alone_are_no_things_either(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("frobnicate the gadgets")
    answer = await ask("compare [1] and [2]")
    assert answer.outcome is Outcome.CLARIFICATION
    assert "get_incident_detail" not in [call.tool_name for call in gateway.calls]


async def test_an_option_is_still_picked_by_its_number(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("list the open incidents")
    await ask("frobnicate the gadgets")
    await ask("the second one")
    assert last_call(gateway)[0] == "query_alerts"
