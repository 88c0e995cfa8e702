"""Changes over several questions of a model: what "do it now" may send, and what is told of a change afterwards."""

from __future__ import annotations

import pytest

from sentinel_rag.agent.model_analyst.claims import NOT_MADE, NOT_MADE_NOW
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied
from sentinel_rag.testing.scripted_gateway import denial, failure, rows_result
from sentinel_rag.testing.scripted_model import calls_reply, stream_reply, text_reply
from sentinel_rag.testing.scripted_model.replies import Cut, chunk
from sentinel_rag.testing.small_estate import NOW, small_estate

pytestmark = pytest.mark.anyio
CLOSE = {"incident": "40", "status": "Closed", "classification": "Undetermined"}
MADE = rows_result(
    [
        {
            "number": 40,
            "title": "Inbox rule",
            "status": "Closed",
            "changes": [
                {"field": "status", "before": "New", "after": "Closed"},
                {"field": "classification", "before": "", "after": "Undetermined"},
            ],
        }
    ]
)
BROKEN = stream_reply(chunk({"role": "assistant", "content": "Incident 40 "}), Cut())


class Approving:
    """The estate with changes that wait for a person until `approved`."""

    def __init__(self) -> None:
        self.inner = small_estate(lambda: NOW)
        self.inner.answers["update_incident"] = MADE
        self.approved = False
        self.calls = []

    async def execute(self, call):
        self.calls.append(call)
        if call.tool_name == "update_incident" and not self.approved:
            return Denied(
                call, Reason.APPROVAL_REQUIRED, "A person must approve this.", "close_asks", "audit-9", "ap-77"
            )
        return await self.inner.execute(call)

    async def offered_tools(self):
        return await self.inner.offered_tools()


def close(number: int | str = "40", first: int = 1, **more):
    return calls_reply(("update_incident", CLOSE | {"incident": number} | more), first=first)


async def waiting_desk(desk):
    """A desk whose change of incident 40 waits for a person, who approves it."""
    gateway = Approving()
    at = desk(close(), text_reply("It waits."), gateway=gateway)
    await at.ask("Close incident 40 as undetermined")
    gateway.approved = True
    gateway.calls.clear()
    return at


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("words", ["do it now", "OK, do it now please", "it is approved", "apply the change"])
@pytest.mark.parametrize("other", [{"number": "18"}, {"classification": "BenignPositive"}, {"comment": "ok"}])
async def test_do_it_now_sends_what_waits_and_no_other_change(desk, words, other):
    at = await waiting_desk(desk)
    at.script(close(**other, first=5), text_reply("Done, incident 40 is closed."))
    answer = await at.ask(words)
    assert at.gateway.calls == []
    assert "Not sent" in at.results()[-1]
    assert '"incident": "40"' in at.results()[-1] or 'incident="40"' in at.results()[-1]
    assert "is closed" not in answer.text


@pytest.mark.requirement("APPR-1")
@pytest.mark.parametrize("number", ["40", 40])
async def test_do_it_now_sends_the_waiting_call_with_its_very_arguments(desk, number):
    at = await waiting_desk(desk)
    at.script(close(number, first=5), text_reply("Incident 40 is Closed."))
    answer = await at.ask("do it now")
    assert [dict(call.arguments) for call in at.gateway.calls] == [CLOSE]
    assert answer.text.startswith("Incident 40 is Closed.")


async def test_reading_is_free_while_a_change_waits_and_another_wish_is_too(desk):
    at = await waiting_desk(desk)
    at.script(calls_reply(("get_incident_detail", {"incident": "40"}), first=5), text_reply("Incident 40 is High."))
    await at.ask("do it now")
    at.script(close("18", first=9), text_reply("Incident 40 is Closed."))
    await at.ask("Close incident 18 as undetermined")
    assert [call.tool_name for call in at.gateway.calls] == ["get_incident_detail", "update_incident"]


def changing(outcome):
    gateway = small_estate(lambda: NOW)
    gateway.answers["update_incident"] = outcome
    return gateway


async def test_a_change_that_was_made_before_the_model_broke_off_is_told_by_code(desk):
    at = desk(close(), BROKEN, gateway=changing(MADE))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "Incident 40 was changed before that:" in answer.text
    assert "- status: New → Closed" in answer.text
    assert "- classification: - → Undetermined" in answer.text
    assert "Rows that update_incident" not in answer.text
    assert "A change was sent before that" not in answer.text
    assert "Closed" in {piece.text for piece in answer.evidence}


async def test_a_change_that_was_refused_before_the_model_broke_off_is_not_told_as_sent(desk):
    at = desk(close(), BROKEN, gateway=changing(denial()))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "Nothing was changed" in answer.text
    assert "A change was sent" not in answer.text
    assert "was changed before" not in answer.text


async def test_a_change_whose_end_is_not_known_is_told_as_sent(desk):
    at = desk(close(), BROKEN, gateway=changing(failure(QueryErrorCode.OUTCOME_UNKNOWN, "No answer came.")))
    answer = await at.ask("Close incident 40 as undetermined")
    assert "A change was sent before that" in answer.text


async def test_a_claim_about_an_earlier_change_is_replaced_by_what_was_changed(desk):
    at = desk(close(), text_reply("Incident 40 is Closed."), gateway=changing(MADE))
    await at.ask("Close incident 40 as undetermined")
    detail = calls_reply(("get_incident_detail", {"incident": "40"}), first=5)
    at.script(detail, text_reply("Incident 40 is High. I closed it a minute ago."))
    answer = await at.ask("What is incident 40 about?")
    assert NOT_MADE not in answer.text
    assert NOT_MADE_NOW in answer.text
    assert 'Changed earlier in this conversation: update_incident(incident="40", status="Closed"' in answer.text


async def test_what_was_changed_is_known_after_a_restart(desk):
    at = desk(close(), text_reply("Incident 40 is Closed."), gateway=changing(MADE))
    await at.ask("Close incident 40 as undetermined")
    stored = at.analyst.remembered("session-1")
    assert stored is not None
    detail = calls_reply(("get_incident_detail", {"incident": "40"}), first=5)
    later = desk(detail, text_reply("Incident 40 is High. I closed it."), gateway=changing(MADE))
    later.analyst.recall("session-1", stored)
    answer = await later.ask("What is incident 40 about?")
    assert "Changed earlier in this conversation: update_incident(" in answer.text
