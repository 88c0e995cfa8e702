"""One question on its way to an answer, and what the analyst with a model keeps between questions of a conversation.

A turn is what was asked, what has come back so far, and what is left of its bounds; it lives as long as the question.
What outlives it is in `Memory`, a bundle of what others own: the turns a model is told (`history`), the results that
answers may cite, the numbered things that can be referred to, the workspace in use. Bounded, like each of its parts.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import msgspec

from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import MOST_RESULTS, Result, Results
from sentinel_rag.agent.answers.results_file import read_entry
from sentinel_rag.agent.history import Budget, History
from sentinel_rag.agent.model_analyst.answer_text import Draft
from sentinel_rag.agent.models.port import (
    ModelEvent,
    ModelToolCall,
    ModelUsage,
    RetryScheduled,
    TextDelta,
    ToolCallStarted,
)
from sentinel_rag.agent.models.retrying import QuestionFeatures, RetryBudget, Tier, TierChoice, features_of
from sentinel_rag.agent.offline.conversation import MAX_SESSIONS, Places
from sentinel_rag.agent.planner import Talk
from sentinel_rag.agent.prompts import Prompt, prompt
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tokens import TokenCounter
from sentinel_rag.agent.tool_runs import READING_TOOLS, ToolRun
from sentinel_rag.contracts.conversations import CarriedFact, Remembered
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.evidence import Progress, Sentence, Written
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.ports import Clock, Question
from sentinel_rag.contracts.tool_calls import Denied, OfferedTool, ToolCall, ToolSchema

MOST_AWAITED = 10
MOST_WORDS = 60
VERSION = 1
"""Of the stored form."""
_UNREADABLE = (TypeError, KeyError, ValueError, AttributeError, msgspec.ValidationError)


@dataclass(slots=True)
class Memory:
    """`places` numbers the calls of the session and knows which workspace questions go to."""

    zone: ZoneInfo
    history: History
    results: Results = field(default_factory=Results)
    """What answers may cite."""
    runs: deque[ToolRun] = field(default_factory=lambda: deque(maxlen=MOST_RESULTS))
    """The calls behind them, oldest first."""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_WORDS))
    """What the person said and what a /clear carried on: an answer may repeat it."""
    talk: Talk = field(default_factory=Talk)
    """The numbered things that can be pointed at."""
    places: Places = field(default_factory=Places)
    awaited: OrderedDict[str, ToolCall] = field(default_factory=OrderedDict)
    """Calls that a person may approve, by approval id."""
    newest: list[str] = field(default_factory=list)
    """The approvals of the question that asked for one last."""
    asked_now: bool = False
    asked_before: bool = False
    """True if the question before this one asked for an approval."""
    last_tier: Tier | None = None
    last_failed: bool = False
    warned: bool = False
    """Whether the person was told that a row of this conversation holds a text that reads like an instruction."""
    defanged: bool = False
    """True once the provider's filter stopped rows of this conversation: from then on they are sent shortened."""
    _evidence: ReadResults | None = None

    @property
    def zone_name(self) -> str:
        """The session's time zone by its IANA name."""
        return self.zone.key

    @property
    def evidence(self) -> ReadResults:
        """What an answer is compared with. Its `update` reads results that are new."""
        if self._evidence is None or self._evidence.zone != self.zone:
            self._evidence = ReadResults(self.results, zone=self.zone, said=self.words)
        return self._evidence

    def hear(self, words: str) -> None:
        """Take up what the person said."""
        self.words.append(words)
        if self._evidence is not None:
            self._evidence.say(words)

    def carry(self, facts: Sequence[CarriedFact]) -> None:
        """Facts that a /clear left: the model is told of them, and an answer may repeat them."""
        self.history.clear([fact.line() for fact in facts])
        for fact in facts:
            self.hear(fact.text)

    def remembered(self) -> Remembered:
        """All of it in the form that is stored; results are kept with the answers that had them."""
        newest = self.history.last_turn()
        return Remembered(
            {
                "version": VERSION,
                "talk": self.talk.to_dict(),
                "places": asdict(self.places),
                "awaited": [
                    {"approval_id": approval_id, "tool": call.tool_name, "arguments": dict(call.arguments)}
                    for approval_id, call in self.awaited.items()
                ],
                "last_tier": None if self.last_tier is None else self.last_tier.value,
                "last_failed": self.last_failed,
                "defanged": self.defanged,
            },
            () if newest is None else (newest,),
        )

    def recall(self, session_id: str, remembered: Remembered) -> None:
        """Take over what was stored. A part that cannot be read is left out: the conversation goes on without it."""
        self.history.recall(remembered.turns, self.history.carried)
        for entry in remembered.results:
            with suppress(*_UNREADABLE):
                self.results.add(read_entry(entry, self.results, default_ref=""))
        state = remembered.state
        if state.get("version") != VERSION:
            return
        with suppress(*_UNREADABLE):
            # Conversations that earlier versions stored have their numbered things under another name.
            self.talk = Talk.from_dict(state.get("talk") or state["references"])  # type: ignore[arg-type]
        with suppress(*_UNREADABLE):
            self.places = msgspec.convert(state["places"], Places)
        with suppress(*_UNREADABLE):
            self.awaited = _awaited(session_id, state["awaited"])
            self.last_tier = None if state["last_tier"] is None else Tier(str(state["last_tier"]))
            self.last_failed, self.defanged = bool(state["last_failed"]), bool(state["defanged"])

    def begin_turn(self) -> None:
        """Another question begins."""
        self.asked_before, self.asked_now = self.asked_now, False

    @property
    def last_awaited(self) -> list[ToolCall]:
        """The calls that "do it now" can mean: those of the newest question that still wait, else all that do."""
        newest = [self.awaited[each] for each in self.newest if each in self.awaited]
        return newest or list(self.awaited.values())

    def note_approval(self, run: ToolRun) -> None:
        """Keep a call that waits for a person, and drop one that was made since."""
        if isinstance(run.outcome, Denied) and run.outcome.approval_id is not None:
            self.awaited[run.outcome.approval_id] = run.call
            self.newest = [*(self.newest if self.asked_now else ()), run.outcome.approval_id]
            self.asked_now = True
            while len(self.awaited) > MOST_AWAITED:
                self.awaited.popitem(last=False)
        elif run.worked:
            made = (run.call.tool_name, dict(run.call.arguments))
            for approval_id, call in list(self.awaited.items()):
                if (call.tool_name, dict(call.arguments)) == made:
                    del self.awaited[approval_id]


