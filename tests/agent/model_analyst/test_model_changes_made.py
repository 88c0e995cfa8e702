"""A change that was made is told by code from its result, in its turn and for the turns after it."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst.claims import NOT_MADE
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.tool_calls import Denied, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.scripted_model import calls_reply, stream_reply, text_reply
from sentinel_rag.testing.scripted_model.replies import Cut, chunk
from sentinel_rag.testing.small_estate import small_estate

pytestmark = pytest.mark.anyio
CLOSE = ("update_incident", {"incident": "40", "status": "Closed", "classification": "Undetermined"})
TITLE = "Suspicious inbox rule after phishing click"
MADE = rows_result(
    [
        {
            "number": 40,
            "title": TITLE,
            "status": "Closed",
            "severity": "High",
            "changes": [
                {"field": "status", "before": "New", "after": "Closed"},
                {"field": "classification", "before": None, "after": "Undetermined"},
            ],
        }
    ]
)
TOLD = f"Incident 40 (“{TITLE}”) was changed: status from New to Closed; classification from - to Undetermined."
CUT = stream_reply(chunk({"content": "Incident 40 "}), Cut())
REFUSED = Denied(ToolCall("", "", ""), Reason.NO_RULE_MATCHED, "No rule allows it.", None)


@pytest.mark.requirement("APPR-1")
async def test_a_change_is_told_from_its_result_when_the_model_breaks_off(desk):
    at = desk(calls_reply(CLOSE), CUT, gateway=small_estate(update_incident=MADE))
    answer = await at.ask("Close incident 40 as undetermined")
    assert answer.outcome is Outcome.TOOL_FAILED
    assert TOLD in answer.text
    assert "Rows that" not in answer.text
    assert "A change was sent before that" not in answer.text
    assert {"New", "Closed"} <= {piece.text for piece in answer.evidence}


async def test_a_refused_change_is_told_as_nothing_and_not_as_sent(desk):
    at = desk(calls_reply(CLOSE, ("query_incidents", {})), CUT, gateway=small_estate(update_incident=REFUSED))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "Nothing was changed." in answer.text
    assert "A change was sent before that" not in answer.text


@pytest.mark.parametrize("words", ["Incident 40 is Closed.", "Good luck.", "The attacker is Mallory Vane."])
async def test_whatever_the_model_says_of_a_change_its_result_is_told(words, desk):
    at = desk(calls_reply(CLOSE), text_reply(words), gateway=small_estate(update_incident=MADE))
    answer = await at.ask("Close incident 40 as undetermined")
    assert answer.text.count(TOLD) == 1


TRUE_LATER = [
    "Incident 40 is Closed. I closed it a minute ago.",
    "Incident 40 is Closed. I have closed incident 40 earlier.",
    "Incident 40 is Closed. I marked it as Undetermined.",
]
FALSE_LATER = [
    "Incident 40 is Closed. I have closed incident 12.",
    "Incident 40 is Closed. I isolated the host.",
    "Incident 40 is Closed. I have just closed it.",
    "Incident 40 is Closed. I assigned it to you.",
]


async def _closed_before(desk, answer):
    at = desk(calls_reply(CLOSE), text_reply("Incident 40 is Closed."), gateway=small_estate(update_incident=MADE))
    await at.ask("Close incident 40 as undetermined")
    state = at.analyst.remembered("session-1")
    at.analyst.forget("session-1")
    at.analyst.recall("session-1", state)
    at.script(calls_reply(("get_incident_detail", {"incident": "40"}), first=7), text_reply(answer))
    return await at.ask("And what about incident 40?")


@pytest.mark.parametrize("said", TRUE_LATER)
async def test_a_change_of_an_earlier_turn_is_not_called_one_that_was_not_made(said, desk):
    assert NOT_MADE not in (await _closed_before(desk, said)).text


@pytest.mark.parametrize("said", FALSE_LATER)
async def test_another_deed_or_another_incident_than_the_one_changed_earlier_is_left_out(said, desk):
    claim = said.partition(". ")[2]
    answer = await _closed_before(desk, said)
    assert NOT_MADE in answer.text
    assert claim not in answer.text


async def test_a_deed_that_was_not_the_one_of_this_turn_is_left_out(desk):
    said = "I closed incident 40. I have isolated the host."
    at = desk(calls_reply(CLOSE), text_reply(said), gateway=small_estate(update_incident=MADE))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "isolated" not in answer.text
    assert "I closed incident 40." in answer.text
