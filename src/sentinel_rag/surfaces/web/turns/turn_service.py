"""Where questions are taken in and answered: one at a time in each conversation, each once, whoever listens.

For each question the person's words go to the gateway with the person's key, then to the agent without it. What
comes back is recorded as it came and told with the hidden values that the person may see.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.abc
import anyio.to_thread

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.evidence import Progress, Sentence, Written, option_chosen
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.surfaces.http import SessionLocks
from sentinel_rag.surfaces.web._clients import Agent, Gateway
from sentinel_rag.surfaces.web._problems import RequestProblem, not_found, problem_of
from sentinel_rag.surfaces.web.turns.events import (
    Event,
    LiveTurn,
    answer_events,
    filled,
    progress_event,
    written_events,
    written_in,
)
from sentinel_rag.surfaces.web.turns.record import (
    ConversationRecord,
    KeptConversation,
    KeptTurn,
    RequestIdUsed,
    TurnState,
)

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

POLL_S = 0.3
"""How often it is looked whether another surface has ended a turn: a database tells nobody."""

KEEP_AGAIN_S = 1.0
"""How often it is tried to record the end of a turn while the record cannot be used."""

SESSION_GONE = (
    "The gateway no longer knows this conversation's session, so a new one begins: what was read before is not "
    "carried on."
)


@dataclass(frozen=True, slots=True)
class RunningTurns:
    """How many questions may be on their way at once, of one person and of all."""

    of_person: int = 4
    of_all: int = 200


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A question of a person. `key` is the person's at the gateway; `options` go to the agent as they are."""

    user_id: str
    key: str
    message: str
    conversation_id: str | None
    request_id: str | None
    options: Mapping[str, str | None]


