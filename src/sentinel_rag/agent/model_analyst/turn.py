"""One question on its way to an answer: what was asked, what has come back so far, and what is left of its bounds.

Lives as long as the question. What outlives it is in `memory`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sentinel_rag.agent.model_analyst.draft import Draft
from sentinel_rag.agent.model_analyst.limits import TurnLimits
from sentinel_rag.agent.model_analyst.memory import Memory
from sentinel_rag.agent.models import (
    ModelEvent,
    ModelUsage,
    QuestionFeatures,
    RefusalDelta,
    RetryBudget,
    RetryScheduled,
    TextDelta,
    TierChoice,
    ToolCallStarted,
    features_of,
)
from sentinel_rag.agent.retry import READING_TOOLS
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import Progress, Written
from sentinel_rag.contracts.ports import ProgressListener
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolSchema

WRITING = "Writing the answer..."
ASKS_ON = "The answer goes another way; what was written so far is taken back..."


@dataclass(slots=True)
class Turn:
    """`question` is the person's own text, `asked` what the model reads of it. `deadline` is a moment of
    `anyio.current_time()`, `started` one of `time.monotonic()`."""

    question: str
    asked: str
    session_id: str
    memory: Memory
    limits: TurnLimits
    now: datetime
    started: float
    deadline: float
    progress: ProgressListener | None
    retries: RetryBudget
    verbosity: Verbosity = Verbosity.NORMAL
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    reading: frozenset[str] = READING_TOOLS
    """Tools that are known to change nothing. Any other is treated as one that may."""
    runs: list[ToolRun] = field(default_factory=list)
    usage: ModelUsage = field(default_factory=ModelUsage)
    tier: TierChoice | None = None
    rounds: int = 0
    faulty_rounds: int = 0
    calls: int = 0
    acted: bool = False
    """True once a call that may have changed something was sent: from then on nothing is tried again."""
    defanged: bool = False
    shortened: bool = False
    uncounted_tokens: int = 0
    """Tokens that were counted here, of requests that came without a count."""
    warning: str = ""
    new_draft: Callable[[], Draft | None] | None = None
    """Makes what checks the text of the next answer of the model while it comes; None where it is held back."""
    draft: Draft | None = None
    written: Written = field(default_factory=Written)
    """What a person has been shown of the answer."""
    _features: QuestionFeatures | None = None

    def say(self, text: str) -> None:
        """A status line for the person."""
        if self.progress is not None:
            self.progress(Progress(text, round(time.monotonic() - self.started, 3)))

    def begin_text(self) -> None:
        """A model is about to be asked: what it writes is another text than what was shown before."""
        self.withdraw()
        self.draft = None if self.progress is None or self.new_draft is None else self.new_draft()

    def hear(self, event: ModelEvent) -> None:
        """What a model's stream tells a waiting person. Of its text only what is checked is passed on."""
        match event:
            case RetryScheduled():
                self.say("The model did not answer; asking it again...")
            case TextDelta(text=text) | RefusalDelta(text=text) if self.draft is not None:
                self._write(self.draft.add(text))
            case ToolCallStarted():
                self.draft = None
                self.withdraw()

    def withdraw(self, *, unless: str | None = None) -> None:
        """Take back what was shown of an answer; not if it is the beginning of the answer `unless`."""
        if self.written.text and (unless is None or self.written.rest_of(unless) is None):
            self._tell(Progress(ASKS_ON, withdrawn=True))

    def _write(self, more: str) -> None:
        if more:
            self._tell(Progress(WRITING, written=more))

    def _tell(self, progress: Progress) -> None:
        self.written.hear(progress)
        if self.progress is not None:
            self.progress(replace(progress, elapsed_s=round(time.monotonic() - self.started, 3)))

    def offer(self, tools: Sequence[OfferedTool]) -> None:
        """Take over what the gateway offers for this question."""
        self.tools = tuple(tool.schema for tool in tools)
        self.reading = READING_TOOLS | {tool.schema.name for tool in tools if tool.reads}

    def begin_acting(self) -> None:
        """A call that may change something is about to be sent."""
        self.acted = True
        self.retries.left = 0

    @property
    def features(self) -> QuestionFeatures:
        """What the rule of tiers, and the notices of an answer, read of the question; read once."""
        if self._features is None:
            self._features = features_of(self.question)
        return self._features
