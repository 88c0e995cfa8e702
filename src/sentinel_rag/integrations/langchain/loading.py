"""From a gateway to a list of LangChain tools, once or anew before each turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import ConfigDict, Field

from sentinel_rag.integrations.gateway import GatewayConnection, GatewayTool
from sentinel_rag.integrations.gateway.answer_texts import MAX_CHARACTERS
from sentinel_rag.integrations.gateway.offers import chosen
from sentinel_rag.integrations.langchain.secure_tool import SentinelSecureTool


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
