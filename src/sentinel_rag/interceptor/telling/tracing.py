"""Spans of the Interceptor: what a record says of its call goes to the span that the call runs in, and each call of a
tool server has a span of its own, of which the server is told.

Only what the journal holds besides arguments and results is told: names, ids, labels, sizes and reason codes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from starlette.requests import Request

from sentinel_rag.audit import AuditEvent, CallIntended, CallOutcome, CallRefused, OutcomeStatus
from sentinel_rag.contracts.labels import Label
from sentinel_rag.interceptor.arguments import CanonicalArguments
from sentinel_rag.interceptor.upstream import Returned, ToolFailed, Unanswered, Upstream, UpstreamReply, UpstreamTool
from sentinel_rag.telemetry import AnySpan, Kind, current_span, start_span


class RecordSpans:
    """A journal's listener that tells the current span of the call that is on record."""

    def written(self, event: AuditEvent, seconds: float) -> None:
        span = current_span()
        if not span.recording:
            return
        match event:
            case CallIntended():
                _tell_call(span, event.audit_id, event.tool, event.session_id)
                span.set("sentinel.outcome", "allowed")
                span.set("sentinel.rule.id", event.rule_id)
                span.set("sentinel.server", event.server)
                span.set("sentinel.approval.id", event.approval_id)
                _tell_label(span, "label", event.label)
                _tell_label(span, "context", event.context_after)
            case CallRefused():
                _tell_call(span, event.audit_id, event.tool, event.session_id)
                span.set("sentinel.outcome", "denied" if event.http_status == 403 else "refused")
                span.set("sentinel.reason", event.reason.value)
                span.set("sentinel.rule.id", event.rule_id)
                span.set("sentinel.approval.id", event.approval_id)
                _tell_status(span, event.http_status)
                if event.label is not None:
                    _tell_label(span, "label", event.label)
                if event.context is not None:
                    _tell_label(span, "context", event.context)
                if event.http_status >= 500:
                    span.fail(event.reason.value)
            case CallOutcome(status=status, reason=reason):
                span.set("sentinel.result.bytes", event.result_bytes)
                span.set("sentinel.result.rows", event.rows)
                if status is not OutcomeStatus.SUCCESS:
                    # A tool's failure is one here too, whatever status carries it.
                    span.fail("unknown" if reason is None else reason.value)
                    span.set("sentinel.reason", None if reason is None else reason.value)

    def failed(self, event: AuditEvent) -> None:
        current_span().fail("not_recorded")


class TracedUpstream:
    """Wraps a tool server: each call is a span, in which the server below finds where it belongs."""

    def __init__(self, upstream: Upstream, *, server: str) -> None:
        self._upstream = upstream
        self._server = server

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
        with start_span(f"tools/call {tool}", Kind.CLIENT) as span:
            reply = await self._upstream.call(
                tool, arguments, principal=principal, session_id=session_id, timeout_s=timeout_s, readers=readers
            )
            if span.recording:
                _tell_reply(span, reply)
                for name, value in (
                    ("mcp.method.name", "tools/call"),
                    ("gen_ai.operation.name", "execute_tool"),
                    ("gen_ai.tool.name", tool),
                    ("tool.name", tool),
                    ("session.id", session_id),
                    ("sentinel.server", self._server),
                ):
                    span.set(name, value)
        return reply

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        """See `Upstream.list_tools`."""
        return await self._upstream.list_tools(timeout_s=timeout_s)

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """See `Upstream.on_tools_changed`."""
        self._upstream.on_tools_changed(listener)

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """See `Upstream.end_session`."""
        await self._upstream.end_session(principal=principal, session_id=session_id)

    async def aclose(self) -> None:
        await self._upstream.aclose()


def _tell_reply(span: AnySpan, reply: UpstreamReply) -> None:
    match reply:
        case Returned():
            span.set("sentinel.result.bytes", len(reply.encoded))
            span.set("sentinel.result.rows", reply.rows)
        case ToolFailed(error):
            span.fail(error.code.value)
        case Unanswered(reason):
            span.fail(reason.value)
        case _:
            assert_never(reply)


def _tell_call(span: AnySpan, audit_id: str, tool: str | None, session_id: str | None) -> None:
    span.set("sentinel.audit.id", audit_id)
    span.set("gen_ai.tool.call.id", audit_id)
    span.set("tool.name", tool)
    span.set("gen_ai.tool.name", tool)
    span.set("session.id", session_id)


def request_span(request: Request) -> AnySpan:
    """The span of a request that a key was admitted with: whoever has none costs nothing here."""
    return start_span(f"{request.method} {request.url.path}", Kind.SERVER)


def tell_status(span: AnySpan, status: int) -> None:
    """What an HTTP request was answered with."""
    if span.recording:
        span.set("http.request.method", "POST")
        _tell_status(span, status)


def _tell_status(span: AnySpan, status: int) -> None:
    span.set("http.response.status_code", status)
    span.set("http.status_code", status)


def _tell_label(span: AnySpan, of: str, label: Label) -> None:
    for side, level in label.to_dict().items():
        span.set(f"sentinel.{of}.{side}", level)
