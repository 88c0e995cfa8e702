"""The span of one call at the gateway, as the blind courier's document names it: `tool.NAME`.

A model, or a page that a model has read, chooses what a call is named; so a name is told only once the gateway has
shown that it knows the tool.
"""

from __future__ import annotations

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Denied, Failed, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.telemetry import AnySpan, Kind, Span, start_span

UNKNOWN = "unknown"
SHIPPED = frozenset(tool.name for tool in SHIPPED_TOOLS)
_OF_A_TOOL = frozenset(
    {
        Reason.NO_RULE_MATCHED,
        Reason.RULE_DENIES,
        Reason.APPROVAL_REQUIRED,
        Reason.CONDITION_UNDECIDED,
        Reason.SINK_LABEL,
        Reason.TOOL_QUARANTINED,
        Reason.TOOL_SWITCHED_OFF,
    }
)
"""The denials that the gateway gives to tools it knows; a key without its scope is denied before any name is looked
at."""


def tool_span(call: ToolCall) -> AnySpan:
    """The span, named by a tool of this product or, for now, `tool.unknown`."""
    name = call.tool_name if call.tool_name in SHIPPED else UNKNOWN
    return start_span(f"tool.{name}", Kind.CLIENT)


def tell_response(span: AnySpan, call: ToolCall, status: int | None, outcome: ToolOutcome) -> None:
    """Tell what came back; does nothing for a span that is not recorded."""
    if not isinstance(span, Span):
        return
    name = call.tool_name if call.tool_name in SHIPPED or _shows_tool(outcome) else UNKNOWN
    span.name = f"tool.{name}"
    audit_id = outcome.audit_id or None
    for attribute, value in (
        ("tool.name", name),
        ("gen_ai.tool.name", name),
        ("session.id", call.session_id),
        ("gen_ai.conversation.id", call.session_id),
        ("http.status_code", status),
        ("http.response.status_code", status),
        ("http.request.method", "POST"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", audit_id),
        ("sentinel.audit.id", audit_id),
    ):
        span.set(attribute, value)
    match outcome:
        case Succeeded(result=QueryResult() as result):
            span.set("sentinel.outcome", "succeeded")
            span.set("sentinel.result.rows", len(result.rows))
        case Succeeded():
            span.set("sentinel.outcome", "succeeded")
        case Denied(reason=reason, approval_id=approval_id):
            span.set("sentinel.outcome", "denied")
            span.set("sentinel.reason", reason.value)
            span.set("sentinel.approval.id", approval_id)
            span.fail(reason.value)
        case Failed(error=error):
            span.set("sentinel.outcome", "failed")
            span.fail(error.code.value)


def _shows_tool(outcome: ToolOutcome) -> bool:
    match outcome:
        case Succeeded():
            return True
        case Denied(reason=reason):
            return reason in _OF_A_TOOL
        case _:
            return False
