"""What the gateway tells of its calls while they run: spans and counts, both read off the records of its journal.

So what is told is what is on record, however a call came in, and the gate knows nothing of it. Of what the journal
holds only names, ids, labels, sizes and reason codes are told, never arguments or results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from starlette.requests import Request

from sentinel_rag.audit import AuditEvent, CallIntended, CallOutcome, CallRefused, OutcomeStatus
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.upstream import (
    McpHttpUpstream,
    Returned,
    ToolFailed,
    Unanswered,
    Upstream,
    UpstreamReply,
    UpstreamTool,
)
from sentinel_rag.gateway.upstream.port import UpstreamCall
from sentinel_rag.telemetry import (
    NO_SPAN,
    Span,
    SpanKind,
    continuing,
    current_span,
    start_span,
    tracing,
)

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry

CALL = "tools/call"


class RecordSpans:
    """A journal's listener that tells the current span of the call that is on record."""

    def written(self, event: AuditEvent, seconds: float) -> None:
        span = current_span()
        if not span.recording:
            return
        match event:
            case CallIntended():
                _tell_call(span, event)
                span.update(
                    {
                        "sentinel.outcome": "allowed",
                        "sentinel.rule.id": event.rule_id,
                        "sentinel.server": event.server,
                        **_LABEL[event.label],
                        **_CONTEXT[event.context_after],
                    }
                )
            case CallRefused():
                _tell_call(span, event)
                span.set("sentinel.outcome", "denied" if event.http_status == 403 else "refused")
                span.set("sentinel.reason", event.reason.value)
                span.set("sentinel.rule.id", event.rule_id)
                span.set("http.response.status_code", event.http_status)
                if event.label is not None:
                    span.update(_LABEL[event.label])
                if event.context is not None:
                    span.update(_CONTEXT[event.context])
                if event.http_status >= 500:
                    span.fail(event.reason.value)
            case CallOutcome(status=status, reason=reason):
                span.set("sentinel.result.bytes", event.result_bytes)
                span.set("sentinel.result.rows", event.rows)
                span.set("sentinel.upstream.ms", None if event.duration_ms is None else round(event.duration_ms))
                if status is not OutcomeStatus.SUCCESS:
                    # A tool's failure is one here too, whatever status carries it.
                    span.fail("unknown" if reason is None else reason.value)
                    span.set("sentinel.reason", None if reason is None else reason.value)

    def failed(self, event: AuditEvent) -> None:
        current_span().fail("not_recorded")


class TracedUpstream:
    """Wraps a tool server of another maker: each call is a span, in which the server finds where it belongs. Our own
    make a span of each call themselves, below the one that the call came in with."""

    def __init__(self, upstream: Upstream, *, server: str) -> None:
        self._upstream = upstream
        self._about = {
            "mcp.method.name": CALL,
            "gen_ai.operation.name": "execute_tool",
            "sentinel.server": server,
        }

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        """See `Upstream.call`."""
        with start_span(f"{CALL} {call.tool}", SpanKind.CLIENT) as span:
            reply = await self._upstream.call(call)
            if span.recording:
                span.update(self._about)
                span.set("gen_ai.tool.name", call.tool)
                _tell_reply(span, reply)
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


def _tell_reply(span: Span, reply: UpstreamReply) -> None:
    match reply:
        case Returned():
            pass  # its size stands in the span around this one
        case ToolFailed(error):
            span.fail(error.code.value)
        case Unanswered(reason):
            span.fail(reason.value)
        case _:
            assert_never(reply)


def _tell_call(span: Span, event: CallIntended | CallRefused) -> None:
    if span.name == CALL and event.tool is not None:
        span.rename(f"{CALL} {event.tool}")
    span.set("sentinel.audit.id", event.audit_id)
    span.set("tool.name", event.tool)
    span.set("gen_ai.tool.name", event.tool)
    span.set("session.id", event.session_id)
    span.set("sentinel.approval.id", event.approval_id)


def request_span(request: Request) -> Span:
    """The span of a POST that a key was admitted with: whoever has none costs nothing here."""
    return start_span(f"POST {request.scope['route'].path}", SpanKind.SERVER) if tracing() else NO_SPAN


@contextmanager
def message_span(place: object) -> Iterator[None]:
    """The span of a `tools/call` of a client of MCP; `place` is the traceparent of its `_meta`, which goes before that
    of the HTTP request. It is called after the tool once that is known to be one."""
    if not tracing():
        yield
        return
    with continuing(place), start_span(CALL, SpanKind.SERVER) as span:
        span.set("mcp.method.name", CALL)
        span.set("gen_ai.operation.name", "execute_tool")
        yield


def tell_status(span: Span, route: str, status: int) -> None:
    """What a POST to `route` was answered with."""
    span.update({"http.request.method": "POST", "http.route": route, "http.response.status_code": status})


def _levels(of: str) -> Mapping[Label, Mapping[str, str]]:
    """The attributes of each label: there are six."""
    return {label: {f"sentinel.{of}.{side}": level for side, level in label.to_dict().items()} for label in _LABELS}


_LABELS = [Label(sensitivity, integrity) for sensitivity in Sensitivity for integrity in Integrity]
_LABEL, _CONTEXT = _levels("label"), _levels("context")


def told_upstreams(upstreams: Mapping[str, Upstream]) -> Mapping[str, Upstream]:
    """The same tool servers; those that make no spans themselves are wrapped where spans are made."""
    if not tracing():
        return upstreams
    return {
        name: upstream if _tells_itself(upstream) else TracedUpstream(upstream, server=name)
        for name, upstream in upstreams.items()
    }


def _tells_itself(upstream: Upstream) -> bool:
    return isinstance(upstream, McpHttpUpstream) and upstream.is_ours


def tell_records(
    state: State, gate: Gate, policies: Policies, upstreams: Mapping[str, Upstream], registry: Registry | None
) -> None:
    """Have the journal's records told; nothing is set where there is nobody to tell."""
    if tracing():
        state.journal.listeners.append(RecordSpans())
    if registry is not None:
        from sentinel_rag.gateway.telemetry.counts import CurrentCounts, RecordCounts

        state.journal.listeners.append(RecordCounts(registry, servers=sorted(policies.current.servers())))
        current = CurrentCounts(state, gate, policies, upstreams)
        registry.before_reading.append(current.look)
        registry.add(*current.gauges())
