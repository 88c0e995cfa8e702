"""The tools that a model is told of: what the gateway offers, other makers' tools too, and which of them only read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sentinel_rag.agent.answers.compute import COMPUTE
from sentinel_rag.agent.answers.view import READ_ROWS
from sentinel_rag.agent.models.small_profile import SMALL_CONTEXT_TOKENS
from sentinel_rag.agent.prompts import Prompt, prompt
from sentinel_rag.agent.retry import READING_TOOLS
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolSchema

Catalogue = Callable[[str], Awaitable[Sequence[OfferedTool]]]
"""The tools that are offered to a session, by its id."""
OWN_TOOLS = (COMPUTE, READ_ROWS)
"""Tools of the agent itself."""
MOST_TOOLS = 100
"""A request with more is refused by some providers (128), and no model chooses well among so many."""


def fixed_part(context_tokens: int) -> tuple[Prompt, tuple[ToolSchema, ...]]:
    """The rules, and the agent's own tools, that a model of that context is told of."""
    if context_tokens < SMALL_CONTEXT_TOKENS:
        return prompt("rules_small"), (READ_ROWS,)
    return prompt("rules"), OWN_TOOLS


def shipped(gateway: ToolGateway) -> Catalogue:
    """The catalogue of a gateway that tells names alone: the schemas that this product ships."""

    async def offered(_: str) -> Sequence[OfferedTool]:
        names = await gateway.offered_tools()
        return [OfferedTool(tool, tool.name in READING_TOOLS) for tool in SHIPPED_TOOLS if tool.name in names]

    return offered


class OfferedTools:
    """What a catalogue offers, question by question."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[str, OfferedTool] = {}

    async def now(self, session_id: str) -> tuple[OfferedTool, ...]:
        """In the order of the catalogue, so that providers can keep the beginning of a request cached. A tool that did
        not change is the same object as before, so that it is not counted again.

        Raises UnavailableError if there is none: a model without tools could only make things up.
        """
        tools = tuple(await self._catalogue(session_id))[:MOST_TOOLS]
        if not tools:
            raise UnavailableError(
                "The gateway offers no tool, or cannot be reached, so no question can be answered.",
                next_step="Run `sentinel status`; if it runs, check which tools the policy allows.",
            )
        before = self._known
        self._known = {tool.schema.name: tool for tool in tools}
        self._known |= {name: before[name] for name, tool in self._known.items() if before.get(name) == tool}
        return tuple(self._known.values())
