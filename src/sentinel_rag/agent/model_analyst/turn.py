"""One question on its way to an answer: what was asked, what has come back so far, and what is left of its bounds.

Lives as long as the question. What outlives it is in `memory`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sentinel_rag.agent.model_analyst.limits import TurnLimits
from sentinel_rag.agent.model_analyst.memory import Memory
from sentinel_rag.agent.models import (
    ModelEvent,
    ModelUsage,
    QuestionFeatures,
    RetryBudget,
    RetryScheduled,
    TierChoice,
    features_of,
)
from sentinel_rag.agent.retry import READING_TOOLS
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import Progress
from sentinel_rag.contracts.ports import ProgressListener
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolSchema


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
    _features: QuestionFeatures | None = None

    def say(self, text: str) -> None:
        """A status line for the person."""
        if self.progress is not None:
            self.progress(Progress(text, round(time.monotonic() - self.started, 3)))

    def hear(self, event: ModelEvent) -> None:
        """What a model's stream tells a waiting person. Its text is never passed on: it is not checked yet."""
        if isinstance(event, RetryScheduled):
            self.say("The model did not answer; asking it again...")

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
