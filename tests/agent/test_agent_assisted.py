"""Rules first, and one schema-bound call of a small model where they ask back; what it makes up is not asked for."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst.assisted import AssistedAnalyst
from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway
from sentinel_rag_testing.scripted_model import Reply, ScriptedModel, json_reply, text_reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
LEARNT = {"list_kql_templates", "get_top_entities"}
"""What is asked of the workspace before a word is called unknown."""
BIG_PICTURE = "give me the helicopter perspective for the last month"
Ask = Callable[..., Any]


def _chosen(tool: str, **arguments: Any) -> Reply:
    return text_reply(json.dumps({"call": {"tool": tool, "arguments": arguments}}))


@asynccontextmanager
async def assisted(*replies: Reply) -> AsyncIterator[tuple[AssistedAnalyst, ScriptedModel, ScriptedGateway]]:
    server, gateway = ScriptedModel(replies), small_estate()
    with server.running() as url:
        limits = TimeLimits(first_token_s=30, next_token_s=30, whole_answer_s=30)
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "tiny", no_key), limits=limits)
        offline = OfflineAnalyst(gateway, clock=lambda: NOW)
        yield AssistedAnalyst(offline, gateway, model, limit_s=30), server, gateway
        await model.aclose()


async def _ask(question: str, *replies: Reply) -> tuple[Answer, ScriptedModel, ScriptedGateway]:
    async with assisted(*replies) as (analyst, server, gateway):
        answer = await analyst.answer(Question(question, "s"))
    return answer, server, gateway


async def test_what_the_rules_plan_needs_no_model() -> None:
    answer, server, _ = await _ask("Which high severity incidents are open?")
    assert answer.outcome is Outcome.ANSWERED
    assert (answer.model, server.requests) == (None, [])


async def test_where_the_rules_ask_back_the_model_chooses_the_call_and_the_footnote_says_so() -> None:
    answer, server, gateway = await _ask(BIG_PICTURE, _chosen("get_threat_summary", time_window="last_30d"))
    [request] = server.requests
    body = request.body
    assert "tools" not in body
    kinds = body["response_format"]["json_schema"]["schema"]["properties"]["call"]["anyOf"]
    assert {kind["properties"]["tool"]["const"] for kind in kinds} >= {"query_incidents", "ask_back"}
    assert "update_incident" not in json.dumps(body)
    made = [(call.tool_name, dict(call.arguments)) for call in gateway.calls if call.tool_name not in LEARNT]
    assert made == [("get_threat_summary", {"time_window": "last_30d"})]
    assert answer.outcome is not Outcome.CLARIFICATION
    first, _, rest = answer.text.partition("\n")
    assert first == "Read as get_threat_summary (time_window `last_30d`): the model tiny chose this call."
    assert rest
    assert "tiny chose the call, since the rules asked back" in answer.footnote[-1]
    assert answer.model is not None
    assert answer.model["requests"] == 1


async def test_arguments_that_no_word_supports_are_dropped() -> None:
    reply = _chosen("get_top_entities", kind="account", time_window="last_1h", limit=5)
    _, _, gateway = await _ask("hmm, accounts that I should worry about?", reply)
    made = [dict(call.arguments) for call in gateway.calls if call.tool_name == "get_top_entities"]
    assert made in ([{"kind": "account"}], [])  # the rules may plan it themselves


@pytest.mark.parametrize(
    "reply",
    [
        _chosen("ask_back"),
        _chosen("get_incident_detail", incident="124"),
        _chosen("update_incident", incident="12", status="Closed"),
        _chosen("get_top_entities"),
        text_reply("I would look at the incidents."),
        text_reply('{"call": {"tool": ["query_incidents"], "arguments": {}}}'),
        json_reply({"error": {"message": "no such model"}}, 404),
    ],
    ids=["asks-back", "made-up-thing", "a-change", "lacks-an-argument", "prose", "no-name", "failed"],
)
async def test_whatever_else_it_does_the_question_back_remains(reply: Reply) -> None:
    plain = await OfflineAnalyst(small_estate(), clock=lambda: NOW).answer(Question(BIG_PICTURE, "s"))
    answer, _, gateway = await _ask(BIG_PICTURE, reply)
    assert plain.outcome is Outcome.CLARIFICATION
    assert (answer.outcome, answer.text) == (plain.outcome, plain.text)
    assert {call.tool_name for call in gateway.calls} <= LEARNT


@pytest.mark.parametrize("question", ["close it", "assign it to asa.oberg@contoso.example", "  ", "[7]"])
async def test_a_change_and_a_pick_are_never_read_as_something_else(question: str) -> None:
    answer, server, gateway = await _ask(question, _chosen("query_incidents"))
    assert answer.outcome is not Outcome.ANSWERED
    assert (server.requests, gateway.calls) == ([], [])


async def test_a_server_without_schemas_is_asked_without_one() -> None:
    refusal = json_reply(
        {"error": {"message": "Unsupported parameter: 'response_format'", "code": "unsupported_parameter"}}, 400
    )
    answer, server, _ = await _ask(BIG_PICTURE, refusal, _chosen("get_threat_summary", time_window="last_30d"))
    assert answer.outcome is not Outcome.CLARIFICATION
    assert ["response_format" in request.body for request in server.requests] == [True, False]
