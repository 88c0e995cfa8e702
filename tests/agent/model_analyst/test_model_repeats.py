"""A model that repeats itself or says nothing: what is sent, and what the person reads of it."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.agent.model_analyst.composing import NOTHING_CHECKED, NOTHING_WRITTEN
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.testing.scripted_gateway import denial, failure, rows_result
from sentinel_rag.testing.scripted_model import calls_reply, text_reply
from sentinel_rag.testing.small_estate import NOW, small_estate

pytestmark = pytest.mark.anyio
CHANGE = {"incident": "40", "status": "Closed", "classification": "Undetermined"}
SAME = [
    CHANGE,
    dict(reversed(CHANGE.items())),
    CHANGE | {"incident": 40},
    CHANGE | {"incident": "40 "},
    CHANGE | {"comment": None},
]
OUTCOMES = {
    "done": rows_result([{"number": 40, "title": "Inbox rule", "status": "Closed", "severity": "High"}]),
    "refused": denial(),
    "failed": failure(QueryErrorCode.UNAVAILABLE, "The server is away."),
}


def _gateway(outcome):
    gateway = small_estate(lambda: NOW)
    gateway.answers["update_incident"] = outcome
    return gateway


@pytest.mark.requirement("GATE-4")
@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
@pytest.mark.parametrize("together", [True, False], ids=["in one response", "in the next response"])
async def test_the_same_change_is_sent_once_whatever_became_of_it(desk, outcome, together):
    calls = [("update_incident", arguments) for arguments in SAME]
    replies = [calls_reply(*calls)] if together else [calls_reply(call, first=10 * n) for n, call in enumerate(calls)]
    at = desk(*replies, text_reply("It is done."), gateway=_gateway(outcome), limits=TurnLimits(turn_s=60, rounds=9))
    await at.ask("Close incident 40 as undetermined")
    assert [call.tool_name for call in at.gateway.calls] == ["update_incident"]
    assert len(at.results()) == len(SAME), "every call is answered"
    assert sum("sent already" in text for text in at.results()) == len(SAME) - 1


@pytest.mark.requirement("GATE-4")
async def test_other_changes_are_each_sent_and_the_next_question_may_send_the_same_again(desk):
    others = [CHANGE, CHANGE | {"incident": "18"}, CHANGE | {"status": "Active"}]
    at = desk(
        calls_reply(*(("update_incident", change) for change in others)),
        text_reply("It was refused."),
        calls_reply(("update_incident", CHANGE), first=20),
        text_reply("It was refused."),
        gateway=_gateway(denial()),
    )
    await at.ask("Close incidents 40 and 18")
    assert len(at.gateway.calls) == 3
    await at.ask("Close incident 40 as undetermined")
    assert len(at.gateway.calls) == 4


@pytest.mark.requirement("CHAT-2")
async def test_a_model_that_only_calls_is_told_of_in_one_line_and_not_as_if_it_had_written(desk):
    calls = ("query_incidents", {"status": "Open", "min_severity": "High"})
    at = desk(calls_reply(calls), limits=TurnLimits(turn_s=60, rounds=4))
    answer = await at.ask("Which high severity incidents are open?")
    assert len(at.gateway.calls) == 4
    assert answer.text.count("Rows that query_incidents found: 3.") == 1
    assert NOTHING_WRITTEN in answer.text
    assert NOTHING_CHECKED not in answer.text


@pytest.mark.requirement("CHAT-2")
@pytest.mark.parametrize("some_worked", [True, False])
async def test_what_is_wrong_with_a_model_s_argument_is_told_to_the_person_as_the_model_s_fault(desk, some_worked):
    fault = QueryError(
        code=QueryErrorCode.INVALID_ARGUMENT,
        message="limit must be integer.",
        next_step="Correct the argument and call again.",
        field="limit",
        allowed=("integer",),
    )
    gateway = small_estate(lambda: NOW)
    gateway.answers["query_alerts"] = fault
    wrong = ("query_alerts", {"limit": "many"})
    calls = (wrong, ("query_incidents", {})) if some_worked else (wrong,)
    at = desk(calls_reply(*calls), text_reply("Incident 40 is High."), gateway=gateway)
    answer = await at.ask("Which alerts and incidents are there?")
    assert "The model called query_alerts with an argument that the tool does not take" in answer.text
    assert "limit must be integer" in answer.text
    assert "Ask again in other words" in answer.text
    assert "Correct the argument" not in answer.text
    assert "Allowed: integer" not in answer.text
    assert "Correct the argument" in " ".join(at.results(1)), "the model is told what it can do"