def _awaited(session_id: str, stored: Any) -> OrderedDict[str, ToolCall]:
    return OrderedDict(
        (str(each["approval_id"]), ToolCall("", session_id, str(each["tool"]), dict(each["arguments"])))
        for each in stored[-MOST_AWAITED:]
    )


class Memories:
    """The memory of every open session; the one that was silent longest goes first when there are too many."""

    def __init__(self, budget: Budget, zone: ZoneInfo, *, limit: int = MAX_SESSIONS) -> None:
        self._budget = budget
        self._zone = zone
        self._limit = limit
        self._open: OrderedDict[str, Memory] = OrderedDict()

    def of(self, session_id: str, counter: TokenCounter) -> Memory:
        """The memory of `session_id`, opened if it is new."""
        memory = self._open.get(session_id)
        if memory is None:
            memory = self._open[session_id] = Memory(self._zone, History(self._budget, counter))
        self._open.move_to_end(session_id)
        while len(self._open) > self._limit:
            self._open.popitem(last=False)
        return memory

    def known(self, session_id: str) -> Memory | None:
        """The memory of a session that was opened before."""
        return self._open.get(session_id)

    def forget(self, session_id: str) -> None:
        """Drop everything but the number of the next call, so that old footnotes stay unique."""
        before = self._open.pop(session_id, None)
        if before is not None:
            memory = self.of(session_id, before.history.counter)
            memory.places.calls = before.places.calls


