"""The tools that a model is told of: those that the gateway offers, as the schemas that this product ships."""

from __future__ import annotations

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema


async def offered_schemas(gateway: ToolGateway) -> tuple[ToolSchema, ...]:
    """In a fixed order, so that providers can keep the request's beginning cached. Raises UnavailableError if the
    gateway offers none: a model without tools could only make things up."""
    offered = await gateway.offered_tools()
    schemas = tuple(tool for tool in SHIPPED_TOOLS if tool.name in offered)
    if not schemas:
        raise UnavailableError(
            "The gateway offers no tool that this agent knows, or cannot be reached, so no question can be answered.",
            next_step="Run `sentinel status`; if it runs, check which tools the policy allows.",
        )
    return schemas
