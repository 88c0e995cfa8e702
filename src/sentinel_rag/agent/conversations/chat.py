"""A chat whose conversations are stored: it recalls one that is not in memory, and saves each turn.

Implements `contracts.ports.Chat` around any `Analyst`. A question is answered whatever becomes of the store; a line of
the footnote then says that the conversation is not being kept. Memory is recalled only while the gateway still knows
the session: what was read in it would else stand in a session whose labels know nothing of it.

Over a /clear only facts are carried: sentences whose values were found, each with its source and its time, bounded in
every direction. A sentence that nothing supported cannot become a fact by being carried, and a value that could steer a
reader is shown once and not carried: what is lost that way can be asked for again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from sentinel_rag.agent.conversations.store import (
    STOPPED,
    ConversationDeletedError,
    ConversationStore,
    StoredConversation,
    StoredTurn,
    Version,
)
from sentinel_rag.agent.instruction_text import may_instruct
from sentinel_rag.contracts.conversations import NO_PREFERENCES, CarriedFact, Preferences, Remembered
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.evidence import Answer, Evidence, SentenceState, Table
from sentinel_rag.contracts.ports import Analyst, Clock, Question
from sentinel_rag.contracts.query_results import format_time

KnowsSession = Callable[[str], Awaitable[bool | None]]
"""Whether the gateway still knows a session, and it is open; None if it cannot be asked."""
MAX_OPEN = 400
"""Conversations in memory; fewer than an analyst holds, so that none is lost there before it is recalled here."""
MAX_UNSAVED = 30
"""Turns that wait for a store that fails; the oldest are given up."""
MAX_FACTS = 200
DELETED = "memory: this conversation was deleted in another window; it starts over"
SESSION_GONE = (
    "memory: the gateway no longer knows this conversation's session, so what was read in it is not carried on; "
    "your preferences are"
)
NOT_ASKED = "memory: the gateway cannot be reached, so what was said before is not recalled yet"


@dataclass(slots=True)
class _Open:
    """A conversation in memory, without what is the analyst's own: what the store has of it and what waits for it."""

    preferences: Preferences = NO_PREFERENCES
    carried: tuple[CarriedFact, ...] = ()
    facts: tuple[CarriedFact, ...] = ()
    turns: int = 0
    cleared_turns: int = 0
    saved: bool = False
    unsaved: list[StoredTurn] = field(default_factory=list)
    newest_memory: Mapping[str, Any] | None = None
    unread: bool = False
    """True while what the store has of it is not recalled, so that it must not be written over."""
    version: Version | None = None
    """What the store has of it, as far as this process knows."""
    kept: frozenset[tuple[int, str, str]] = frozenset()
    """Number, time and question of each turn that was read from the store."""

    def take(self, waiting: Sequence[StoredTurn]) -> None:
        """Go on after turns that were asked before the conversation could be read."""
        for turn in waiting:
            if not self.has(turn):
                self.turns += 1
                turn = replace(turn, number=self.turns)
            self.note(turn)
            self.learn(turn.facts)

    def has(self, turn: StoredTurn) -> bool:
        """Whether the store has `turn`, written by a process that was never told so: the connection broke."""
        return (turn.number, turn.asked_at, turn.question) in self.kept

    def note(self, turn: StoredTurn) -> None:
        """Let `turn` be written next; it takes the place of what was noted of the same turn before."""
        self.unsaved = [*(each for each in self.unsaved if each.number != turn.number), turn][-MAX_UNSAVED:]

    def learn(self, facts: Sequence[CarriedFact]) -> None:
        """Facts that a /clear may carry on."""
        self.facts = (*self.facts, *facts)[-MAX_FACTS:]


