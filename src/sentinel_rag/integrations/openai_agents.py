"""A gateway's tools for the OpenAI Agents SDK. `pip install 'sentinel-rag[openai-agents]'`; see docs/langchain.md.

agent = Agent(name="Analyst", tools=gateway_tools())
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from sentinel_rag.integrations.gateway import GatewayCall, GatewayConnection, GatewayTool, NotRun, told_to_model
from sentinel_rag.integrations.gateway.json_arguments import BadArguments, wire_arguments


def gateway_tools(
    url: str | None = None,
    api_key: str | None = None,
    *,
    gateway: GatewayConnection | None = None,
    names: Collection[str] | None = None,
    conversation_of: Callable[[Any], str] = lambda context: "",
    approval_wait_s: float = 0.0,
) -> list[FunctionTool]:
    """The tools of the gateway; without `url` and `api_key` those of SENTINEL_URL and SENTINEL_API_KEY.

    `conversation_of` names the conversation of a run by its context object: each has a gateway session of its own.
    Raises ConfigurationError or UnavailableError, with the next step.
    """
    connection = gateway or GatewayConnection(url, api_key)

    def function_tool(tool: GatewayTool) -> FunctionTool:
        async def invoke(context: ToolContext[Any], text: str) -> str:
            try:
                arguments = wire_arguments(json.loads(text or "{}"), tool.parameters)
            except (BadArguments, ValueError, AttributeError):
                return told_to_model(tool.name, NotRun("The arguments are no JSON object.", "Call again with one."))
            conversation = conversation_of(context.context)
            call = GatewayCall(
                tool.name, arguments, tool.effect, conversation=conversation, approval_wait_s=approval_wait_s
            )
            return told_to_model(tool.name, (await connection.acall(call)).answer)

        # Strict schemas know no optional parameter, so the gateway's would have to be rewritten.
        return FunctionTool(tool.name, tool.description, dict(tool.parameters), invoke, strict_json_schema=False)

    offered = (tool for tool in connection.tools() if names is None or tool.name in names)
    return [function_tool(tool) for tool in offered if tool.fits_models]
