"""A gateway's tools for LangChain and LangGraph agents. `pip install 'sentinel-rag[langchain]'`; see docs/langchain.md.

tools = load_gateway_tools()              # SENTINEL_URL, SENTINEL_API_KEY
agent = create_agent(model, tools)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, BaseToolkit, ToolException
from pydantic import ConfigDict, Field

from sentinel_rag.contracts.handles import quoted_in
from sentinel_rag.integrations.gateway import (
    Blocked,
    Called,
    GatewayCall,
    GatewayConnection,
    GatewayTool,
    NotRun,
    Ran,
    told_to_model,
)
from sentinel_rag.integrations.gateway.answers import MAX_CHARACTERS, block_message, block_step
from sentinel_rag.integrations.gateway.calls import BadArguments, arguments_of_text, chosen, wire_arguments

__all__ = [
    "GatewayToolkit",
    "SecurityBlockException",
    "SentinelSecureTool",
    "aload_gateway_tools",
    "load_gateway_tools",
]


class SecurityBlockException(ToolException):
    """The gateway answered 403. `str()` is the source template's sentence: message, then `Reason:` and `reason`.

    `block` is the gateway's whole word: reason code, rule, audit id and, where a person may allow the call, the
    approval's id.
    """

    def __init__(self, message: str, tool_name: str, reason: str, block: Blocked | None = None) -> None:
        super().__init__(f"{message} Reason: {reason}")
        self.message = message
        self.tool_name = tool_name
        self.reason = reason
        self.block = block or Blocked(reason, "")

    @classmethod
    def of(cls, tool_name: str, block: Blocked) -> SecurityBlockException:
        return cls(block_message(tool_name), tool_name, block.detail, block)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.tool_name, self.reason, self.block)


def told_block(error: ToolException) -> str:
    """What an agent is told of a tool's exception: for a block the sentence and what to do about it."""
    return f"{error} {block_step(error.block)}" if isinstance(error, SecurityBlockException) else str(error)


Told = tuple[str, dict[str, Any]]
"""What the model reads, and the artifact: `status`, `result` as the gateway sent it, `audit_id`, `session_id`,
`context` (the session's label after the call) and `quoted` (JSON pointers to texts that others wrote)."""


class SentinelSecureTool(BaseTool):
    """One tool of a gateway. `load_gateway_tools()` makes them; by hand a name and a description are enough.

    `effect` is what the policy says the tool does (read, write, external): only what reads is ever sent twice.
    `session_id` fixes the gateway's session, for one run `configurable["sentinel_session_id"]` does; without either
    each conversation (LangGraph's `thread_id`) has one of its own.
    A call that a person has to allow is told to the model at once, or waited for `approval_wait_s` seconds.
    """

    args_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    gateway: GatewayConnection = Field(default_factory=GatewayConnection, exclude=True)
    effect: str = "external"
    session_id: str | None = None
    approval_wait_s: float = 0.0
    max_characters: int = MAX_CHARACTERS
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = told_block

    # The config's name is one that no tool gives to a parameter: LangChain would put it in the parameter's place.
    def _run(self, /, *args: Any, langchain_config_of_run: RunnableConfig = None, **kwargs: Any) -> Told:
        """Send the call. Raises SecurityBlockException for a 403; every other failure is a text."""
        try:
            called = self.gateway.call(self._call(args, kwargs, langchain_config_of_run))
        except Exception as fault:
            called = _not_sent(fault)
        return self._told(called)

    async def _arun(self, /, *args: Any, langchain_config_of_run: RunnableConfig = None, **kwargs: Any) -> Told:
        """`_run` without blocking the event loop."""
        try:
            called = await self.gateway.acall(self._call(args, kwargs, langchain_config_of_run))
        except Exception as fault:
            called = _not_sent(fault)
        return self._told(called)

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> str | dict[str, Any]:
        return tool_input  # the gateway judges arguments, by the schema that the model was told

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], config: RunnableConfig | None) -> GatewayCall:
        given = kwargs
        if args:
            if len(args) > 1 or kwargs or not isinstance(args[0], str | dict):
                raise BadArguments("This tool takes named arguments.")
            given = args[0] if isinstance(args[0], dict) else arguments_of_text(args[0], self.args_schema)
        configurable = (config or {}).get("configurable") or {}
        session_id = configurable.get("sentinel_session_id")
        return GatewayCall(
            tool_name=self.name,
            arguments=wire_arguments(given, self.args_schema),
            effect=self.effect,
            conversation=str(configurable.get("thread_id") or ""),
            session_id=self.session_id if session_id is None else str(session_id),
            approval_wait_s=self.approval_wait_s,
            wants_context=True,
        )

    def _told(self, called: Called) -> Told:
        answer = called.answer
        if isinstance(answer, Blocked):
            raise SecurityBlockException.of(self.name, answer)
        text = told_to_model(self.name, answer, max_characters=self.max_characters)
        artifact: dict[str, Any] = {
            "status": "success" if isinstance(answer, Ran) else "error",
            "audit_id": answer.audit_id,
            "session_id": called.session_id,
            "context": None if called.context is None else dict(called.context),
        }
        if isinstance(answer, Ran):
            return text, {**artifact, "result": answer.result, "quoted": list(quoted_in(answer.result))}
        return text, {**artifact, "reason": answer.reason, "may_have_run": answer.may_have_run}


