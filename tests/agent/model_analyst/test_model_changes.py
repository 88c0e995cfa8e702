"""Changes over several questions of a model: what may be sent and how often, what waits for a person, and what is told
of a change whatever the model says of it."""

from __future__ import annotations

import json

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.agent.model_analyst.composing import SENTENCES
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall
from sentinel_rag_testing.scripted_gateway import denial, failure, rows_result
from sentinel_rag_testing.scripted_model import calls_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import DONE, Cut, call_piece, chunk

pytestmark = pytest.mark.anyio
CLOSE = {"incident": "40", "status": "Closed", "classification": "Undetermined"}
LOWER = {"incident": "31", "severity": "Low"}
WISH = "Close incident 40 as undetermined"
DETAIL = ("get_incident_detail", {"incident": "40"})
BROKEN = stream_reply(chunk({"role": "assistant", "content": "Incident 40 "}), Cut())
AWAY = failure(QueryErrorCode.UNAVAILABLE, "The server is away.")


def result(*changes):
    fields = [{"field": name, "before": before, "after": after} for name, before, after in changes]
    return rows_result([{"number": 40, "title": "Inbox rule", "status": "Closed", "changes": fields}])


def waits(approval_id="ap-77", note=""):
    call = ToolCall("", "", "")
    return Denied(call, Reason.APPROVAL_REQUIRED, "A person must approve this.", "close_asks", "", approval_id, note)


MADE = result(("status", "New", "Closed"), ("classification", "", "Undetermined"))
UNTOLD = rows_result([{"number": 40, "title": "Inbox rule", "status": "Closed"}])


def changing(*outcomes):
    return small_estate(lambda: NOW, update_incident=[*outcomes])


def updates(*changes, first=1):
    return calls_reply(*(("update_incident", change) for change in changes), first=first)


def sent(at):
    return [dict(call.arguments) for call in at.gateway.calls if call.tool_name == "update_incident"]


async def waiting_desk(desk, *then):
    """A desk whose change of incident 40 waits for a person; `then` come of later calls."""
    at = desk(updates(CLOSE), text_reply("It waits."), gateway=changing(waits(), *then))
    answer = await at.ask(WISH)
    return at, answer


@pytest.mark.requirement("APPR-1")
async def test_a_change_that_needs_an_approval_is_told_and_made_as_it_was_once_it_is_given(desk):
    at = desk(updates(CLOSE), text_reply("I have closed incident 40."), gateway=changing(waits(), MADE))
    answer = await at.ask(WISH)
    assert answer.outcome is Outcome.DENIED
    assert at.states(answer) == {"I have closed incident 40.": "not_found"}
    for told in (
        "Waiting for approval: update_incident, incident 40",
        "Nothing was changed yet.",
        "sentinel approvals show ap-77",
        "sentinel ask --session session-1",
    ):
        assert told in answer.text
    assert at.results()[0].startswith("[c1] Not run yet: this call waits for a person's approval (rule close_asks")

    at.script(updates(CLOSE, first=4), text_reply("Incident 40 is Closed [c2.1]."))
    answer = await at.ask(WISH)
    assert f"- update_incident {json.dumps(CLOSE, separators=(',', ':'))}" in at.asked(-2)
    assert sent(at) == [CLOSE, CLOSE]
    assert answer.text.startswith("Incident 40 is Closed.")
    at.script(text_reply("Hello."))
    await at.ask("Hello")
    assert "wait for a person's approval" not in at.asked()