class TurnService:
    """Use as `async with desk.open():`; questions that are on their way when the block ends are stopped and recorded
    so."""

    def __init__(
        self, record: ConversationRecord, agent: Agent, gateway: Gateway, *, limits: RunningTurns | None = None
    ) -> None:
        self._record = record
        self._agent = agent
        self._gateway = gateway
        self._limits = limits or RunningTurns()
        self._live: dict[str, LiveTurn] = {}
        self._beginning = SessionLocks()
        self._answering = SessionLocks()
        self._unkept: dict[str, tuple[TurnState, Mapping[str, Any] | None, tuple[Event, ...]]] = {}
        self._group: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            group.cancel_scope.cancel()

    async def ask(self, asked: PersonQuestion) -> str:
        """Begin a turn, or find the one that this request id began; its id. Raises Problem, RequestIdUsed, or
        UnavailableError."""
        async with self._beginning.hold(asked.user_id):
            if asked.request_id is not None:
                known = await _in_thread(self._record.turn_of_request, asked.request_id, asked.user_id)
                if known is not None:
                    return _same(known, asked)
            self._check_room(asked.user_id)
            conversation = await self._conversation(asked)
            turn_id = secrets.token_hex(12)
            try:
                turn = await _in_thread(self._record.begin, turn_id, conversation, asked.request_id, asked.message)
            except SentinelError:
                # It may be on record all the same, as one that this surface answers: others would wait for it.
                self._keep_later(turn_id, TurnState.STOPPED, (_stopped(),))
                raise
            if turn.turn_id != turn_id:  # the same request came to another surface at this moment
                if asked.conversation_id is None:
                    await _in_thread(self._record.delete, conversation.conversation_id)
                return _same(turn, asked)
            live = LiveTurn(turn_id, asked.user_id, conversation.conversation_id, asked.request_id)
            self._live[turn_id] = live
        told = ("turn_id", "session_id", "number", "request_id", "question", "asked_at")
        live.tell(Event("started", {name: turn.to_dict()[name] for name in told}))
        assert self._group is not None
        self._group.start_soon(self._run, live, asked, conversation)
        return turn_id

    def live(self, turn_id: str, user_id: str) -> LiveTurn | None:
        """The turn, if it is on its way and that person's."""
        live = self._live.get(turn_id)
        return live if live is not None and live.user_id == user_id else None

    async def elsewhere(self, turn_id: str, user_id: str) -> None:
        """Wait until a turn that another surface answers has ended, also by that surface's end."""
        while self._record.shared and self.live(turn_id, user_id) is None:
            turn = await _in_thread(self._record.settled, turn_id, user_id)
            if turn is None or turn.state is not TurnState.RUNNING:
                return
            await anyio.sleep(POLL_S)

    async def cancel_all(self, conversation_id: str) -> None:
        """Stop what is on its way in a conversation, and wait until it has ended."""
        stopped = [live for live in self._live.values() if live.conversation_id == conversation_id]
        for live in stopped:
            live.cancel()
        for live in stopped:
            await live.wait()

    @asynccontextmanager
    async def quiet(self, conversation_id: str) -> AsyncIterator[None]:
        """Hold the conversation while nothing is answered in it."""
        async with self._answering.hold(conversation_id):
            yield

    def _check_room(self, user_id: str) -> None:
        of_person = sum(live.user_id == user_id for live in self._live.values())
        if of_person >= self._limits.of_person:
            raise RequestProblem(
                429,
                "too_many_turns",
                f"{of_person} of your questions are being answered.",
                "Wait for one to end, or cancel one.",
                {"Retry-After": "5"},
            )
        if len(self._live) >= self._limits.of_all:
            raise RequestProblem(
                503, "overloaded", "Too many questions are being answered.", "Try again soon.", {"Retry-After": "10"}
            )

    async def _conversation(self, asked: PersonQuestion) -> KeptConversation:
        conversation_id = asked.conversation_id
        if conversation_id is None:
            conversation_id = await self._gateway.open_session(asked.key)
            await _in_thread(self._record.open, conversation_id, asked.user_id, asked.message)
        found = await _in_thread(self._record.find, conversation_id, asked.user_id)
        if found is None:
            raise not_found("conversation")
        return found

    async def _run(self, live: LiveTurn, asked: PersonQuestion, conversation: KeptConversation) -> None:
        """Answer one question to its end. Never raises but for the end of the process."""
        state, answer, last = TurnState.STOPPED, None, _stopped()
        shown: tuple[Event, ...] = ()
        written = Written()
        try:
            with live.scope:
                async with self._answering.hold(conversation.conversation_id):
                    await self._after_others(live)
                    answer = await self._answer(live, asked, conversation, written)
                    named = _named(answer, conversation.conversation_id)
                    recorded = tuple(answer_events(named, live.turn_id, written))
                    shown = await self._revealed(asked.key, str(answer["session_id"]), live.recorded, recorded)
                    state = TurnState.ANSWERED
        except (SentinelError, RequestProblem) as error:
            problem = error if isinstance(error, RequestProblem) else problem_of(error)
            state, last = TurnState.FAILED, Event("error", problem.body())
            log.warning("a question failed: %s", error)
        except Exception:
            state, last = TurnState.FAILED, Event("error", _BROKEN.body())
            log.exception("a question failed")
        finally:
            with anyio.CancelScope(shield=True):
                if state is TurnState.ANSWERED and answer is not None:
                    ending = recorded
                else:
                    answer, ending, shown = None, (last,), (last,)
                await self._keep(live, state, answer, (*live.recorded, *ending))
                live.tell(*shown, recorded=ending)
                self._live.pop(live.turn_id, None)

    async def _after_others(self, live: LiveTurn) -> None:
        """Wait for earlier turns of the conversation that other surfaces answer."""
        while self._record.shared:
            if await _in_thread(self._record.is_next, live.turn_id, live.conversation_id):
                return
            await anyio.sleep(POLL_S)

    async def _answer(
        self, live: LiveTurn, asked: PersonQuestion, conversation: KeptConversation, written: Written
    ) -> dict[str, Any]:
        """The agent's answer, as it came. What it tells on the way is told on, and its text kept in `written`."""
        current = await _in_thread(self._record.find, conversation.conversation_id, asked.user_id)
        session_id = (current or conversation).session_id
        if asked.conversation_id is not None and not await self._gateway.is_open(asked.key, session_id):
            session_id = await self._gateway.open_session(asked.key)
            await _in_thread(self._record.move, conversation.conversation_id, session_id)
            live.tell(Event("status", {"text": SESSION_GONE, "elapsed_s": 0.0}))
        shown = await _in_thread(self._record.shown_last, conversation.conversation_id)
        await self._gateway.say(asked.key, session_id, asked.message, option_chosen(asked.message, shown))
        body = {"message": asked.message, "session_id": session_id, **asked.options}
        async for name, data in self._agent.ask(body):
            if name == "progress":
                live.tell(progress_event(data))
            elif name in ("text", "withdrawn", "sentences"):
                text = str(data["text"]) if name == "text" else ""
                sentences = tuple(map(Sentence.from_dict, data.get("sentences", ())))
                written.hear(Progress("", written=text, withdrawn=name == "withdrawn", sentences=sentences))
                told = tuple(written_events(name, data))
                live.tell(*await self._revealed(asked.key, session_id, live.recorded, told), recorded=told)
            elif name == "answer":
                return dict(data)
        raise UnavailableError("The agent gave no answer.", next_step="Ask again.")

    async def _revealed(
        self, key: str, session_id: str, before: Sequence[Event], events: Sequence[Event]
    ) -> tuple[Event, ...]:
        """The events, which come behind `before`, with the hidden values in them that the person may see."""
        text = written_in(before) if any(event.type == "sentence" for event in events) else ""
        handles = handles_in([text, *(dict(event.data) for event in events)])
        values = await self._gateway.values(key, session_id, handles)
        return tuple(filled(events, values, text)) if values else tuple(events)

    async def _keep(
        self, live: LiveTurn, state: TurnState, answer: Mapping[str, Any] | None, events: tuple[Event, ...]
    ) -> None:
        try:
            await _in_thread(self._record.end, live.turn_id, state, answer, events)
        except SentinelError:
            log.exception("a turn could not be recorded")
            self._keep_later(live.turn_id, state, events, answer)

    def _keep_later(
        self, turn_id: str, state: TurnState, events: tuple[Event, ...], answer: Mapping[str, Any] | None = None
    ) -> None:
        """Record an end once the record can be used again: until then the turn counts as one that is answered here."""
        assert self._group is not None
        if not self._unkept:
            self._group.start_soon(self._keep_again)
        self._unkept[turn_id] = state, answer, events

    async def _keep_again(self) -> None:
        while self._unkept:
            await anyio.sleep(KEEP_AGAIN_S)
            with suppress(SentinelError):
                for turn_id, end in list(self._unkept.items()):
                    await _in_thread(self._record.end, turn_id, *end)
                    del self._unkept[turn_id]
                    log.warning("a turn is recorded after all")


_BROKEN = RequestProblem(500, "internal", "This surface failed on the question.", "Ask again; its log has the details.")


def _stopped() -> Event:
    problem = RequestProblem(
        409,
        "cancelled",
        "The question was stopped before its answer. A change that was asked for may have been made.",
        "Ask again, or look before you ask for a change again.",
    )
    return Event("error", problem.body())


def _named(answer: Mapping[str, Any], conversation_id: str) -> dict[str, Any]:
    """The answer under the id by which people know the conversation."""
    return {**answer, "session_id": conversation_id}


def _same(known: KeptTurn, asked: PersonQuestion) -> str:
    if known.question != asked.message or asked.conversation_id not in (None, known.conversation_id):
        raise RequestIdUsed(
            "This request id belongs to another question of yours.", next_step="Send each question under a new one."
        )
    return known.turn_id


async def _in_thread(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    return await anyio.to_thread.run_sync(partial(function, *arguments, **named))