class StoredChat:
    """`Chat` over an `Analyst`. `store` is None where nothing is to be kept. `prepare` is awaited before the analyst is
    handed a memory: it loads what that needs, which the analyst would else load while others wait."""

    def __init__(
        self,
        analyst: Analyst,
        store: ConversationStore | None,
        *,
        clock: Clock,
        knows_session: KnowsSession,
        prepare: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._analyst = analyst
        self._store = store
        self._clock = clock
        self._knows_session = knows_session
        self._prepare = prepare
        self._open: OrderedDict[str, _Open] = OrderedDict()

    async def answer(self, question: Question) -> Answer:
        """One turn; the store knows of it before it is answered, and of its answer before a person sees it."""
        notices: list[str] = []
        session_id = question.session_id
        conversation = await self._opened(session_id, notices)
        chosen = question.preferences.over(conversation.preferences)
        turn = StoredTurn(conversation.turns + 1, format_time(self._clock()), question.text)
        conversation.turns = turn.number
        conversation.preferences = chosen
        await self._save(session_id, conversation, turn, notices)
        try:
            answer = await self._analyst.answer(replace(question, preferences=chosen))
        except BaseException:  # stopped by the person, out of time, or broken: the turn is kept as it ended
            with anyio.CancelScope(shield=True):
                await self._save(session_id, conversation, replace(turn, outcome=STOPPED), notices)
            raise
        facts = supported_facts(answer, format_time(self._clock()))
        conversation.learn(facts)
        rows = (" | ".join(row) for table in answer.tables for row in (table.columns, *table.rows))
        turn = replace(
            turn,
            outcome=answer.outcome.value,
            answer="\n".join((answer.text, *rows)),
            facts=facts,
            shown=answer.to_dict(),
            results=answer.results,
        )
        await self._save(session_id, conversation, turn, notices)
        return replace(answer, footnote=(*answer.footnote, *dict.fromkeys(notices)))

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """Start over; the facts that stay."""
        notices: list[str] = []
        conversation = await self._opened(session_id, notices)
        conversation.carried = carried_on(conversation.carried, conversation.facts) if carry else ()
        conversation.facts = ()
        conversation.cleared_turns = conversation.turns
        if carry:
            await self._prepared()
            self._analyst.clear(session_id, conversation.carried)
        else:
            self._analyst.forget(session_id)
        if conversation.saved:
            await self._save(session_id, conversation, None, notices)
        return conversation.carried

    async def delete(self, session_id: str) -> None:
        """Remove the conversation from memory and from the store."""
        self._analyst.forget(session_id)
        self._open.pop(session_id, None)
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.delete, session_id)

    async def _opened(self, session_id: str, notices: list[str]) -> _Open:
        """The conversation, recalled from the store if it is not in memory, or another process went on with it."""
        conversation = self._open.get(session_id)
        if conversation is None or conversation.unread or await self._went_on_elsewhere(session_id, conversation):
            waiting = [] if conversation is None else conversation.unsaved
            conversation = await self._recalled(session_id, waiting, notices)
            conversation.take(waiting)
            self._open[session_id] = conversation
        self._open.move_to_end(session_id)
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return conversation

    async def _went_on_elsewhere(self, session_id: str, conversation: _Open) -> bool:
        """Whether the store has what this process does not know: it would be written over, and is not remembered."""
        if self._store is None or not conversation.saved:
            return False
        try:
            found = await anyio.to_thread.run_sync(self._store.version, session_id)
        except SentinelError:
            return False  # saving will say what ails the store
        return found is not None and found != conversation.version

    async def _recalled(self, session_id: str, waiting: Sequence[StoredTurn], notices: list[str]) -> _Open:
        if self._store is None:
            return _Open()
        try:
            stored = await anyio.to_thread.run_sync(partial(self._store.load, session_id, with_results=True))
        except SentinelError as error:
            notices.append(_not_kept(error))
            return _Open(unread=True)
        if stored is None:
            return _Open()
        number = stored.turns[-1].number if stored.turns else stored.cleared_turns
        conversation = _Open(
            stored.preferences,
            turns=number,
            cleared_turns=stored.cleared_turns,
            saved=True,
            version=stored.version,
            kept=frozenset((turn.number, turn.asked_at, turn.question) for turn in stored.turns),
        )
        known = await self._knows_session(session_id)
        if known is None:
            conversation.unread = True
            notices.append(NOT_ASKED)
        elif not known:
            conversation.cleared_turns = number
            notices.append(SESSION_GONE)
        else:
            await self._hand_back(session_id, stored, conversation, waiting)
        return conversation

    async def _hand_back(
        self, session_id: str, stored: StoredConversation, conversation: _Open, waiting: Sequence[StoredTurn]
    ) -> None:
        """Give the analyst its memory of a stored conversation, and of turns that still wait to be stored."""
        newer = {turn.number: turn for turn in waiting if conversation.has(turn)}
        since = [newer.get(turn.number, turn) for turn in stored.turns if turn.number > stored.cleared_turns]
        unknown = [turn for turn in waiting if not conversation.has(turn)]
        conversation.carried = stored.carried
        conversation.learn([fact for turn in since for fact in turn.facts])
        memories = tuple(turn.memory for turn in (*since, *unknown) if turn.memory is not None)
        results = tuple(entry for turn in since for entry in turn.results)
        await self._prepared()
        self._analyst.clear(session_id, stored.carried)
        self._analyst.recall(session_id, Remembered(stored.state, memories, results))
        conversation.newest_memory = memories[-1] if memories else None

    async def _prepared(self) -> None:
        if self._prepare is not None:
            await self._prepare()

    async def _save(self, session_id: str, conversation: _Open, turn: StoredTurn | None, notices: list[str]) -> None:
        """Write what is new. Turns that could not be written wait for the next time."""
        if self._store is None:
            return
        remembered = self._analyst.remembered(session_id)
        if turn is not None:
            newest = remembered.turns[-1] if remembered is not None and remembered.turns else None
            if turn.outcome is not None and newest is not None and newest != conversation.newest_memory:
                turn = replace(turn, memory=newest)
                conversation.newest_memory = newest
            conversation.note(turn)
        if conversation.unread:
            return
        stored = StoredConversation(
            session_id,
            conversation.preferences,
            {} if remembered is None else remembered.state,
            conversation.carried,
            conversation.cleared_turns,
            tuple(conversation.unsaved),
        )
        write = partial(self._store.save, stored, known=conversation.saved)
        try:
            conversation.version = await anyio.to_thread.run_sync(write)
        except ConversationDeletedError:
            notices.append(DELETED)
            self._analyst.forget(session_id)
            conversation.carried = conversation.facts = ()
            conversation.cleared_turns, conversation.saved = conversation.turns - 1, False
            conversation.unsaved = conversation.unsaved[-1:]
            if turn is not None:
                await self._save(session_id, conversation, None, notices)
        except SentinelError as error:
            notices.append(_not_kept(error))
        else:
            conversation.saved, conversation.unsaved = True, []


