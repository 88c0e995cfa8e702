""" "Do it now" makes the call that waits for a person, and no other, whatever the model calls."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.tool_calls import Denied, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.scripted_model import calls_reply, text_reply
from sentinel_rag.testing.small_estate import small_estate

pytestmark = pytest.mark.anyio
ARGUMENTS = {"incident": "40", "status": "Closed", "classification": "Undetermined"}
CLOSE = ("update_incident", ARGUMENTS)
OTHERS = [
    ("update_incident", {**ARGUMENTS, "incident": "31"}),
    ("update_incident", {**ARGUMENTS, "classification": "FalsePositive"}),
    ("update_incident", {"incident": "40", "status": "Closed"}),
    ("update_incident", {**ARGUMENTS, "severity": "Low"}),
    ("update_incident", {**ARGUMENTS, "workspace": "other"}),
    ("add_incident_comment", {"incident": "40", "message": "Closed."}),
]
WAITS = Denied(ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "A person must approve this.", "close", "", "ap-77")
REFUSED = Denied(ToolCall("", "", ""), Reason.NO_RULE_MATCHED, "No rule allows it.", None)
MADE = rows_result(
    [{"number": 40, "title": "Inbox rule", "changes": [{"field": "status", "before": "New", "after": "Closed"}]}]
)
NOT_SENT = "The model called for another change than the one that waits for approval"


def changes(at):
    return [
        (call.tool_name, dict(call.arguments))
        for call in at.gateway.calls
        if call.tool_name in ("update_incident", "add_incident_comment")
    ]


async def waiting(desk, *outcomes):
    gateway = small_estate(update_incident=[WAITS, *outcomes], add_incident_comment=WAITS)
    at = desk(calls_reply(CLOSE), text_reply("It waits."), gateway=gateway)
    await at.ask("Close incident 40 as undetermined")
    return at


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("other", OTHERS)
async def test_another_change_than_the_one_that_waits_is_not_sent(other, desk):
    at = await waiting(desk, MADE)
    at.script(calls_reply(other, first=5), text_reply("Done."))
    answer = await at.ask("do it now")
    assert changes(at) == [CLOSE]
    assert at.results()[-1].startswith("Not run: the person asked for the call that waits")
    assert NOT_SENT in answer.text
    assert "Done." not in answer.text


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("words", ["do it now", "Approved.", "ok, it is approved", "go ahead", "try again"])
async def test_the_waiting_call_is_made_and_told(words, desk):
    at = await waiting(desk, MADE)
    at.script(calls_reply(OTHERS[0], CLOSE, first=5), text_reply("Incident 40 was changed."))
    answer = await at.ask(words)
    assert changes(at) == [CLOSE, CLOSE]
    assert "was changed: status from New to Closed." in answer.text


async def test_the_newest_of_several_waiting_calls_is_meant(desk):
    later = ("update_incident", {"incident": "31", "severity": "Low"})
    newer = Denied(WAITS.call, WAITS.reason, WAITS.detail, "close", "", "ap-78")
    at = await waiting(desk, newer, MADE)
    at.script(calls_reply(later, first=5), text_reply("It waits."))
    await at.ask("Lower incident 31 to low")
    at.script(calls_reply(CLOSE, later, first=9), text_reply("It is done."))
    await at.ask("do it now")
    assert changes(at) == [CLOSE, later, later]


async def test_the_rule_outlives_a_restart(desk):
    at = await waiting(desk, MADE)
    state = at.analyst.remembered("session-1")
    at.analyst.forget("session-1")
    at.analyst.recall("session-1", state)
    at.script(calls_reply(OTHERS[0], CLOSE, first=5), text_reply("It is done."))
    await at.ask("do it now")
    assert changes(at) == [CLOSE, CLOSE]


async def test_a_change_that_is_asked_for_whole_is_sent_beside_one_that_waits(desk):
    at = await waiting(desk, WAITS)
    at.script(calls_reply(OTHERS[0], first=5), text_reply("It waits."))
    answer = await at.ask("Close incident 31 as undetermined")
    assert changes(at) == [CLOSE, OTHERS[0]]
    assert NOT_SENT not in answer.text


@pytest.mark.parametrize("outcome", [WAITS, REFUSED, MADE])
async def test_one_change_is_sent_once_a_question_whatever_becomes_of_it(outcome, desk):
    gateway = small_estate(update_incident=outcome)
    at = desk(calls_reply(CLOSE, CLOSE), calls_reply(CLOSE, first=9), text_reply("So it is."), gateway=gateway)
    await at.ask("Close incident 40 as undetermined")
    assert changes(at) == [CLOSE]
    assert [text.startswith("Not run again: ") for text in at.results()] == [False, True, True]
