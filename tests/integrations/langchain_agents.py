"""Agents for the tests, with a model that says what a script says. Import it with LangChain's folder on the path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from sentinel_rag.integrations.langchain import (
    GatewayToolkit,
    SecurityBlockException,
    SentinelSecureTool,
    aload_gateway_tools,
    load_gateway_tools,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # moved to langchain.agents, and still what many people have
    from langgraph.prebuilt import create_react_agent

Line = AIMessage | Callable[[list[BaseMessage]], AIMessage]


class ScriptedChatModel(BaseChatModel):
    """Says the next line of `script` at each turn; a line may be a function of the messages so far."""

    script: list[Any]
    tools: list[dict[str, Any]] = Field(default_factory=list)
    read: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedChatModel:
        self.tools[:] = [convert_to_openai_tool(tool) for tool in tools]
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.read.append(list(messages))
        line = self.script[len(self.read) - 1]
        said = line(messages) if callable(line) else line
        return ChatResult(generations=[ChatGeneration(message=said)])


def calls(*wishes: tuple[str, dict[str, Any]]) -> AIMessage:
    """A message that calls tools."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{uuid4()}"} for name, args in wishes])


def says(text: str) -> AIMessage:
    return AIMessage(text)


def made(kind: str, model: ScriptedChatModel, tools: Sequence[Any]) -> Any:
    """An agent of LangChain 1 (`create_agent`) or of LangGraph (`create_react_agent`), which keeps its threads."""
    if kind == "create_agent":
        return create_agent(model, list(tools), checkpointer=InMemorySaver())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_react_agent(model, list(tools), checkpointer=InMemorySaver())


def asked(agent: Any, question: str, thread: str = "t-1") -> list[BaseMessage]:
    state = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": thread}})
    messages: list[BaseMessage] = state["messages"]
    return messages


async def awaited(agent: Any, question: str, thread: str = "t-1") -> list[BaseMessage]:
    state = await agent.ainvoke({"messages": [("user", question)]}, {"configurable": {"thread_id": thread}})
    messages: list[BaseMessage] = state["messages"]
    return messages


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


__all__ = [
    "AIMessage",
    "BaseCallbackHandler",
    "GatewayToolkit",
    "ScriptedChatModel",
    "SecurityBlockException",
    "SentinelSecureTool",
    "ToolException",
    "aload_gateway_tools",
    "asked",
    "awaited",
    "calls",
    "load_gateway_tools",
    "made",
    "results",
    "says",
]