def _not_kept(error: SentinelError) -> str:
    step = f" {error.next_step}" if isinstance(error, UnavailableError) else ""
    return f"memory: this conversation is not being kept just now. {error}{step}"


MOST_CARRIED = 40
MAX_OF_AN_ANSWER = 10
MAX_CHARACTERS = 240
MAX_SUBJECT = 100
_NOT_CARRIED = ("Note:", "Window:", "Page")
_NUMBER = re.compile(r"\[\d+\]")
_ITEM = re.compile(r"(?:\[\d+\]|\d+[.)]|[-*•])\s+")
_SUBJECT = re.compile(r"(?:Incident|Alert|Host|Account|IP|Table|Template)\s+[^\s:`“\"]{1,60}:(?=\s)")
"""The name with which an answer about one thing opens."""
_NAMING = ("Incident", "Host", "Account", "Name")
"""Columns that say what a row is about."""
_NAMELESS = "-"
"""Stands for an opening line whose subject cannot be carried, nor anything that speaks of it."""


def supported_facts(answer: Answer, at: str) -> tuple[CarriedFact, ...]:
    """The lines and rows of `answer` that hold a piece of its evidence, in its order. `at` is when it was read."""
    facts = _of_lines(answer, at)
    for table in answer.tables:
        for row in table.rows:
            pieces = [piece for piece in answer.evidence if piece.text in row]
            cells = _safe_cells(table, row, pieces)
            pieces = [piece for piece in pieces if any(piece.text == cell for _, cell in cells)]
            if pieces:
                facts.append(_fact(_row_text(cells), pieces, at))
    return tuple(facts[:MAX_OF_AN_ANSWER])


