"""What a person is told of calls that failed or of which a model made nothing: once, and in words for a person."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.agent.model_analyst.composing import NOTHING_CHECKED
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.testing.scripted_model import calls_reply, text_reply
from sentinel_rag.testing.small_estate import small_estate

pytestmark = pytest.mark.anyio
OPEN = ("query_incidents", {"status": "Open"})


def wrong(message, step, allowed=()):
    return QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message=message, next_step=step, allowed=allowed)


@pytest.mark.parametrize(
    ("step", "allowed", "told"),
    [
        ("Correct the argument and call again.", ("integer",), ""),
        ("Correct limit and call again.", (), ""),
        ("Correct the argument and call again.", ("High", "Low"), "Allowed: High, Low. "),
    ],
)
@pytest.mark.parametrize("beside", [[], [OPEN]])
async def test_what_a_tool_tells_the_writer_of_a_call_is_not_told_to_the_person(step, allowed, told, beside, desk):
    gateway = small_estate(query_alerts=wrong("limit is not right.", step, allowed))
    at = desk(calls_reply(("query_alerts", {}), *beside), text_reply("Incident 40 is High."), gateway=gateway)
    answer = await at.ask("Which alerts are there?")
    assert "call again" not in answer.text
    assert "Allowed: integer" not in answer.text
    assert (
        f"limit is not right (audit audit-1). {told}The model called it with an argument that it does not take"
        in answer.text
    )
    assert step in at.results()[0], "the model still reads it"


async def test_a_step_that_a_person_can_take_stays(desk):
    gateway = small_estate(query_alerts=wrong("There is no workspace xy.", "Use one of: prod, test.", ("prod", "test")))
    at = desk(calls_reply(("query_alerts", {})), text_reply("It failed."), gateway=gateway)
    answer = await at.ask("Which alerts are there?")
    assert "Allowed: prod, test. Use one of: prod, test." in answer.text


async def test_the_same_call_made_again_and_again_is_told_once(desk):
    rounds = [calls_reply(OPEN, first=place * 10) for place in range(1, 5)]
    at = desk(*rounds, calls_reply(OPEN, first=90), limits=TurnLimits(turn_s=60, rounds=3))
    answer = await at.ask("Which incidents are open?")
    assert answer.text.count("Rows that query_incidents found") == 1
    assert NOTHING_CHECKED not in answer.text, "the model wrote nothing"


async def test_words_that_did_not_stand_are_told_of(desk):
    at = desk(calls_reply(OPEN), text_reply("Incident 99 is run by Mallory Vane."))
    answer = await at.ask("Which incidents are open?")
    assert NOTHING_CHECKED in answer.text