def _not_sent(fault: Exception) -> Called:
    if isinstance(fault, BadArguments):
        return Called(NotRun(str(fault), "Call again with other arguments."))
    return Called(NotRun(f"The tool failed before an answer came ({type(fault).__name__}).", may_have_run=True))


class GatewayToolkit(BaseToolkit):
    """The tools that a key may call now. `names` keeps only these. The other fields are those of each tool.

    What is offered may change while an agent runs (policy, servers, pins): `get_tools` asks anew each time, and a call
    of a tool that is no longer offered is blocked by the gateway.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    gateway: GatewayConnection = Field(default_factory=GatewayConnection, exclude=True)
    names: frozenset[str] | None = None
    session_id: str | None = None
    approval_wait_s: float = 0.0
    max_characters: int = MAX_CHARACTERS

    def get_tools(self) -> list[BaseTool]:
        """Raises ConfigurationError or UnavailableError, with the next step."""
        return self._made(self.gateway.tools())

    async def aget_tools(self) -> list[BaseTool]:
        """`get_tools` without blocking the event loop."""
        return self._made(await self.gateway.atools())

    def _made(self, offered: Iterable[GatewayTool]) -> list[BaseTool]:
        return [self._tool(tool) for tool in chosen(offered, self.names)]

    def _tool(self, tool: GatewayTool) -> BaseTool:
        return SentinelSecureTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.parameters),
            gateway=self.gateway,
            effect=tool.effect,
            session_id=self.session_id,
            approval_wait_s=self.approval_wait_s,
            max_characters=self.max_characters,
        )


def load_gateway_tools(
    url: str | None = None,
    api_key: str | None = None,
    *,
    gateway: GatewayConnection | None = None,
    names: Collection[str] | None = None,
    **of_each_tool: Any,
) -> list[BaseTool]:
    """The tools of the gateway at `url` for `api_key`; without them those of SENTINEL_URL and SENTINEL_API_KEY.

    `gateway` shares a connection that is there already. `of_each_tool` are `session_id`, `approval_wait_s` and
    `max_characters`. Raises ConfigurationError or UnavailableError, with the next step.
    """
    return _toolkit(url, api_key, gateway, names, of_each_tool).get_tools()


async def aload_gateway_tools(
    url: str | None = None,
    api_key: str | None = None,
    *,
    gateway: GatewayConnection | None = None,
    names: Collection[str] | None = None,
    **of_each_tool: Any,
) -> list[BaseTool]:
    """`load_gateway_tools` without blocking the event loop."""
    return await _toolkit(url, api_key, gateway, names, of_each_tool).aget_tools()


def _toolkit(
    url: str | None,
    api_key: str | None,
    gateway: GatewayConnection | None,
    names: Collection[str] | None,
    of_each_tool: dict[str, Any],
) -> GatewayToolkit:
    return GatewayToolkit(
        gateway=gateway or GatewayConnection(url, api_key),
        names=None if names is None else frozenset(names),
        **of_each_tool,
    )