def _of_lines(answer: Answer, at: str) -> list[CarriedFact]:
    facts: list[CarriedFact] = []
    opening = ""
    follows = False
    for line, pieces in _found_in(answer):
        if not pieces or line.startswith(_NOT_CARRIED) or line.endswith("?"):
            continue
        item = _ITEM.match(line)
        safe = not may_instruct(line) and not any(_steers(piece) for piece in pieces)
        if item is not None:
            follows = False
            if safe:
                facts.append(_fact(line[item.end() :], pieces, at))
            continue
        # Lines after the first speak of what the first one names: alone they would be true of nothing.
        subject = _SUBJECT.match(opening or line)
        if not opening:
            opening = line if safe or subject is not None else _NAMELESS
            if safe:
                follows = True
                facts.append(_fact(line, pieces, at))
        elif not safe or (subject is None and opening == _NAMELESS):
            continue
        elif subject is not None:
            facts.append(_fact(f"{subject[0]} {line}", pieces, at))
        elif follows and (joined := _continued(facts[-1], line, pieces)) is not None:
            facts[-1] = joined
        else:
            facts.append(_fact(f"{_shortened(opening, MAX_SUBJECT)} {line}", pieces, at))
    return facts


def _found_in(answer: Answer) -> Iterator[tuple[str, list[Evidence]]]:
    """The sentences whose values were found, each with the places of these; the lines of an answer that has no
    sentences, with its evidence that stands in them."""
    if not answer.sentences:
        for line in answer.text.splitlines():
            yield line.strip(), [piece for piece in answer.evidence if piece.text.strip() and piece.text in line]
    for sentence in answer.sentences:
        if sentence.state is SentenceState.VALUES_FOUND:
            tools = {citation.call_id: citation.tool for citation in sentence.citations}
            yield (
                sentence.text.strip(),
                [
                    Evidence(
                        answer.text[mark.start : mark.end], mark.call_id, tools[mark.call_id], mark.pointer, mark.value
                    )
                    for mark in sentence.marks
                    if mark.found and mark.call_id in tools
                ],
            )


def _continued(fact: CarriedFact, line: str, pieces: Sequence[Evidence]) -> CarriedFact | None:
    """The last fact with a further line of the same source behind it; None where that would be too long."""
    text = f"{fact.text} {line}"
    same = all(piece.call_id == fact.call_id for piece in pieces)
    return replace(fact, text=text) if same and len(text) <= MAX_CHARACTERS else None


def carried_on(earlier: Sequence[CarriedFact], newer: Sequence[CarriedFact]) -> tuple[CarriedFact, ...]:
    """Both, the newest last, each text once with its newest time; the oldest go where there are too many."""
    by_text = {fact.text: fact for fact in earlier}
    for fact in newer:
        by_text.pop(fact.text, None)
        by_text[fact.text] = fact
    return tuple(by_text.values())[-MOST_CARRIED:]


def _fact(text: str, pieces: Sequence[Evidence], at: str) -> CarriedFact:
    # The longest piece says most about where the line came from: "38" may stand in many places, a title in one.
    source = max(pieces, key=lambda piece: len(piece.text))
    return CarriedFact(_shortened(text, MAX_CHARACTERS), at, source.tool, source.call_id, source.pointer)


def _steers(piece: Evidence) -> bool:
    """True for a value that could steer a reader, whole even where the answer shows its beginning only."""
    return any(isinstance(said, str) and may_instruct(said, value=True) for said in (piece.value, piece.text))


def _safe_cells(table: Table, row: Sequence[str], pieces: Sequence[Evidence]) -> list[tuple[str, str]]:
    """The cells under their columns, without a place in a list, for the list is gone, and without texts that steer.
    None of them where the row lost its name with such a text: what is left would be true of nothing."""
    steering = {piece.text for piece in pieces if _steers(piece)}
    told = [
        (name, cell)
        for name, cell in zip(table.columns, row, strict=True)
        if cell.strip("- ") and not _NUMBER.fullmatch(cell.strip())
    ]
    safe = [(name, cell) for name, cell in told if cell not in steering and not may_instruct(cell, value=True)]
    named = len(safe) == len(told) or any(name in _NAMING for name, _ in safe)
    return safe if named else []


def _row_text(cells: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {cell}" if name.strip() else cell for name, cell in cells)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