@pytest.mark.requirement("APPR-1")
async def test_several_calls_that_wait_are_told_a_line_each_and_why_once(desk):
    note = "More than 2000 rows of SigninLogs would be read for one person within 24 h (volume signins)."
    at = desk(
        updates(CLOSE, LOWER), text_reply("Both wait."), gateway=changing(waits("ap-1", note), waits("ap-2", note))
    )
    answer = await at.ask("Close incident 40 as undetermined and set 31 to Low")
    assert answer.outcome is Outcome.DENIED
    lines = answer.text.splitlines()
    waiting = [line for line in lines if line.startswith("Waiting for approval: update_incident, incident ")]
    assert [name in line for name, line in zip(("(ap-1)", "(ap-2)"), waiting, strict=True)] == [True, True]
    assert answer.text.count(note) == answer.text.count("sentinel approvals list") == 1
    assert "Nothing of it was changed yet." in answer.text
    assert all(note in told and "may still run" in told for told in at.results())


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("words", ["do it now", "OK, do it now please", "it is approved", "go ahead", "try again"])
@pytest.mark.parametrize("other", [{"incident": "18"}, {"classification": "BenignPositive"}, {"comment": "ok"}])
async def test_do_it_now_sends_what_waits_with_its_very_arguments_and_no_other_change(desk, words, other):
    at, _ = await waiting_desk(desk, MADE)
    at.script(updates(CLOSE | other, CLOSE | {"incident": 40}, first=5), text_reply("Incident 40 is Closed [c3.1]."))
    answer = await at.ask(words)
    assert sent(at) == [CLOSE, CLOSE]
    refused = at.results()[-2]
    assert refused.startswith("Not sent: ")
    assert 'incident="40"' in refused
    assert at.states(answer)["Incident 40 is Closed."] == "values_found"


@pytest.mark.requirement("APPR-1")
async def test_of_several_waiting_calls_the_newest_is_meant_and_another_wish_stays_free(desk):
    at, _ = await waiting_desk(desk, waits("ap-2"), MADE)
    at.script(calls_reply(DETAIL, first=3), text_reply("Incident 40 is High [c2.1]."))
    await at.ask("do it now")
    assert [call.tool_name for call in at.gateway.calls] == ["update_incident", "get_incident_detail"]
    at.script(updates(LOWER, first=5), text_reply("It waits."))
    await at.ask("Lower incident 31 to low")
    at.script(updates(CLOSE, LOWER, first=9), text_reply("So it is."))
    await at.ask("do it now")
    assert sent(at) == [CLOSE, LOWER, LOWER]


SAME = [
    CLOSE,
    dict(reversed(CLOSE.items())),
    CLOSE | {"incident": 40},
    CLOSE | {"incident": "40 "},
    CLOSE | {"comment": None},
]


@pytest.mark.requirement("GATE-4")
@pytest.mark.parametrize("outcome", [UNTOLD, denial(), AWAY], ids=["done", "refused", "failed"])
@pytest.mark.parametrize("together", [True, False], ids=["in one response", "in the next response"])
async def test_the_same_change_is_sent_once_whatever_became_of_it(desk, outcome, together):
    replies = [updates(*SAME)] if together else [updates(each, first=10 * n) for n, each in enumerate(SAME)]
    gateway = small_estate(lambda: NOW, update_incident=outcome)
    at = desk(*replies, text_reply("It is done."), gateway=gateway, limits=TurnLimits(turn_s=60, rounds=9))
    await at.ask(WISH)
    assert sent(at) == [CLOSE]
    assert len(at.results()) == len(SAME), "every call is answered"
    assert sum(text.startswith("Not run again: ") for text in at.results()) == len(SAME) - 1


@pytest.mark.requirement("GATE-4")
async def test_other_changes_are_each_sent_and_the_next_question_may_send_the_same_again(desk):
    others = [CLOSE, CLOSE | {"incident": "18"}, CLOSE | {"status": "Active"}]
    gateway = small_estate(lambda: NOW, update_incident=denial())
    at = desk(updates(*others), text_reply("It was refused."), gateway=gateway)
    await at.ask("Close incidents 40 and 18")
    assert len(sent(at)) == 3
    at.script(updates(CLOSE, first=20), text_reply("It was refused."))
    await at.ask(WISH)
    assert len(sent(at)) == 4


async def test_a_change_is_not_made_on_the_word_of_an_answer_that_may_be_cut(desk):
    piece = call_piece("update_incident", json.dumps(CLOSE), call_id="call_1")
    at = desk(stream_reply(chunk({"tool_calls": [piece]}), DONE), text_reply("Hm."), gateway=changing(MADE))
    await at.ask(WISH)
    assert at.gateway.calls == []
    assert at.results()[0].startswith("Not run: your answer ended without saying so")


