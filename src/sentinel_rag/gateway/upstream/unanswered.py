"""The ways in which a call gets no usable answer, each with its sentence; shared by all transports.

A sentence names neither the server nor its address: it may reach the agent.
"""

from __future__ import annotations

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.upstream.credentials import Renewal
from sentinel_rag.gateway.upstream.port import Unanswered


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