_log = logging.getLogger(__name__)
MAX_TOOL_ROUNDS = 15
WRITING = "Writing the answer..."
ASKS_ON = "The answer goes another way; what was written so far is taken back..."


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """`turn_s` bounds the whole question, from its first word to its answer. `rounds` of tool calls are followed by one
    last request without tools. `calls_a_round` bounds the calls of one response, `calls` those of the
    question that a tool server answers;
    `faulty_rounds` are rounds in which no call could run. `retries` is the number of further tries that all requests to
    models share. `repair_rounds` are requests for the repair of an answer, its calls of `compute` included."""

    turn_s: float = 115.0
    rounds: int = MAX_TOOL_ROUNDS
    calls_a_round: int = 16
    calls: int = 160
    faulty_rounds: int = 2
    retries: int = 4
    repair_rounds: int = 3


class Ending(StrEnum):
    """How the loop ended."""

    TEXT = "text"
    CUT = "cut"
    REFUSED = "refused"
    FILTERED = "filtered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ended:
    """`text` is the model's, with its citations. `failure` is there exactly for FAILED, `filtered` names what a filter
    found. `out_of_rounds`: it was asked to answer without further calls. `written_call` names the tool of a call that
    stands in the text instead of having been made."""

    ending: Ending
    text: str = ""
    out_of_rounds: bool = False
    failure: SentinelError | None = None
    filtered: tuple[str, ...] = ()
    written_call: str = ""

    @property
    def whole(self) -> bool:
        """True for an answer in text that came to its end."""
        return self.ending is Ending.TEXT and not self.written_call


