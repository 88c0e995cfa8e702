"""An analyst whose conversations are kept: restarts, lost sessions, a store that fails, preferences and /clear."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.conversations import store as store_module
from sentinel_rag.agent.conversations.chat import DELETED, NOT_ASKED, SESSION_GONE, StoredChat
from sentinel_rag.agent.conversations.store import STOPPED, ConversationStore, StoredConversation, Version
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.conversations import Preferences, Verbosity
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

SESSION = "session-of-a-shift"
pytestmark = pytest.mark.anyio


@dataclass
class Home:
    """One person's home: each `chat()` is a new process over the same file. `sessions` is what the gateway knows;
    None where it cannot be asked."""

    file: Path
    gateway: ScriptedGateway = field(default_factory=small_estate)
    sessions: set[str] | None = field(default_factory=lambda: {SESSION})
    opened: list[ConversationStore] = field(default_factory=list)

    def chat(self) -> StoredChat:
        return StoredChat(
            OfflineAnalyst(self.gateway, clock=lambda: NOW),
            self.store(),
            clock=lambda: NOW,
            knows_session=self.knows,
        )

    def store(self) -> ConversationStore:
        self.opened.append(ConversationStore(self.file, clock=lambda: NOW))
        return self.opened[-1]

    def end_processes(self) -> None:
        """Close every file, as the end of a process does."""
        for store in self.opened:
            store.close()

    async def knows(self, session_id: str) -> bool | None:
        return None if self.sessions is None else session_id in self.sessions

    @property
    def last_arguments(self) -> dict[str, object]:
        return dict(self.gateway.calls[-1].arguments)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "conversations.db")
    yield made
    made.end_processes()


def _memory_lines(answer: Answer) -> list[str]:
    return [line for line in answer.footnote if line.startswith("memory:")]


@pytest.mark.requirement("CHAT-6")
async def test_a_number_of_before_the_restart_still_resolves(home: Home) -> None:
    await home.chat().answer(Question("list open incidents", SESSION))
    answer = await home.chat().answer(Question("who owns [2]?", SESSION))
    assert home.last_arguments == {"incident": "31"}
    assert answer.outcome is Outcome.ANSWERED
    assert _memory_lines(answer) == []
    (listed, owned) = home.store().load(SESSION).turns  # type: ignore[union-attr]
    assert (listed.question, owned.question, owned.outcome) == ("list open incidents", "who owns [2]?", "answered")
    assert owned.answer.startswith(answer.text)


async def test_what_another_agent_answered_meanwhile_is_remembered_and_not_written_over(home: Home) -> None:
    """Two agents over one store, behind a balancer that chooses anew for each question."""
    here, there = home.chat(), home.chat()
    await here.answer(Question("how many incidents are open?", SESSION))
    await there.answer(Question("list open incidents", SESSION))
    answer = await here.answer(Question("who owns [2]?", SESSION))
    assert home.last_arguments == {"incident": "31"}
    assert _memory_lines(answer) == []
    await there.clear(SESSION, carry=False)
    await here.answer(Question("who owns [2]?", SESSION))
    stored = home.store().load(SESSION)
    assert stored is not None
    assert [(turn.number, turn.question) for turn in stored.turns] == [
        (1, "how many incidents are open?"),
        (2, "list open incidents"),
        (3, "who owns [2]?"),
        (4, "who owns [2]?"),
    ]
    assert stored.cleared_turns == 3, "what was cleared there is cleared here"


async def test_a_turn_that_was_written_although_nobody_was_told_is_kept_once(home: Home) -> None:
    """A connection that broke in the commit: the store says that it cannot be used, and has the turn."""

    class InDoubt(ConversationStore):
        breaks = False

        def save(self, conversation: StoredConversation, *, known: bool) -> Version:
            version = super().save(conversation, known=known)
            if self.breaks:
                raise UnavailableError("The connection broke.", next_step="Wait.")
            return version

    store = InDoubt(home.file, clock=lambda: NOW)
    home.opened.append(store)
    chat = StoredChat(
        OfflineAnalyst(home.gateway, clock=lambda: NOW), store, clock=lambda: NOW, knows_session=home.knows
    )
    await chat.answer(Question("how many incidents are open?", SESSION))
    store.breaks = True
    (line,) = _memory_lines(await chat.answer(Question("list open incidents", SESSION)))
    assert "The connection broke" in line
    store.breaks = False
    await chat.answer(Question("who owns [2]?", SESSION))
    assert home.last_arguments == {"incident": "31"}
    stored = store.load(SESSION)
    assert stored is not None
    assert [(turn.number, turn.question, turn.outcome) for turn in stored.turns] == [
        (1, "how many incidents are open?", "answered"),
        (2, "list open incidents", "answered"),
        (3, "who owns [2]?", "answered"),
    ]


async def test_call_ids_go_on_counting_after_a_restart(home: Home) -> None:
    first = await home.chat().answer(Question("list open incidents", SESSION))
    second = await home.chat().answer(Question("list open incidents", SESSION))
    assert not {trace.call_id for trace in first.tools} & {trace.call_id for trace in second.tools}


@pytest.mark.requirement("CHAT-6")
async def test_where_the_interceptor_has_lost_the_session_nothing_that_was_read_is_carried_on(home: Home) -> None:
    await home.chat().answer(Question("list open incidents", SESSION, Preferences(timezone="Europe/Berlin")))
    home.sessions = set()
    chat = home.chat()
    calls = len(home.gateway.calls)
    answer = await chat.answer(Question("who owns [2]?", SESSION))
    assert _memory_lines(answer) == [SESSION_GONE]
    assert "31" not in str([call.arguments for call in home.gateway.calls[calls:]])
    assert _memory_lines(await chat.answer(Question("how many incidents?", SESSION))) == []
    home.sessions = {SESSION}
    await home.chat().answer(Question("list open incidents", SESSION))
    stored = home.store().load(SESSION)
    assert stored is not None
    assert stored.preferences.timezone == "Europe/Berlin"
    assert stored.cleared_turns == 1


async def test_where_the_interceptor_cannot_be_asked_memory_waits_and_is_not_written_over(home: Home) -> None:
    await home.chat().answer(Question("list open incidents", SESSION))
    home.sessions = None
    chat = home.chat()
    assert _memory_lines(await chat.answer(Question("how many incidents?", SESSION))) == [NOT_ASKED]
    home.sessions = {SESSION}
    await chat.answer(Question("who owns [2]?", SESSION))
    assert home.last_arguments == {"incident": "31"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "WAIT_FOR_LOCK_S", 0.01)


@pytest.fixture
def locked(home: Home, impatient: None) -> Iterator[Callable[[], None]]:
    home.store().delete("makes the file")
    other = sqlite3.connect(home.file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield lambda: other.execute("ROLLBACK")  # type: ignore[func-returns-value]
    other.close()


async def test_a_locked_store_is_told_and_what_was_missed_is_written_later(
    home: Home, locked: Callable[[], None]
) -> None:
    chat = home.chat()
    answer = await chat.answer(Question("list open incidents", SESSION))
    assert answer.outcome is Outcome.ANSWERED
    (line,) = _memory_lines(answer)
    assert "is locked by another program" in line
    locked()
    assert _memory_lines(await chat.answer(Question("who owns [2]?", SESSION))) == []
    stored = home.store().load(SESSION)
    assert stored is not None
    assert [(turn.number, turn.question, turn.outcome) for turn in stored.turns] == [
        (1, "list open incidents", "answered"),
        (2, "who owns [2]?", "answered"),
    ]


@pytest.mark.parametrize("before", [True, False], ids=["a kept conversation", "a new one"])
async def test_a_turn_that_was_asked_before_the_store_could_be_read_is_written_later(
    home: Home, impatient: None, before: bool
) -> None:
    if before:
        await home.chat().answer(Question("list open incidents", SESSION))
    else:
        home.store().delete("makes the file")
    home.end_processes()
    chat = home.chat()
    aside = home.file.rename(home.file.with_name("aside.db"))
    home.file.write_bytes(b"damaged for a while" * 500)
    (line,) = _memory_lines(await chat.answer(Question("how many incidents are open?", SESSION)))
    assert "is damaged" in line
    aside.rename(home.file)
    assert _memory_lines(await chat.answer(Question("what is incident 12 about", SESSION))) == []
    stored = home.store().load(SESSION)
    assert stored is not None
    asked = [*(["list open incidents"] if before else []), "how many incidents are open?", "what is incident 12 about"]
    assert [(turn.number, turn.question) for turn in stored.turns] == list(enumerate(asked, start=1))
    assert {turn.outcome for turn in stored.turns} == {"answered"}


async def test_a_damaged_store_is_told_in_one_line_and_questions_are_answered(home: Home) -> None:
    home.file.write_bytes(b"no database at all, but long enough to be one" * 100)
    chat = home.chat()
    for _ in range(2):
        answer = await chat.answer(Question("list open incidents", SESSION))
        assert answer.outcome is Outcome.ANSWERED
        (line,) = _memory_lines(answer)
        assert "is damaged" in line
        assert str(home.file) in line


async def test_without_a_store_questions_are_answered_and_nothing_is_said_of_it(home: Home) -> None:
    chat = StoredChat(
        OfflineAnalyst(home.gateway, clock=lambda: NOW), None, clock=lambda: NOW, knows_session=home.knows
    )
    await chat.answer(Question("list open incidents", SESSION))
    answer = await chat.answer(Question("who owns [2]?", SESSION))
    assert home.last_arguments == {"incident": "31"}
    assert _memory_lines(answer) == []
    assert not home.file.exists()


async def test_a_conversation_that_another_window_deleted_starts_over_and_says_so(home: Home) -> None:
    chat = home.chat()
    await chat.answer(Question("list open incidents", SESSION))
    home.store().delete(SESSION)
    answer = await chat.answer(Question("who owns [2]?", SESSION))
    assert _memory_lines(answer) == [DELETED]
    assert home.last_arguments != {"incident": "31"}
    stored = home.store().load(SESSION)
    assert stored is not None
    assert [turn.question for turn in stored.turns] == ["who owns [2]?"]


async def test_a_conversation_that_its_person_deletes_is_gone_from_memory_and_from_the_file(home: Home) -> None:
    chat = home.chat()
    await chat.answer(Question("list open incidents", SESSION))
    await chat.delete(SESSION)
    assert home.store().load(SESSION) is None
    await chat.delete("one-that-never-was")
    answer = await chat.answer(Question("who owns [2]?", SESSION))
    assert _memory_lines(answer) == []
    assert home.last_arguments != {"incident": "31"}


async def test_a_question_that_is_stopped_is_kept_as_stopped_and_the_next_one_works(home: Home) -> None:
    started = anyio.Event()

    class WaitsForEver(ScriptedGateway):
        async def execute(self, call):  # type: ignore[no-untyped-def]
            started.set()
            await anyio.sleep_forever()

    answers = home.gateway
    home.gateway = WaitsForEver(answers.answers)
    chat = home.chat()
    async with anyio.create_task_group() as group:

        async def ask() -> None:
            await chat.answer(Question("list open incidents", SESSION))

        group.start_soon(ask)
        await started.wait()
        group.cancel_scope.cancel()
    home.gateway = answers
    await home.chat().answer(Question("how many incidents?", SESSION))
    stored = home.store().load(SESSION)
    assert stored is not None
    assert [turn.outcome for turn in stored.turns] == [STOPPED, "answered"]


@pytest.mark.requirement("CHAT-7")
async def test_preferences_are_kept_over_clear_and_restart(home: Home) -> None:
    chat = home.chat()
    await chat.answer(
        Question("incidents of yesterday", SESSION, Preferences(timezone="Asia/Tokyo", verbosity=Verbosity.FULL))
    )
    await chat.clear(SESSION, carry=True)
    for process in (chat, home.chat()):
        await process.answer(Question("incidents of yesterday", SESSION))
        assert home.last_arguments["start_time"] == "2024-07-21T15:00:00Z", "midnight in Tokyo"
    stored = home.store().load(SESSION)
    assert stored is not None
    assert (stored.preferences.timezone, stored.preferences.verbosity) == ("Asia/Tokyo", Verbosity.FULL)


@pytest.mark.requirement("CHAT-7")
async def test_clear_carries_supported_facts_with_their_sources_and_time(home: Home) -> None:
    chat = home.chat()
    answer = await chat.answer(Question("what is incident 12 about", SESSION))
    carried = await chat.clear(SESSION, carry=True)
    texts = [fact.text for fact in carried]
    assert any("Incident 12" in text for text in texts)
    assert {fact.at for fact in carried} == {format_time(NOW)}
    known = {(piece.call_id, piece.tool, piece.pointer) for piece in answer.evidence}
    assert {(fact.call_id, fact.tool, fact.pointer) for fact in carried} <= known
    stored = home.store().load(SESSION)
    assert stored is not None
    assert stored.carried == carried
    assert await home.chat().clear(SESSION, carry=True) == carried, "a second clear, after a restart, keeps them"
    assert await chat.clear(SESSION, carry=False) == ()


@pytest.mark.requirement("CHAT-16")
async def test_a_state_question_after_clear_asks_the_tools_again(home: Home) -> None:
    chat = home.chat()
    await chat.answer(Question("what is incident 12 about", SESSION))
    await chat.clear(SESSION, carry=True)
    before = len(home.gateway.calls)
    await chat.answer(Question("what is the status of incident 12?", SESSION))
    assert len(home.gateway.calls) > before


@pytest.mark.requirement("CHAT-7")
async def test_zero_data_leaves_no_fact_to_carry(home: Home) -> None:
    home.gateway = ScriptedGateway({})
    chat = home.chat()
    await chat.answer(Question("what is incident 12 about", SESSION))
    assert await chat.clear(SESSION, carry=True) == ()


async def test_what_a_memory_needs_is_loaded_before_it_is_recalled_and_not_for_new_conversations(home: Home) -> None:
    prepared: list[int] = []

    async def prepare() -> None:
        prepared.append(len(home.gateway.calls))

    def chat() -> StoredChat:
        analyst = OfflineAnalyst(home.gateway, clock=lambda: NOW)
        return StoredChat(analyst, home.store(), clock=lambda: NOW, knows_session=home.knows, prepare=prepare)

    await chat().answer(Question("list open incidents", SESSION))
    assert prepared == []
    await chat().answer(Question("who owns [2]?", SESSION))
    assert prepared == [1]


@pytest.mark.requirement("CHAT-6")
async def test_chats_that_go_on_at_once_are_kept_apart(home: Home) -> None:
    chat = home.chat()
    home.sessions = {f"session-{name}" for name in range(6)}
    owners: dict[str, Answer] = {}

    async def converse(session_id: str, place: int) -> None:
        await chat.answer(Question("list open incidents" if place % 2 else "list closed incidents", session_id))
        owners[session_id] = await chat.answer(Question("who owns [1]?", session_id))

    async with anyio.create_task_group() as group:
        for place, session_id in enumerate(sorted(home.sessions)):
            group.start_soon(converse, session_id, place)
    asked = [str(owners[session_id].tools[-1].arguments["incident"]) for session_id in sorted(home.sessions)]
    assert asked == [asked[0], asked[1]] * 3
    assert asked[0] != asked[1]
    for session_id in home.sessions:
        stored = home.store().load(session_id)
        assert stored is not None
        assert [turn.question for turn in stored.turns][1:] == ["who owns [1]?"]
        assert stored.turns[0].answer != stored.turns[1].answer
