"""Zone C: the tools that reach the web, as an MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette

from sentinel_rag.contracts.web_tools import WEB_TOOLS
from sentinel_rag.tools.mcp_frame import Hints, ToolAnswer, executor_app

if TYPE_CHECKING:
    from sentinel_rag.tools.web.search_providers import SearchProvider
    from sentinel_rag.tools.web.web_tools import WebTools


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """`provider` is bundled, searxng, brave or tavily. `url` is a service's base address (needed for searxng), `key`
    its credential. `allowed_hosts` empty lets pages of every public host be fetched."""

    provider: str = "bundled"
    url: str | None = None
    key: str = field(default="", repr=False)
    allowed_hosts: Sequence[str] = ()


def create_app(options: WebOptions, *, token: str) -> Starlette:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. Its lifespan closes the connections."""
    tools: list[WebTools] = []

    async def call(name: str, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> ToolAnswer:
        if not tools:
            tools.append(_web_tools(options))
        return await tools[0].call(name, arguments)

    async def close() -> None:
        for each in tools:
            await each.close()

    return executor_app("web", WEB_TOOLS, call, token=token, close=close, hints=_hints)


def _hints(_: str) -> Hints:
    return Hints(open_world=True)


def _web_tools(options: WebOptions) -> WebTools:
    from sentinel_rag.tools.web.fetching import FetchBounds, PageFetcher
    from sentinel_rag.tools.web.web_tools import WebTools

    return WebTools(search_provider(options), PageFetcher(FetchBounds(hosts=tuple(options.allowed_hosts))))


def search_provider(options: WebOptions) -> SearchProvider:
    """The provider that the options name. Raises ValueError for a name that is none."""
    from sentinel_rag.tools.web import search_providers
    from sentinel_rag.tools.web.search_providers import BundledPages

    match options.provider:
        case "bundled":
            return BundledPages()
        case "searxng":
            return search_providers.SearXng(options.url or "")
        case "brave":
            return search_providers.Brave(options.key, options.url or search_providers.BRAVE_URL)
        case "tavily":
            return search_providers.Tavily(options.key, options.url or search_providers.TAVILY_URL)
        case other:
            raise ValueError(f"there is no search provider {other!r}")