@dataclass(slots=True)
class ModelTurn:
    """`deadline` is a moment of `anyio.current_time()`, `started` one of `time.monotonic()`; `now` is when the question
    was asked, `clock` tells the time since."""

    question: Question
    memory: Memory
    limits: TurnLimits
    now: datetime
    clock: Clock
    started: float
    deadline: float
    retries: RetryBudget = field(init=False)
    rules: Prompt = field(default_factory=lambda: prompt("rules"))
    tools: tuple[ToolSchema, ...] = ()
    reading: frozenset[str] = READING_TOOLS
    """Tools that are known to change nothing. Any other is treated as one that may."""
    runs: list[ToolRun] = field(default_factory=list)
    faulty_calls: list[ModelToolCall] = field(default_factory=list)
    """Calls of the model that could not be read, each with the reason."""
    usage: ModelUsage = field(default_factory=ModelUsage)
    tier: TierChoice | None = None
    rounds: int = 0
    faulty_rounds: int = 0
    calls: int = 0
    acted: bool = False
    """True once a call that may have changed something was sent: from then on nothing is tried again."""
    shortened: bool = False
    uncounted_tokens: int = 0
    """Tokens that were counted here, of requests that came without a count."""
    warning: str = ""
    new_draft: Callable[[], Draft | None] | None = None
    """Makes what checks the text of the next answer of the model while it comes; None where it is held back."""
    draft: Draft | None = None
    written: Written = field(default_factory=Written)
    """What a person has been shown of the answer."""
    refused_tools: dict[str, str] = field(default_factory=dict)
    """Tools that the state of the session forbids, with the reason."""
    told_unread: set[frozenset[str]] = field(default_factory=set)
    """The names of what the model was told that nobody has read."""
    features: QuestionFeatures = field(init=False)
    """What the rule of tiers, and the notices of an answer, read of the question."""

    def __post_init__(self) -> None:
        self.features = features_of(self.question.text)
        self.retries = RetryBudget(self.limits.retries)

    def say(self, text: str) -> None:
        """A status line for the person."""
        if self.question.progress is not None:
            self.question.progress(Progress(text, round(time.monotonic() - self.started, 3)))

    def begin_text(self) -> None:
        """A model is about to be asked: what it writes is another text than what was shown before."""
        self.withdraw()
        self.draft = None if self.question.progress is None or self.new_draft is None else self.new_draft()

    def hear(self, event: ModelEvent) -> None:
        """What a model's stream tells a waiting person. Of its text only what is checked is passed on."""
        match event:
            case RetryScheduled(code="model_loading"):
                self.say("The model server is still loading its model...")
            case RetryScheduled():
                self.say("The model did not answer; asking it again...")
            case TextDelta(text=text) if self.draft is not None:
                try:
                    written, sentences = self.draft.add(text)
                except Exception:  # the check of the whole answer meets the same, and says so to the person
                    _log.exception("an answer could not be checked while it came")
                    self.draft = None
                    return
                if written or sentences:
                    self._show(Progress(WRITING, written=written, sentences=sentences))
            case ToolCallStarted():
                self.draft = None
                self.withdraw()

    def withdraw(self) -> None:
        """Take back what was shown of an answer."""
        if self.written.text:
            self._show(Progress(ASKS_ON, withdrawn=True))

    def rewrite(self, text: str, sentences: tuple[Sentence, ...]) -> None:
        """Put the answer in the place of what was shown of it, if it is not the end of that."""
        if self.written.text and self.written.rest_of(text) is None:
            self._show(Progress(WRITING, written=text, withdrawn=True, sentences=sentences))

    @property
    def time_left_share(self) -> float:
        """The part of the question's time that is left, from 0 to 1."""
        return max(0.0, self.deadline - anyio.current_time()) / self.limits.turn_s

    def _show(self, progress: Progress) -> None:
        self.written.hear(progress)
        if self.question.progress is not None:
            self.question.progress(replace(progress, elapsed_s=round(time.monotonic() - self.started, 3)))

    def offer(self, tools: Sequence[OfferedTool], own: Sequence[ToolSchema] = ()) -> None:
        """Take over what the gateway offers for this question, and the agent's own tools."""
        self.tools = (*(tool.schema for tool in tools), *own)
        self.refused_tools = {tool.schema.name: tool.refused_now for tool in tools if tool.refused_now}
        reading = {tool.schema.name for tool in tools if tool.reads}
        self.reading = READING_TOOLS | reading | {tool.name for tool in own}

    def add_run(self, run: ToolRun, result: Result | None = None) -> None:
        """Keep a call with its numbered result, which the answer may cite."""
        self.runs.append(run)
        self.memory.runs.append(run)
        if result is not None:
            self.memory.results.add(result)

    def begin_acting(self) -> None:
        """A call that may change something is about to be sent."""
        self.acted = True
        self.retries.left = 0

    def usage_line(self, host: str) -> str:
        """The footnote's line about the model: which one and why, tokens, cost, time, and the version of its rules;
        empty if no model was asked. `host` is where question and rows were sent; empty for this machine."""
        usage = self.usage
        if not usage.requests or self.tier is None:
            return ""
        requests = f"{usage.requests} request{'' if usage.requests == 1 else 's'}"
        where = f" at {plain(host)}" if host else ""
        parts = [f"model {plain(', '.join(usage.models))}{where} ({self.tier.reason.value})", requests, self._tokens()]
        if usage.unpriced < usage.requests:
            parts.append(f"cost {usage.cost:.4f} USD{' and more' if usage.unpriced else ''}")
        return " · ".join([*parts, f"{usage.seconds:.1f} s", f"prompt {self.rules.label}"])

    def usage_record(self, host: str) -> JsonObject | None:
        """The same for `--json`, with every figure."""
        if not self.usage.requests:
            return None
        return {
            **self.usage.to_dict(),
            "sent_to": host or "this machine",
            "tier": None if self.tier is None else self.tier.tier.value,
            "tier_reason": None if self.tier is None else self.tier.reason.value,
            "estimated_tokens": self.uncounted_tokens,
            "tool_rounds": self.rounds,
            "prompt": self.rules.label,
            "rows_defanged": self.memory.defanged,
        }

    def _tokens(self) -> str:
        tokens = self.usage.tokens
        counted = f"{tokens.input} + {tokens.output} tokens"
        if not self.uncounted_tokens:
            return counted if tokens.input or tokens.output else "no tokens counted"
        estimate = f"about {self.uncounted_tokens} tokens, counted here"
        return estimate if self.usage.uncounted == self.usage.requests else f"{counted} and {estimate}"
