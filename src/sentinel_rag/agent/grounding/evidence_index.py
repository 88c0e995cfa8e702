"""All that the answers of one conversation may rest on: results of tools, and the person's own words.

Grows turn by turn and stays bounded: the oldest results leave first. Reads values; judges nothing.
"""

from __future__ import annotations

from collections import deque
from datetime import tzinfo

from sentinel_rag.agent.tool_runs import ToolRun

MOST_RUNS = 64
MOST_WORDS = 100_000
"""Characters of the person's words that are kept."""


class EvidenceIndex:
    """Evidence of one conversation; `zone` is the session's time zone, in which times without one are read."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._runs: deque[ToolRun] = deque(maxlen=MOST_RUNS)
        self._words: deque[str] = deque()

    def add(self, run: ToolRun) -> None:
        """Take in the outcome of one call; one without a result adds its arguments only."""
        self._runs.append(run)

    def add_words(self, text: str) -> None:
        """Take in what the person said."""
        self._words.append(text)
        while sum(map(len, self._words)) > MOST_WORDS and len(self._words) > 1:
            self._words.popleft()

    @property
    def runs(self) -> tuple[ToolRun, ...]:
        """The runs that are kept, oldest first."""
        return tuple(self._runs)

    @property
    def words(self) -> str:
        """What the person said, oldest first."""
        return "\n".join(self._words)
