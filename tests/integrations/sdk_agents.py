"""Runs of the OpenAI Agents SDK for the tests, with a model that says what a script says. Import it with LangChain's
folder on the path."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

from agents import Agent, ModelResponse, Runner, ToolCallOutputItem, Usage, set_tracing_disabled
from agents.models.interface import Model
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from sentinel_rag.integrations.gateway import GatewayConnection, GatewayTool
from sentinel_rag.integrations.openai_agents import function_tool, gateway_tools

set_tracing_disabled(True)  # it would send the run to OpenAI

Line = list[Any]


class ScriptedSdkModel(Model):
    """Says the next line of `script` at each turn."""

    def __init__(self, script: Sequence[Line]) -> None:
        self._left = list(script)

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=self._left.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("no test streams")


def calls(*wishes: tuple[str, dict[str, Any]]) -> Line:
    """Output that calls tools."""
    return [
        ResponseFunctionToolCall(
            type="function_call", call_id=f"c{uuid4()}", name=name, arguments=json.dumps(arguments)
        )
        for name, arguments in wishes
    ]


def says(text: str) -> Line:
    """Output that ends the run."""
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [ResponseOutputMessage(type="message", id="m", role="assistant", status="completed", content=[part])]


async def run(script: Sequence[Line], tools: Sequence[Any], context: Any = None) -> list[str]:
    """What each tool call told the model, in order, and the run's answer."""
    agent = Agent(name="Analyst", model=ScriptedSdkModel(script), tools=list(tools))
    done = await Runner.run(agent, "question", context=context)
    told = [str(item.output) for item in done.new_items if isinstance(item, ToolCallOutputItem)]
    return [*told, str(done.final_output)]


async def invoked(url: str, arguments: str) -> str:
    """What a tool of the gateway at `url` tells the model for arguments as a model wrote them."""
    async with GatewayConnection(url, "k" * 20) as connection:
        tool = function_tool(connection, GatewayTool("find", "", {"type": "object", "properties": {}}))
        context = ToolContext(context=None, tool_name="find", tool_call_id="c1", tool_arguments=arguments)
        return str(await tool.on_invoke_tool(context, arguments))


__all__ = ["calls", "gateway_tools", "invoked", "run", "says"]
