"""The zone `executor-web` of a run: the product's own web tools, in a network in which every name leads to `outside`.

Started by the supervisor in the place of the shipped zone, because that one, as it must, reaches no loopback address.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.app.serving import begin_zone, serve
from sentinel_rag.contracts.web_tools import WEB_TOOLS
from sentinel_rag.tools.mcp_frame import Hints, ToolAnswer, executor_app
from sentinel_rag.tools.web import WebOptions, search_provider
from sentinel_rag.tools.web.fetching import FetchBounds, PageFetcher
from sentinel_rag.tools.web.web_tools import WebTools

LOOPBACK = "127.0.0.1"
ARGUMENTS = ("sentinel_rag_testing.soc.web_executor", "executor-web")
"""What the supervisor starts instead of the shipped zone."""


async def _everywhere(_: str) -> Sequence[str]:
    return [LOOPBACK]


def main() -> None:
    configuration = begin_zone(sys.argv[1])
    url = configuration["url"]
    tools = WebTools(
        search_provider(WebOptions(provider=configuration["provider"], url=url)),
        PageFetcher(
            FetchBounds(ports=frozenset({urlsplit(url).port or 80})),
            lookup=_everywhere,
            may_connect=lambda address: address == LOOPBACK,
        ),
    )

    async def call(name: str, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> ToolAnswer:
        return await tools.call(name, arguments)

    app = executor_app(
        "web",
        WEB_TOOLS,
        call,
        token=configuration["token"],
        close=tools.close,
        hints=lambda _: Hints(open_world=True),
    )
    serve(app, int(sys.argv[2]))


if __name__ == "__main__":
    main()
