"""The analyst with a model: resolve what the question points at, let the model plan, check what it wrote, answer.

Implements `contracts.ports.Analyst` over the loop, the grounding, the history and the references. It holds a gateway
and models, and no credential of a tool; what a model may do, the gateway decides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import anyio

from sentinel_rag.agent.footnote import footnote
from sentinel_rag.agent.history import Budget
from sentinel_rag.agent.model_analyst.composing import Composed, compose, drafted, states_facts
from sentinel_rag.agent.model_analyst.limits import TurnLimits
from sentinel_rag.agent.model_analyst.loop import Ended, Ending, run_loop
from sentinel_rag.agent.model_analyst.memory import Memories
from sentinel_rag.agent.model_analyst.offered import Catalogue, OfferedTools, shipped
from sentinel_rag.agent.model_analyst.requests import TieredModels
from sentinel_rag.agent.model_analyst.system_message import system_text
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.model_analyst.usage_line import usage_line, usage_record
from sentinel_rag.agent.models import AssistantMessage, PromptFilteredError, RetryBudget
from sentinel_rag.agent.offline.workspace_words import read_workspace
from sentinel_rag.agent.references import Resolution, remember, resolve, show_answer
from sentinel_rag.agent.retry import RetryOnce
from sentinel_rag.agent.tokens import load_counter, ready_counter
from sentinel_rag.contracts.conversations import CarriedFact, Remembered, Verbosity
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Clock, ProgressListener, ToolGateway

RECENT_RUNS = 8
"""Earlier calls whose things an answer may list again; what was listed or talked about is known anyway."""


class ModelAnalyst:
    """`Analyst` over a `ToolGateway` and models. `timezone` is an IANA name; one that is not known raises UsageError.

    `catalogue` tells which tools the gateway offers; without one they are the shipped ones that it names. One question
    of a session at a time; sessions do not wait for each other. `host` is the machine that the models are on, so that
    each answer tells who read its rows; empty for this one.
    """

    def __init__(
        self,
        gateway: ToolGateway,
        models: TieredModels,
        *,
        clock: Clock,
        timezone: str = "UTC",
        limits: TurnLimits | None = None,
        budget: Budget | None = None,
        catalogue: Catalogue | None = None,
        host: str = "",
    ) -> None:
        zone = _zone(timezone)
        self._gateway = RetryOnce(gateway)
        self._tools = OfferedTools(catalogue or shipped(gateway))
        self._models = models
        self._host = host
        self._clock = clock
        self._zone = zone
        self._limits = limits or TurnLimits()
        self._memories = Memories(budget or Budget(), zone)

    async def answer(
        self,
        question: str,
        *,
        session_id: str,
        progress: ProgressListener | None = None,
        workspace: str | None = None,
        timezone: str | None = None,
        verbosity: Verbosity | None = None,
    ) -> Answer:
        """One turn; never raises for a tool or a model. What `progress` hears as written since it was last withdrawn is
        the beginning of the answer's text. Cancelled at any moment, it leaves a conversation that the next
        question can go on with. Raises UsageError for a time zone that is not known."""
        started = time.monotonic()
        deadline = anyio.current_time() + self._limits.turn_s
        zone = self._zone if timezone is None else _zone(timezone)
        memory = self._memories.of(session_id, await load_counter())
        memory.zone = memory.evidence.zone = zone
        if workspace is not None:
            memory.places.request_workspace(workspace)
        memory.begin_turn()
        now = self._clock()
        resolution = resolve(question, memory.references, now=now.astimezone(zone))
        remember(question, resolution, memory.references)
        turn = Turn(
            question=question,
            asked=resolution.text,
            session_id=session_id,
            memory=memory,
            limits=self._limits,
            now=now,
            started=started,
            deadline=deadline,
            progress=progress,
            retries=RetryBudget(self._limits.retries),
            verbosity=verbosity or Verbosity.NORMAL,
        )
        if resolution.ask:
            return self._answer(turn, Composed(Outcome.CLARIFICATION, resolution.ask, resolution.ask), resolution)
        named = read_workspace(question).name
        if named is not None:
            memory.places.go_to(named)
        memory.history.begin(_with_references(resolution, question))
        memory.evidence.add_words(question)
        memory.evidence.add_words(resolution.text)
        try:
            ended = await self._within_time(turn)
            composed = compose(turn, ended)
        except BaseException:
            memory.history.abandon()
            raise
        turn.withdraw(unless=composed.text)
        self._keep(turn, ended, composed)
        return self._answer(turn, composed, resolution)

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

    async def _within_time(self, turn: Turn) -> Ended:
        """How the loop ended, within the turn's deadline."""
        try:
            with anyio.move_on_after(turn.deadline - anyio.current_time()):
                turn.offer(await self._tools.now())
                turn.system = system_text(turn.memory, turn.now, turn.verbosity)
                return await run_loop(
                    self._gateway,
                    self._models,
                    turn,
                    states_facts=lambda text: states_facts(turn, text),
                    drafting=lambda out_of_rounds: drafted(turn, out_of_rounds=out_of_rounds),
                )
        except UnavailableError as failure:
            return Ended(Ending.FAILED, failure=failure)
        return Ended(Ending.FAILED, failure=_too_slow(self._limits.turn_s))

    @staticmethod
    def _keep(turn: Turn, ended: Ended, composed: Composed) -> None:
        """What the next question may need of this one. The model's unchecked words are not among it."""
        memory = turn.memory
        if isinstance(ended.failure, PromptFilteredError):
            memory.history.discard()
        elif ended.ending is Ending.FAILED:
            memory.history.abandon()
        else:
            memory.history.add(AssistantMessage(composed.spoken))
            memory.history.end()
        if turn.tier is not None:
            memory.last_tier = turn.tier.tier
        memory.last_failed = composed.doubtful
        show_answer(memory.references, composed.text, turn.runs, earlier=memory.runs[:RECENT_RUNS])

    def _answer(self, turn: Turn, composed: Composed, resolution: Resolution) -> Answer:
        lines = list(footnote(turn.runs, now=turn.now, zone=turn.memory.zone))
        if composed.left_out > 1:  # one mark in the text may stand for several that followed each other
            left = f"{composed.left_out} sentences or cells."
            lines.append(f"Left out of the model's words, because no result supports them: {left}")
        lines += [line for line in (resolution.footnote, usage_line(turn, self._host)) if line]
        return Answer(
            outcome=composed.outcome,
            text=composed.text,
            session_id=turn.session_id,
            footnote=tuple(lines),
            tools=tuple(run.trace() for run in turn.runs),
            evidence=composed.evidence,
            duration_ms=round((time.monotonic() - turn.started) * 1e3, 3),
            model=usage_record(turn, self._host) if turn.usage.requests else None,
        )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"{name!r} is not a time zone.", next_step="Give an IANA name such as Europe/Berlin or UTC."
        ) from None


def _with_references(resolution: Resolution, question: str) -> str:
    """What the model reads of a question: ids in the place of references, and the person's own words beside them."""
    if resolution.text == question:
        return question
    return f"{resolution.text}\n\n(In the person's own words: {question}\n{resolution.named_footnote})"


def _too_slow(seconds: float) -> UnavailableError:
    return UnavailableError(
        f"This took longer than {seconds:.0f} seconds, so it was stopped.",
        next_step="Ask with a narrower time window, or raise SENTINEL_QUESTION_TIMEOUT_S.",
    )
