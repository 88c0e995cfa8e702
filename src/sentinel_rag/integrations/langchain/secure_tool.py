"""A LangChain tool that runs nothing: each call goes to the gateway, which decides, and back comes what it said.

It raises for a block and for nothing else. Above it lies whatever agent uses it, below it `integrations.gateway`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from sentinel_rag.contracts.handles import quoted_in
from sentinel_rag.integrations.gateway import (
    Blocked,
    Called,
    GatewayCall,
    GatewayConnection,
    NotRun,
    Ran,
    told_to_model,
)
from sentinel_rag.integrations.gateway.answer_texts import MAX_CHARACTERS
from sentinel_rag.integrations.gateway.json_arguments import BadArguments, arguments_of_text, wire_arguments
from sentinel_rag.integrations.langchain.security_block import SecurityBlockException, told_block

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