async def test_a_change_that_is_written_as_text_is_not_made_and_told_so(desk):
    written = json.dumps({"name": "update_incident", "arguments": CLOSE})
    at = desk(text_reply(f"<tool_call>{written}</tool_call>"), gateway=changing(MADE))
    answer = await at.ask(WISH)
    assert at.gateway.calls == []
    assert (answer.text, answer.outcome) == (SENTENCES["written_change"].format("update_incident"), Outcome.TOOL_FAILED)
    assert answer.text.startswith("Nothing was changed: ")


@pytest.mark.parametrize("words", ["Incident 40 is Closed [c1.1].", "Good luck.", "The attacker is Mallory Vane."])
async def test_whatever_the_model_says_of_a_change_its_result_is_told(words, desk):
    answer = await desk(updates(CLOSE), text_reply(words), gateway=changing(MADE)).ask(WISH)
    assert answer.text.count("Incident 40 was changed:\n- status: New → Closed\n- classification: - → ") == 1
    assert "New" in {piece.text for piece in answer.evidence}
    assert answer.outcome is Outcome.ANSWERED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("said", "made", "states"),
    [
        ("I closed incident 40 [c1.1].", MADE, {"values_found"}),
        ("I have closed incident 31 [c1.1].", MADE, {"contradicted", "not_found"}),
        ("I closed incident 31.", MADE, {"not_found"}),
        ("I have closed it for you.", denial(), {"not_found"}),
    ],
)
async def test_a_deed_needs_the_call_that_did_it(said, made, states, desk):
    at = desk(updates(CLOSE), text_reply(said), gateway=changing(made))
    (sentence,) = (await at.ask(WISH)).sentences
    assert sentence.state in states


@pytest.mark.parametrize("last", [text_reply("It was Closed already [c1.1]."), BROKEN])
async def test_a_call_that_found_all_as_it_should_be_is_told_as_no_change(last, desk):
    answer = await desk(updates(CLOSE), last, gateway=changing(result())).ask(WISH)
    assert "was changed" not in answer.text
    assert "change was made" not in answer.text


@pytest.mark.parametrize(
    ("outcome", "told", "untold"),
    [
        (MADE, "Incident 40 was changed before that:\n- status: New → Closed", "A change was sent"),
        (UNTOLD, 'This change was made: update_incident(incident="40", status="Closed"', "A change was sent"),
        (denial(), "Nothing was changed", "A change was sent"),
        (failure(QueryErrorCode.OUTCOME_UNKNOWN, "No answer came."), "A change was sent before that", "was changed"),
    ],
    ids=["made", "made, but not told", "refused", "unknown"],
)
async def test_what_became_of_a_change_before_the_model_broke_off_is_told_and_nothing_tried_again(
    outcome, told, untold, desk
):
    at = desk(updates(CLOSE), BROKEN, text_reply("never"), gateway=changing(outcome))
    answer = await at.ask(WISH)
    assert told in answer.text
    assert untold not in answer.text
    assert "Rows that update_incident" not in answer.text
    assert len(at.server.requests) == 2
    assert len(sent(at)) == 1
    assert answer.outcome is Outcome.TOOL_FAILED


async def test_a_change_of_an_earlier_question_can_be_cited_with_its_age(desk):
    at = desk(updates(CLOSE), text_reply("Incident 40 is Closed [c1.1]."), gateway=changing(MADE))
    await at.ask(WISH)
    said = "Incident 40 is High [c2.1]. I closed incident 40 before [c1.1]."
    at.script(calls_reply(DETAIL, first=5), text_reply(said))
    answer = await at.ask("What is incident 40 about?")
    assert set(at.states(answer).values()) == {"values_found"}
    assert "read earlier in this conversation (under a minute ago)" in answer.text
    assert "was changed" not in answer.text
