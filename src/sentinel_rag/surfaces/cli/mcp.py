"""`sentinel mcp`: the gateway's MCP server on standard input and output, for clients that start a program.

It holds a key and forwards messages; it decides nothing and reads no more of a message than where it has to go.
Standard output carries the protocol alone, so everything for people goes to standard error.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import Settings, load_settings

RUN_KEY = "mcp"


def run(*, workspace: str | None) -> int:
    """Serve until standard input ends. Raises SentinelError if there is no gateway to speak to."""
    import anyio

    from sentinel_rag.app.tls import trusting
    from sentinel_rag.surfaces.cli._mcp_bridge import Bridge, standard_streams

    settings = load_settings()
    with _gateway(settings, workspace) as (url, key):
        signal.signal(signal.SIGTERM, _interrupt)  # clients end their servers so; zones of our own end in order
        if sys.stdin.isatty():
            print(
                "This speaks MCP to the program that started it; docs/mcp.md says how to add it there. Ctrl-D ends it.",
                file=sys.stderr,
            )

        async def serve() -> None:
            lines, write = standard_streams()
            await Bridge(url, key, write, trusting(settings.deployment.tls_ca)).serve(lines)

        with suppress(KeyboardInterrupt):
            anyio.run(serve)
    return 0


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _gateway(settings: Settings, workspace: str | None) -> Iterator[tuple[str, str]]:
    """The address of the gateway, and the key to use there."""
    if settings.gateway_url is not None:
        if workspace is not None:
            raise UsageError(
                "SENTINEL_URL is set, and a gateway that runs elsewhere has its own workspaces.",
                next_step="Leave --workspace out, or unset SENTINEL_URL.",
            )
        if settings.gateway_key is None:
            raise UsageError(
                "SENTINEL_URL is set without SENTINEL_API_KEY, so there is no key for that gateway.",
                next_step="Make one there: sentinel keys create --name my-editor --scope execute",
            )
        yield settings.gateway_url, settings.gateway_key.reveal()
        return
    from sentinel_rag.surfaces.cli._zones import attached_zones

    # Others may use the zones meanwhile: an approver has to see what waits.
    with attached_zones(settings, workspace, shared=True) as (state, _):
        zone = state.zone("interceptor")
        key = state.keys.get(RUN_KEY)
        if zone is None or key is None:
            raise UnavailableError(
                "The zones that run now have no key for MCP clients.",
                next_step="Start them again with this version: sentinel up",
            )
        yield zone.url, key
