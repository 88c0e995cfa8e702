"""The port through which the gate reaches a tool server, and the three ways in which a call can end there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.gateway.arguments import CanonicalArguments


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool's result: `value`, and `encoded`, its JSON. `rows` is the length of its `rows`, None if it has none.
    `row_labels` are the labels that a server of this product tells of its rows; None from any other, and for what is
    no list of labels."""

    encoded: bytes
    value: Any = field(repr=False)
    rows: int | None = None
    row_labels: tuple[Label, ...] | None = None


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """The tool ran, or refused to, and said why."""

    error: QueryError


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer that can be used. `may_have_run` is False only if the server surely never got the call."""

    reason: Reason
    error: QueryError
    may_have_run: bool


UpstreamReply = Returned | ToolFailed | Unanswered

Owner = tuple[str, str]
"""Whose MCP session or process it is: the key's id and the gateway session."""


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """A tool as its server describes it; schemas are JSON Schema of any draft. Nothing of it is trusted yet."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None


class Upstream(Protocol):
    """One tool server. A call is sent at most once, whatever happens.

    What a server keeps for one (`principal`, `session_id`), such as an MCP session or a process, serves no other pair.
    """

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
        """Run one call within `timeout_s`. Never raises for what the server or the network does.

        `readers` are the names under which the caller may read, where the policy has the server know them; only a
        server of this product is sent them.
        """
        ...

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        """What the server serves now. Raises UnavailableError."""
        ...

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """Have `listener` called whenever the server says that its list of tools has changed."""
        ...

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """Drop what the server keeps for a session of the gateway that was closed. Never raises."""
        ...

    async def aclose(self) -> None: ...
