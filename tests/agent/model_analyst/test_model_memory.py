"""What the model-driven analyst keeps between questions: references, preferences, what is carried on and stored."""

from __future__ import annotations

import json

import pytest

from sentinel_rag.agent.model_analyst import MAX_TOOL_ROUNDS
from sentinel_rag.agent.models import Tier
from sentinel_rag.contracts.conversations import CarriedFact, Remembered, Verbosity
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
LIST = (
    calls_reply(("query_incidents", {"status": "Open", "severity": "High"})),
    text_reply("[1] Incident 40, High, New\n[2] Incident 18, High, Active\n[3] Incident 12, High, Active"),
)


@pytest.mark.requirement("CHAT-6")
async def test_a_reference_reaches_the_model_as_the_id_that_it_stands_for(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?")
    at.script(calls_reply(("get_incident_detail", {"incident": "18"}), first=5), text_reply("Incident 18 is High."))
    answer = await at.ask("Show me [2]")
    asked = at.sent(-2)[-1]["content"]
    assert "incident 18" in asked
    assert "Show me [2]" in asked, "the person's own words stand beside it"
    assert any(line.startswith("References: ") and "incident 18" in line for line in answer.footnote)
    at.script(calls_reply(("query_alerts", {"incident": "18"}), first=8), text_reply("There are alerts."))
    await at.ask("What are its alerts?")
    assert "incident 18" in at.sent(-2)[-1]["content"]


@pytest.mark.requirement("CHAT-6")
async def test_a_reference_that_may_mean_two_things_or_none_is_asked_back_without_a_model(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?")
    before = len(at.server.requests)
    answer = await at.ask("Show me [9]")
    assert answer.outcome is Outcome.CLARIFICATION
    assert answer.text
    assert len(at.server.requests) == before
    assert answer.model is None


async def test_what_was_said_before_is_told_to_the_model(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?")
    at.script(text_reply("You are welcome."))
    await at.ask("Thank you!")
    assert [message["role"] for message in at.sent()] == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.requirement("CHAT-7")
async def test_a_clear_keeps_numbers_workspace_and_verified_facts(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?", workspace="emea")
    fact = CarriedFact("Incident 40 is High.", "2024-07-23T12:00:00Z", "query_incidents", "c1", "/rows/0/severity")
    at.analyst.clear("session-1", [fact])
    at.script(calls_reply(("get_incident_detail", {"incident": "18"}), first=5), text_reply("Incident 18 is High."))
    await at.ask("Show me [2]")
    said = at.sent(-2)
    assert [message["role"] for message in said] == ["system", "user"]
    assert "Incident 40 is High. [query_incidents, call c1" in said[1]["content"]
    assert "incident 18" in said[1]["content"]
    assert at.gateway.calls[-1].call_id == "c2", "calls go on counting, so that old footnotes stay unique"
    assert at.gateway.calls[-1].arguments["workspace"] == "emea"


async def test_a_forgotten_conversation_starts_anew(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?")
    at.analyst.forget("session-1")
    at.script(text_reply("Hello."))
    await at.ask("Hello")
    assert [message["role"] for message in at.sent()] == ["system", "user"]
    assert (await at.ask("Show me [2]")).outcome is Outcome.CLARIFICATION


async def test_a_conversation_goes_on_in_another_process(desk):
    at = desk(*LIST)
    await at.ask("Which high incidents are open?")
    kept = at.analyst.remembered("session-1")
    assert kept is not None
    stored = json.loads(json.dumps({"state": kept.state, "turns": kept.turns}))
    later = desk(calls_reply(("get_incident_detail", {"incident": "12"}), first=5), text_reply("Incident 12 is High."))
    assert later.analyst.remembered("session-1") is None
    later.analyst.recall("session-1", Remembered(stored["state"], tuple(stored["turns"])))
    await later.ask("Show me the third one")
    assert [message["role"] for message in later.sent(-2)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert "incident 12" in later.sent(-2)[-1]["content"]
    assert later.gateway.calls[0].call_id == "c2"
    assert later.server.requests[-1].fault is None


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"version": 99},
        {"version": 1, "references": 5, "places": [], "awaited": {"a": 1}, "last_tier": "huge"},
        {"version": 1, "references": {"version": 1}, "places": {"calls": "x"}},
    ],
)
async def test_a_stored_memory_that_cannot_be_read_leaves_a_conversation_that_works(state, desk):
    at = desk(*LIST)
    at.analyst.recall("session-1", Remembered(state, ({"messages": "none"}, {})))
    assert (await at.ask("Which high incidents are open?")).outcome is Outcome.ANSWERED


async def test_time_zone_and_length_follow_the_person(desk):
    at = desk(text_reply("Hello."))
    await at.ask("Hello", timezone="Europe/Berlin", verbosity=Verbosity.SHORT)
    rules = at.sent()[0]["content"]
    assert "14:00 in Europe/Berlin" in rules
    assert "short answers" in rules
    with pytest.raises(UsageError, match="time zone"):
        await at.ask("Hello", timezone="Mars/Olympus")


async def test_rules_come_first_and_what_changes_behind_them(desk):
    at = desk(text_reply("Hello."))
    await at.ask("Hello")
    await at.ask("Hello", timezone="Europe/Berlin")
    first, second = at.sent(0)[0]["content"], at.sent(1)[0]["content"]
    assert first.split("\n\nIt is ")[0] == second.split("\n\nIt is ")[0]
    assert str(MAX_TOOL_ROUNDS) not in first.replace("2024", ""), "the bound on rounds is told to nobody"


@pytest.mark.requirement("OPS-3")
async def test_the_large_model_is_asked_where_the_rule_says_so(desk):
    at, large = desk(*LIST), desk(*LIST)

    class Two:
        def of(self, tier: Tier):
            return (large if tier is Tier.LARGE else at).analyst._models.of(tier)

    both = type(at.analyst)(at.gateway, Two(), clock=at.analyst._clock)
    simple = await both.answer("Which high incidents are open?", session_id="session-2")
    assert simple.model["tier"] == "small"
    assert not large.server.requests
    hard = await both.answer("Why is incident 40 dangerous? Explain the attack path", session_id="session-2")
    assert hard.model["tier"] == "large"
    assert hard.model["tier_reason"] == "the question asks for an explanation or a judgement"
    assert len(large.server.requests) == 2
