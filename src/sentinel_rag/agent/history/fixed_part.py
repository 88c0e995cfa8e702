"""The part of every request that is not the conversation: rules and tool schemas, counted once each."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.models import SystemMessage
from sentinel_rag.agent.tokens import TokenCounter, count_message, count_tool
from sentinel_rag.contracts.tool_calls import ToolSchema


class FixedPart:
    """Remembers the counts of the rules and the tools that it saw last."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._tools: dict[str, tuple[ToolSchema, int]] = {}
        self._rules: tuple[str, int] = ("", 0)

    def tokens(self, system: SystemMessage, tools: Sequence[ToolSchema]) -> int:
        """Tokens of both together."""
        if self._rules[0] != system.text:
            self._rules = (system.text, count_message(system, self._counter))
        return self._rules[1] + sum(map(self._of_tool, tools))

    def _of_tool(self, tool: ToolSchema) -> int:
        known = self._tools.get(tool.name)
        if known is None or known[0] is not tool:
            known = self._tools[tool.name] = (tool, count_tool(tool, self._counter))
        return known[1]
