"""What the model-driven analyst keeps of one conversation between its questions.

A bundle of what others own: the turns a model is told (`history`), the results that answers may cite, the numbered
things that can be referred to, the workspace in use. Bounded, like each of its parts.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import MOST_RESULTS, Results
from sentinel_rag.agent.answers.results_file import read_entry
from sentinel_rag.agent.history import Budget, History
from sentinel_rag.agent.models.tiers import Tier
from sentinel_rag.agent.offline.conversation import MAX_SESSIONS, Places
from sentinel_rag.agent.planner import Talk
from sentinel_rag.agent.tokens import TokenCounter
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.conversations import CarriedFact, Remembered
from sentinel_rag.contracts.tool_calls import Denied, ToolCall

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
