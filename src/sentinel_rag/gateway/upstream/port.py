"""The port through which the gate reaches a tool server, and the ways in which a call can end there without an answer.

A sentence about such an end names neither the server nor its address: it may reach the agent. Credentials that a server
was given are taken out of whatever it says, as text and as JSON writes that text; a server that encodes its credential
in some other way is not caught. A server that is declared and cannot be used lets the others serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.request_body import CanonicalArguments


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamCall:
    """One call for a tool server, for a key (`principal`) in its session."""

    tool: str
    arguments: CanonicalArguments
    principal: str
    session_id: str
    timeout_s: float
    readers: frozenset[str] | None = None
    """The names under which the caller may read, where the policy has the server know them; only a server of this
    product is sent them."""

    @property
    def owner(self) -> Owner:
        return self.principal, self.session_id


class Upstream(Protocol):
    """One tool server. A call is sent at most once, whatever happens.

    What a server keeps for one (`principal`, `session_id`), such as an MCP session or a process, serves no other pair.
    """

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        """Run one call in its time. Never raises for what the server or the network does."""
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


PLACEHOLDER = "[credential]"
MIN_LENGTH = 8
"""Shorter texts occur by chance, and taking them out would damage results."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Where a newer bearer token may be: `variable` is the setting's name, `read` gives what it holds now (None where
    nothing can be read) and may block; without it the setting cannot change while we run."""

    variable: str
    read: Callable[[], str | None] | None = None


class ServerCredentials:
    """The values to hold back; those shorter than `MIN_LENGTH` are left alone."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = tuple(sorted({value for value in values if len(value) >= MIN_LENGTH}, key=len, reverse=True))
        self._encoded = tuple(msgspec.json.encode(value)[1:-1] for value in self._values)

    def hidden_in(self, reply: UpstreamReply) -> UpstreamReply:
        """The reply without them."""
        match reply:
            case Returned(encoded, value):
                if not any(one in encoded for one in self._encoded):
                    return reply
                clean = self._clean(value)
                return replace(reply, encoded=msgspec.json.encode(clean), value=clean)
            case ToolFailed(error):
                return ToolFailed(
                    replace(error, message=self.text(error.message), next_step=self.text(error.next_step))
                )
            case _:
                return reply

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, PLACEHOLDER)
        return text

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._clean(item) for key, item in value.items()}
        return value


def timed_out(timeout_s: float, *, may_have_run: bool) -> Unanswered:
    """The deadline passed."""
    error = QueryError(
        code=QueryErrorCode.TIMEOUT,
        message=f"The tool did not answer within {timeout_s:g} s.",
        next_step="Narrow the request, such as a shorter time window.",
    )
    return Unanswered(Reason.UPSTREAM_TIMEOUT, error, may_have_run)


def nobody_waits() -> Unanswered:
    """Whoever asked ended the connection, so the call was stopped; nobody reads this but the audit."""
    error = QueryError(
        code=QueryErrorCode.UNAVAILABLE,
        message="Whoever asked for this ended the connection before the tool had answered.",
        next_step="Ask again.",
    )
    return Unanswered(Reason.CALLER_LEFT, error, may_have_run=True)


def too_large(max_bytes: int, *, may_have_run: bool) -> Unanswered:
    """The answer passes the limit; it is refused and never cut."""
    error = QueryError(
        code=QueryErrorCode.QUERY_REJECTED,
        message=f"The tool's result is larger than {max_bytes} bytes.",
        next_step="Ask for fewer rows or a shorter time window.",
    )
    return Unanswered(Reason.TOO_LARGE, error, may_have_run)


def away(message: str, *, may_have_run: bool) -> Unanswered:
    """The server is not there, or left in the middle of the call."""
    error = QueryError(
        code=QueryErrorCode.UNAVAILABLE, message=message, next_step="Check that the tool server runs; ask again."
    )
    return Unanswered(Reason.UPSTREAM_FAILED, error, may_have_run)


def busy() -> Unanswered:
    """No further session fits beside those that are at work."""
    error = QueryError(
        code=QueryErrorCode.UNAVAILABLE,
        message="The tool server serves as many sessions as it may.",
        next_step="Try again in a moment.",
    )
    return Unanswered(Reason.OVERLOADED, error, may_have_run=False)


def credential_refused(renewal: Renewal | None, status: int) -> Unanswered:
    """The server does not take the credential that the gateway was given for it; it ran nothing."""
    if renewal is None:
        named, step = f"(HTTP {status})", "Have the operator name the server's token in the policy (token_variable)."
    else:
        named = f"({renewal.variable}, HTTP {status})"
        taken = "and start again" if renewal.read is None else "where it stands; it is taken with the next call"
        step = f"Have the operator set {renewal.variable} anew {taken}."
    error = QueryError(
        code=QueryErrorCode.ACCESS_DENIED,
        message=f"The tool server does not accept the gateway's credential {named}: it may have expired.",
        next_step=step,
    )
    return Unanswered(Reason.UPSTREAM_FAILED, error, may_have_run=False)


def unusable(message: str, *, may_have_run: bool = True) -> Unanswered:
    """The server answered with something that is not MCP, or not an answer to this call."""
    error = QueryError(
        code=QueryErrorCode.PROTOCOL,
        message=message,
        next_step="Check the tool server's version and its log.",
    )
    return Unanswered(Reason.UPSTREAM_FAILED, error, may_have_run)


class AbsentUpstream:
    """`reason` is the operator's sentence."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def call(self, call: UpstreamCall) -> UpstreamReply:
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
