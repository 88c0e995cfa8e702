"""The analyst with a model: let the model plan and write, compare what it wrote with what it cites, answer.

Implements `contracts.ports.Analyst` over the loop, the check, the history and the references. It holds a gateway and
models, and no credential of a tool; what a model may do, the gateway decides. Nothing stands between the person's words
and the model but hints.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import anyio
import anyio.to_thread

from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.answers.results_file import kept_form
from sentinel_rag.agent.history import Budget
from sentinel_rag.agent.model_analyst.composing import ComposedAnswer, compose, uncheckable
from sentinel_rag.agent.model_analyst.first_look import DOSSIER, first_look
from sentinel_rag.agent.model_analyst.loop import TieredModels, checked, run_loop
from sentinel_rag.agent.model_analyst.tools import Catalogue, fixed_part, offered_now
from sentinel_rag.agent.model_analyst.turn import Ended, Ending, Memories, ModelTurn, TurnLimits
from sentinel_rag.agent.models.failures import PromptFilteredError
from sentinel_rag.agent.models.port import AssistantMessage
from sentinel_rag.agent.offline.workspaces import read_workspace
from sentinel_rag.agent.planner.binding import pointed_at, read
from sentinel_rag.agent.planner.context import Pointed
from sentinel_rag.agent.row_text import show_age, zone_named
from sentinel_rag.agent.things import (
    ALERT,
    INCIDENT,
    asked_about,
    numbered_lists,
    shown_words,
    things_of,
    told_in,
    words_for,
)
from sentinel_rag.agent.tokens import load_counter, ready_counter
from sentinel_rag.agent.tool_runs import RetryOnce, changed_something, footnote
from sentinel_rag.contracts.conversations import CarriedFact, Remembered, Verbosity
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Clock, Question, ToolGateway
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

NO_TOOL = "no tool was asked for this answer"
RECENT_RUNS = 8
"""Earlier calls whose things an answer may list again; what was listed or talked about is known anyway."""
MOST_AT_HAND = 20
_AT_HAND = "they may have changed since; read_rows shows the rows of any, and any can be cited"
AWAITED = "Calls that wait for a person's approval; if the person asks for one again, make exactly this call:"
_LENGTH = {
    Verbosity.SHORT: "The person wants short answers: the facts that were asked for, and nothing else.",
    Verbosity.FULL: "The person wants full answers: also the fields beside those that were asked for.",
}


class ModelAnalyst:
    """`Analyst` over a `ToolGateway` and models. `timezone` is an IANA name; one that is not known raises UsageError.

    `catalogue` tells which tools the gateway offers. One question of a session at a time; sessions do not wait for each
    other. `host` is the machine that the models are on, so that each answer tells who read its rows; empty for this
    one.
    """

    def __init__(
        self,
        gateway: ToolGateway,
        models: TieredModels,
        *,
        catalogue: Catalogue,
        clock: Clock,
        timezone: str = "UTC",
        limits: TurnLimits | None = None,
        budget: Budget | None = None,
        host: str = "",
    ) -> None:
        zone = zone_named(timezone)
        self._gateway = RetryOnce(gateway)
        self._catalogue = catalogue
        self._models = models
        self._host = host
        self._clock = clock
        self._zone = zone
        self._limits = limits or TurnLimits()
        self._memories = Memories(budget or Budget(), zone)

    async def answer(self, question: Question) -> Answer:
        """One turn; never raises for a tool or a model. What `progress` hears as written since it was last withdrawn is
        the beginning of the answer's text. Cancelled at any moment, it leaves a conversation that the next
        question can go on with. Raises UsageError for a time zone that is not known."""
        started = time.monotonic()
        deadline = anyio.current_time() + self._limits.turn_s
        chosen = question.preferences
        zone = self._zone if chosen.timezone is None else zone_named(chosen.timezone)
        memory = self._memories.of(question.session_id, await load_counter())
        memory.zone = zone
        if chosen.workspace is not None:
            memory.places.request_workspace(chosen.workspace)
        memory.begin_turn()
        now = self._clock()
        reader = Reader(lambda text: read_time_in_its_zone(text, Now(now, zone)))
        frame = read(memory.talk, reader, question.text)
        hints = pointed_at(memory.talk, frame, now)
        pointed = tuple(each for each in hints if _is_pointed_at(each.said, question.text))
        memory.talk.begin_turn()
        memory.talk.pointed = pointed
        named = read_workspace(question.text).name
        if named is not None:
            memory.places.go_to(named)
        memory.hear(question.text)
        turn = ModelTurn(question, memory, self._limits, now, self._clock, started, deadline)
        try:
            ended = await self._within_time(turn, frame, pointed)
            found = await checked(turn, ended.text)
            composed = uncheckable() if found is None else compose(turn, ended, found)
        except BaseException:
            memory.history.end()
            raise
        turn.rewrite(composed.text, composed.sentences)
        self._keep(turn, ended, composed)
        return self._answer(turn, composed)

    def clear(self, session_id: str, carried: Sequence[CarriedFact]) -> None:
        """Drop what was said, but for `carried`. Numbers on the screen keep their meaning."""
        self._memories.of(session_id, ready_counter()).carry(carried)

    def forget(self, session_id: str) -> None:
        """Drop the conversation."""
        self._memories.forget(session_id)

    def remembered(self, session_id: str) -> Remembered | None:
        """The conversation's memory after its newest turn; None for one that is not known here."""
        memory = self._memories.known(session_id)
        return None if memory is None else memory.remembered()

    def recall(self, session_id: str, remembered: Remembered) -> None:
        """Take over the memory of a conversation that was stored."""
        self._memories.of(session_id, ready_counter()).recall(session_id, remembered)

    async def _within_time(self, turn: ModelTurn, frame: Frame, pointed: Sequence[Pointed]) -> Ended:
        """How the loop ended, within the turn's deadline."""
        try:
            with anyio.move_on_after(turn.deadline - anyio.current_time()):
                offered = await offered_now(self._catalogue, turn.question.session_id)
                turn.rules, own = fixed_part(turn.memory.history.budget.total)
                turn.offer(offered, own)
                turn.memory.history.begin(_question_text(turn, pointed))
                # Results of before a restart are read for the first time here: off the event loop.
                await anyio.to_thread.run_sync(lambda: turn.memory.evidence)
                await first_look(self._gateway, turn, frame)
                return await run_loop(self._gateway, self._models, turn)
        except UnavailableError as failure:
            return Ended(Ending.FAILED, failure=failure)
        too_slow = UnavailableError(
            f"This took longer than {self._limits.turn_s:.0f} seconds, so it was stopped.",
            next_step="Ask with a narrower time window, or raise SENTINEL_QUESTION_TIMEOUT_S.",
        )
        return Ended(Ending.FAILED, failure=too_slow)

    @staticmethod
    def _keep(turn: ModelTurn, ended: Ended, composed: ComposedAnswer) -> None:
        """What the next question may need of this one. The model's unchecked words are not among it."""
        memory = turn.memory
        if isinstance(ended.failure, PromptFilteredError):
            memory.history.discard()
        elif ended.ending is not Ending.FAILED:
            memory.history.add(AssistantMessage(composed.spoken))
        memory.history.end()
        if turn.tier is not None:
            memory.last_tier = turn.tier.tier
        memory.last_failed = composed.doubtful
        _listen(turn, composed.text)

    def _answer(self, turn: ModelTurn, composed: ComposedAnswer) -> Answer:
        calls = footnote(turn.runs, now=turn.now, zone=turn.memory.zone) or (NO_TOOL,)
        lines = [turn.memory.talk.footnote, *calls, turn.usage_line(self._host)]
        return Answer(
            outcome=composed.outcome,
            text=composed.text,
            session_id=turn.question.session_id,
            footnote=tuple(line for line in lines if line),
            tools=tuple(run.trace() for run in turn.runs),
            evidence=composed.evidence,
            sentences=composed.sentences,
            duration_ms=round((time.monotonic() - turn.started) * 1e3, 3),
            model=turn.usage_record(self._host),
            results=tuple(
                kept_form(run, writes=changed_something(run, turn.reading), read_at=turn.now) for run in turn.runs
            ),
        )


