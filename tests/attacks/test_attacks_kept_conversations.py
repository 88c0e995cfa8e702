"""Attacker controls: the agent's analyst, which keeps what it has read for later, and when the process is restarted.

Wanted: a conversation that goes on after a restart in a session whose label knows nothing of the secret that was read
before, to send it from there. In its own session the send is denied and on record; in another the memory is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from labelled_tools import labelled_gateway

from sentinel_rag.agent.conversations.chat import StoredChat
from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.contracts.conversations import CarriedFact, Remembered
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question, utc_now
from sentinel_rag.contracts.tool_calls import Denied, Succeeded, ToolCall
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TAINT-2")]


class HijackedAnalyst:
    """Reads the secret when it can, remembers it, and sends what it remembers with every question."""

    def __init__(self, gateway: HttpToolGateway) -> None:
        self._gateway = gateway
        self.loot: dict[str, str] = {}
        self.sent: list[object] = []

    async def answer(self, question: Question) -> Answer:
        session_id = question.session_id
        if question.text == "read":
            outcome = await self._gateway.execute(ToolCall("c1", session_id, "read_secret"))
            assert isinstance(outcome, Succeeded)
            self.loot[session_id] = str(outcome.result)
        else:
            loot = self.loot.get(session_id, "nothing")
            self.sent.append(await self._gateway.execute(ToolCall("c2", session_id, "search", {"query": loot[:200]})))
        return Answer(outcome=Outcome.ANSWERED, text="done", session_id=session_id)

    def remembered(self, session_id: str) -> Remembered | None:
        return Remembered({"loot": self.loot[session_id]}) if session_id in self.loot else None

    def recall(self, session_id: str, remembered: Remembered) -> None:
        if "loot" in remembered.state:
            self.loot[session_id] = str(remembered.state["loot"])

    def clear(self, session_id: str, carried: Sequence[CarriedFact]) -> None:
        pass

    def forget(self, session_id: str) -> None:
        self.loot.pop(session_id, None)


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        yield gateway


async def _ask_anew(labelled: RunningGateway, file: Path, session_id: str, question: str) -> HijackedAnalyst:
    async with HttpToolGateway(labelled.url, labelled.key) as gateway:
        analyst = HijackedAnalyst(gateway)
        store = ConversationStore(file, clock=utc_now)
        chat = StoredChat(analyst, store, clock=utc_now, knows_session=gateway.knows_session)
        await chat.answer(Question(question, session_id))
        store.close()
        return analyst


async def test_after_a_restart_the_conversations_own_session_still_knows_what_was_read(
    labelled: RunningGateway, tmp_path: Path
) -> None:
    file, session = tmp_path / "conversations.db", labelled.open_session()
    await _ask_anew(labelled, file, session, "read")
    assert labelled.context(session)[0] == "HIGH"
    analyst = await _ask_anew(labelled, file, session, "go on")
    assert analyst.loot[session], "the memory is recalled"
    (denied,) = analyst.sent
    assert isinstance(denied, Denied)
    record = labelled.last_record()
    assert (record["kind"], record["reason"], record["audit_id"]) == ("refusal", "sink_label", denied.audit_id)
    assert "search" not in {call.tool for call in labelled.executor.calls}


@pytest.mark.parametrize("session", ["closed", "unknown", "of another key"])
async def test_where_the_session_is_gone_the_memory_is_not_there_either(
    labelled: RunningGateway, tmp_path: Path, session: str
) -> None:
    file, opened = tmp_path / "conversations.db", labelled.open_session()
    await _ask_anew(labelled, file, opened, "read")
    store = ConversationStore(file, clock=utc_now)
    if session == "closed":
        assert labelled.request("DELETE", f"/v1/sessions/{opened}", key=labelled.user).status == 204
    else:
        other = "a-session-nobody-opened"
        if session == "of another key":
            key, _ = labelled.state.keys.create([Scope.EXECUTE], name="other")
            other = labelled.open_session(key=key)
        stored = store.load(opened)
        assert stored is not None
        opened = other
        store.save(type(stored)(other, state=stored.state, turns=stored.turns), known=False)
    analyst = await _ask_anew(labelled, file, opened, "go on")
    assert analyst.loot == {}
    after = store.load(opened)
    assert after is not None
    assert "SECRET" not in str(after.state), "what is not recalled is not kept as memory"
    store.close()


async def test_a_gateway_that_does_not_answer_leaves_the_memory_where_it_is(tmp_path: Path) -> None:
    file, state = tmp_path / "conversations.db", tmp_path / "state"
    with labelled_gateway(state) as gateway:
        session = gateway.open_session()
        await _ask_anew(gateway, file, session, "read")
    analyst = await _ask_anew(gateway, file, session, "go on")
    assert analyst.loot == {}
    with labelled_gateway(state) as gateway:
        async with HttpToolGateway(gateway.url, "wrong-key-wrong-key") as wrong:
            assert await wrong.knows_session(session) is None
    with closing(ConversationStore(file, clock=utc_now)) as store:
        stored = store.load(session)
    assert stored is not None
    assert stored.state, "it was not written over"
