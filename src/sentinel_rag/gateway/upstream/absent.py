"""A tool server that is declared and cannot be used (its program or its credential is missing): every call says so.

It lets the other servers serve. Why it is absent is told to the operator at start, not to callers.
"""

from __future__ import annotations

from collections.abc import Callable

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.arguments import CanonicalArguments
from sentinel_rag.gateway.upstream.port import UpstreamReply, UpstreamTool
from sentinel_rag.gateway.upstream.unanswered import away


class AbsentUpstream:
    """`reason` is the operator's sentence."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def call(
        self,
        tool: str,
        arguments: CanonicalArguments,
        *,
        principal: str,
        session_id: str,
        timeout_s: float,
        readers: frozenset[str] | None = None,
    ) -> UpstreamReply:
        """See `Upstream.call`."""
        return away("The tool server is not set up.", may_have_run=False)

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        """See `Upstream.list_tools`."""
        raise UnavailableError(self._reason)

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """See `Upstream.on_tools_changed`."""

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """See `Upstream.end_session`."""

    async def aclose(self) -> None:
        """See `Upstream.aclose`."""
