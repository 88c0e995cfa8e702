"""How much of a model's context a conversation may take (CHAT-4, CHAT-5, CHAT-18). Values only."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.agent.models import RESPONSE_TOKENS

WARNING = "Context getting long, older messages will be trimmed"

WARNING_SHARE = 0.8
MOST_OF_A_RESULT = 24_000
SMALLEST_CONTEXT = 2_048
"""Tokens below which no question fits beside rules and tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens, but for `turns`. `total` holds everything of a request: rules, tools, turns and the room for `response`.

    `tool_results` bounds the rows of all turns together, `tool_result` those of one call.
    """

    total: int = 128_000
    response: int = RESPONSE_TOKENS
    tool_results: int = 40_000
    tool_result: int = 16_000
    turns: int = 30

    def __post_init__(self) -> None:
        if self.total < SMALLEST_CONTEXT or self.turns < 1 or not 0 < self.response < self.total:
            raise ValueError("a context has at least 2,048 tokens, one turn, and room for an answer")
        if not 0 < self.tool_result <= self.tool_results <= self.total:
            raise ValueError("a tool result fits into all of them, and they fit into the context")

    @classmethod
    def of_context(cls, total: int, *, turns: int = 30) -> Budget:
        """The budget of a model whose context holds `total` tokens: the same shares, whatever its size. A result never
        gets more than MOST_OF_A_RESULT: a model reads the next page if it needs it."""
        whole = cls()
        results = int(whole.tool_results * total / whole.total)
        # A small model still needs room for an answer: an eighth of its context at most.
        return cls(
            total=total,
            response=min(whole.response, max(256, total // 8)),
            tool_results=results,
            tool_result=min(MOST_OF_A_RESULT, max(256, results * 2 // 5)),
            turns=turns,
        )

    @property
    def warning(self) -> int:
        """The tokens from which the person is warned."""
        return int((self.total - self.response) * WARNING_SHARE)
