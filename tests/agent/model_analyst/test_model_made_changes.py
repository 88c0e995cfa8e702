"""What is said of a change is held against what the calls did, and "do it now" means the newest call that waits."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst.claims import NOT_MADE
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.tool_calls import Denied, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.scripted_model import calls_reply, stream_reply, text_reply
from sentinel_rag.testing.scripted_model.replies import Cut, chunk
from sentinel_rag.testing.small_estate import small_estate

pytestmark = pytest.mark.anyio
CLOSE = ("update_incident", {"incident": "40", "status": "Closed", "classification": "Undetermined"})
OTHER = ("update_incident", {"incident": "31", "severity": "Low"})


def result(*changes):
    fields = [{"field": name, "before": before, "after": after} for name, before, after in changes]
    return rows_result([{"number": 40, "title": "Inbox rule", "status": "Closed", "changes": fields}])


def waits(approval_id):
    return Denied(ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "A person must approve this.", "r", "", approval_id)


MADE = result(("status", "New", "Closed"), ("classification", "", "Undetermined"))


@pytest.mark.parametrize("words", ["Incident 40 is Closed.", "Good luck.", "The attacker is Mallory Vane."])
async def test_whatever_the_model_says_of_a_change_its_result_is_told(words, desk):
    at = desk(calls_reply(CLOSE), text_reply(words), gateway=small_estate(update_incident=MADE))
    answer = await at.ask("Close incident 40 as undetermined")
    assert answer.text.count("Incident 40 was changed:\n- status: New → Closed") == 1
    assert "New" in {piece.text for piece in answer.evidence}


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("I closed incident 40.", True),
        ("I have closed it and classified it.", True),
        ("I have just resolved it.", True),
        ("I isolated the host.", False),
        ("I have closed it and disabled the account.", False),
        ("I have closed incident 31.", False),
        ("I have assigned it to you.", False),
        ("I have reopened it.", False),
        ("I have notified the owner.", False),
    ],
)
async def test_only_the_deed_that_was_done_is_told_beside_a_change(said, stays, desk):
    at = desk(
        calls_reply(CLOSE), text_reply(f"Incident 40 is Closed. {said}"), gateway=small_estate(update_incident=MADE)
    )
    answer = await at.ask("Close incident 40 as undetermined")
    assert (said in answer.text) is stays
    assert (NOT_MADE in answer.text) is not stays


@pytest.mark.parametrize("last", [text_reply("I closed it."), stream_reply(chunk({"content": "Inc"}), Cut())])
async def test_a_call_that_found_all_as_it_should_be_is_told_as_no_change(last, desk):
    at = desk(calls_reply(CLOSE), last, gateway=small_estate(update_incident=result()))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "was changed" not in answer.text
    assert "change was made" not in answer.text
    assert "I closed it" not in answer.text


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("words", ["go ahead", "try again", "do it now"])
async def test_looser_words_right_after_an_approval_was_asked_for_mean_it_too(words, desk):
    at = desk(calls_reply(CLOSE), text_reply("It waits."), gateway=small_estate(update_incident=[waits("ap-1"), MADE]))
    await at.ask("Close incident 40 as undetermined")
    at.script(calls_reply(OTHER, CLOSE, first=5), text_reply("Incident 40 was changed."))
    await at.ask(words)
    assert [(call.tool_name, dict(call.arguments)) for call in at.gateway.calls] == [CLOSE, CLOSE]


@pytest.mark.requirement("APPR-1")
async def test_of_several_waiting_calls_the_newest_is_meant(desk):
    gateway = small_estate(update_incident=[waits("ap-1"), waits("ap-2"), MADE])
    at = desk(calls_reply(CLOSE), text_reply("It waits."), gateway=gateway)
    await at.ask("Close incident 40 as undetermined")
    at.script(calls_reply(OTHER, first=5), text_reply("It waits."))
    await at.ask("Lower incident 31 to low")
    at.script(calls_reply(CLOSE, OTHER, first=9), text_reply("So it is."))
    await at.ask("do it now")
    assert [(call.tool_name, dict(call.arguments)) for call in at.gateway.calls] == [CLOSE, OTHER, OTHER]
