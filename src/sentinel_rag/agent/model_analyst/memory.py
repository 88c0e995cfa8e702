"""What the model-driven analyst keeps of one conversation between its questions.

A bundle of what others own: the turns a model is told (`history`), the evidence that answers may rest on, the numbered
things that can be referred to, the workspace in use. Bounded, like each of its parts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from sentinel_rag.agent.conversation import MAX_SESSIONS, Conversation
from sentinel_rag.agent.grounding import EvidenceIndex
from sentinel_rag.agent.history import Budget, History
from sentinel_rag.agent.models import Tier
from sentinel_rag.agent.references import References
from sentinel_rag.agent.tokens import TokenCounter
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Denied, ToolCall

MOST_AWAITED = 10


@dataclass(slots=True)
class Memory:
    """`places` numbers the calls of the session and knows which workspace questions go to. `awaited` are calls that a
    person may approve, by approval id. `defanged`: the provider's filter stopped rows of this conversation, so they are
    sent shortened from then on."""

    zone: ZoneInfo
    history: History
    evidence: EvidenceIndex
    references: References = field(default_factory=References)
    places: Conversation = field(default_factory=Conversation)
    awaited: OrderedDict[str, ToolCall] = field(default_factory=OrderedDict)
    last_tier: Tier | None = None
    last_failed: bool = False
    defanged: bool = False

    @property
    def zone_name(self) -> str:
        """The session's time zone by its IANA name."""
        return self.zone.key

    def note_approval(self, run: ToolRun) -> None:
        """Keep a call that waits for a person, and drop one that was made since."""
        if isinstance(run.outcome, Denied) and run.outcome.approval_id is not None:
            self.awaited[run.outcome.approval_id] = run.call
            while len(self.awaited) > MOST_AWAITED:
                self.awaited.popitem(last=False)
        elif run.worked:
            same = [
                approval_id
                for approval_id, call in self.awaited.items()
                if (call.tool_name, dict(call.arguments)) == (run.call.tool_name, dict(run.call.arguments))
            ]
            for approval_id in same:
                del self.awaited[approval_id]


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
            memory = Memory(self._zone, History(self._budget, counter), EvidenceIndex(self._zone))
            self._open[session_id] = memory
        self._open.move_to_end(session_id)
        while len(self._open) > self._limit:
            self._open.popitem(last=False)
        return memory

    def known(self, session_id: str) -> Memory | None:
        """The memory of a session that was opened before."""
        return self._open.get(session_id)

    def forget(self, session_id: str) -> None:
        """Start over; calls go on counting, so that old footnotes stay unique, and the workspace stays chosen."""
        before = self._open.pop(session_id, None)
        if before is None:
            return
        places = Conversation(calls=before.places.calls, turns=before.places.turns)
        places.requested_workspace, places.workspace = before.places.requested_workspace, before.places.workspace
        fresh = Memory(before.zone, History(before.history.budget, before.history.counter), EvidenceIndex(before.zone))
        fresh.places, fresh.references = places, before.references
        self._open[session_id] = fresh