def _listen(turn: ModelTurn, text: str) -> None:
    """Register what a model's final answer lists and names; earlier calls of the conversation lend their ids too."""
    talk, runs = turn.memory.talk, turn.runs
    talk.learn(told_in(runs, text), asked_about(runs))
    known = [each.item for each in (*talk.spoken, *talk.told)]
    known += [item for shown in talk.lists for item in shown.items if item.value]
    known += things_of((*runs, *[*turn.memory.runs][::-1][:RECENT_RUNS]))
    for items in numbered_lists(text, tuple({item.key: item for item in known}.values())):
        talk.show(items)
        if len(items) == 1 and items[0].kind in (INCIDENT, ALERT):
            talk.speak_of(items[0])


def _question_text(turn: ModelTurn, pointed: Sequence[Pointed]) -> str:
    """The person's question, and behind it the context that it is asked in."""
    zone, utc, place = turn.memory.zone_name, turn.now.astimezone(UTC), turn.memory.places.workspace
    now = f"It is {utc:%A %Y-%m-%d %H:%M} UTC."
    if zone != "UTC":
        local = turn.now.astimezone(turn.memory.zone)
        now = f"{now[:-1]}, {local:%A %H:%M} in {zone}, the zone in which the person speaks of days."
    lines = [now, _LENGTH.get(turn.question.preferences.verbosity or Verbosity.NORMAL, "")]
    if place == ALL_WORKSPACES:
        lines.append('Questions go to every workspace: `workspace: "all"` where a tool takes it.')
    elif place:
        lines.append(f"Questions go to the workspace {_safe(place)}.")
    # A name out of rows that is not plainly a name has no place beside the person's words.
    named = [each for each in pointed if all(words_for(item) is not None for item in each.items)]
    if named:
        told = "; ".join(f"“{each.said}” = {', '.join(map(shown_words, each.items))}" for each in named)
        lines.append(f"What the person's words may point at: {_safe(told)}")
    # What was computed or failed would push out the results that it rests on.
    usable = [each for each in turn.memory.results if not each.computed and not each.problem]
    # The cases that the conversation is about stay, however many look-ups came after them.
    cases = [each for each in usable[:-MOST_AT_HAND] if each.tool == DOSSIER][-MOST_AT_HAND:]
    at_hand = [*cases, *usable[-MOST_AT_HAND:]]
    if at_hand:
        told = "; ".join(_at_hand(turn, each) for each in at_hand)
        lines.append(f"Results at hand ({_AT_HAND}): {told}")
    lines += [f"Not possible in this conversation: {name} ({_safe(why)})" for name, why in turn.refused_tools.items()]
    if turn.memory.awaited:
        lines.append(AWAITED)
        lines += [f"- {call.tool_name} {_arguments(call.arguments)}" for call in turn.memory.awaited.values()]
    context = "\n".join(line for line in lines if line)
    return f"{turn.question.text}\n\n<context>\n{context}\n</context>"


def _is_pointed_at(said: str, text: str) -> bool:
    """True for a number or words side by side ("[2]", "the third one"): pronouns a model reads better itself."""
    return any(character.isdigit() for character in said) or (" " in said.strip() and said in text)


def _at_hand(turn: ModelTurn, result: Result) -> str:
    age = "" if result.read_at is None else f", {show_age(turn.now - result.read_at)} ago"
    return f"{result.ref} {result.tool} {_arguments(result.arguments)[:160]} ({len(result.rows)} rows{age})"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return _safe(json.dumps(dict(arguments), ensure_ascii=False, separators=(",", ":"), default=str))


def _safe(text: str) -> str:
    """Data in one line that cannot end the block it stands in."""
    return " ".join(text.split()).replace("<", "\\u003c")
