"""One silent second try, as a gateway around a gateway.

Only errors that say `retry_possible` are tried again, once, and only when the wait that they ask for is short. A
refusal or an argument error is final, and so is every answer to a call that may have changed something.
"""

from __future__ import annotations

import anyio

from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Failed, ToolCall, ToolOutcome
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS

READING_TOOLS = frozenset(tool.name for tool in SHIPPED_TOOLS) - WRITING_TOOLS
"""Tools that are known to change nothing. Any other is treated as one that may."""
MAX_WAIT_S = 3.0
"""A longer Retry-After is not waited for, the person decides."""


class RetryOnce:
    """Wraps a `ToolGateway`."""

    def __init__(self, gateway: ToolGateway) -> None:
        self._gateway = gateway

    async def execute(self, call: ToolCall) -> ToolOutcome:
        """`ToolGateway.execute` with at most one more try."""
        outcome = await self._gateway.execute(call)
        if call.tool_name not in READING_TOOLS or not isinstance(outcome, Failed) or not outcome.error.retry_possible:
            return outcome
        wait = outcome.error.retry_after_s or 0.0
        if wait > MAX_WAIT_S:
            return outcome
        await anyio.sleep(wait)
        return await self._gateway.execute(call)

    async def offered_tools(self) -> frozenset[str]:
        """As the gateway says; an answer without them is no failure, so nothing is tried again."""
        return await self._gateway.offered_tools()
