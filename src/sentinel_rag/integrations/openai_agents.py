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
from sentinel_rag.integrations.gateway.calls import BadArguments, chosen, wire_arguments


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
    return [
        function_tool(connection, tool, conversation_of, approval_wait_s) for tool in chosen(connection.tools(), names)
    ]


def function_tool(
    connection: GatewayConnection,
    tool: GatewayTool,
    conversation_of: Callable[[Any], str] = lambda context: "",
    approval_wait_s: float = 0.0,
) -> FunctionTool:
    """One tool of the gateway. It raises nothing: the model is told of a block and of every failure as a text."""

    async def invoke(context: ToolContext[Any], text: str) -> str:
        try:
            given = json.loads(text or "{}")
            if not isinstance(given, dict):
                raise BadArguments("The arguments are no JSON object.")
            arguments = wire_arguments(given, tool.parameters)
        except BadArguments as fault:
            return told_to_model(tool.name, NotRun(str(fault), "Call again with other arguments."))
        except (ValueError, RecursionError):
            return told_to_model(tool.name, NotRun("The arguments are no JSON.", "Call again with a JSON object."))
        called = await connection.acall(
            GatewayCall(
                tool.name,
                arguments,
                tool.effect,
                conversation=conversation_of(context.context),
                approval_wait_s=approval_wait_s,
            )
        )
        return told_to_model(tool.name, called.answer)

    # Strict schemas know no optional parameter, so the gateway's would have to be rewritten.
    return FunctionTool(tool.name, tool.description, dict(tool.parameters), invoke, strict_json_schema=False)
