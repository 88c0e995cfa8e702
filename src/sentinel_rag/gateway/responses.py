"""The bodies of the wire format. A body names a rule, a reason and an audit id; it never holds data, labels of other
sessions, keys, or the names of servers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, assert_never

import msgspec
from starlette.responses import Response

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.approvals import DecidedBy
from sentinel_rag.gateway.outcomes import DO_NOT_REPEAT, HTTP_STATUS, Completed, Denied, NotCompleted, Outcome

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-type", b"application/json"),
)
OVERLOAD_RETRY_S = 1
DEFAULT_RETRY_S = 5


class _JsonResponse(Response):
    """JSON that no cache keeps. Its head is written here, and not put together anew for each answer."""

    def __init__(self, content: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.status_code = status
        self.background = None
        self.body = content
        more = [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()]
        self.raw_headers = [*_HEADERS, (b"content-length", b"%d" % len(content)), *more]


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Any value msgspec can write, as JSON that no cache keeps. `headers` come beside those of every answer."""
    return _JsonResponse(msgspec.json.encode(body), status, headers or {})


def outcome_response(outcome: Outcome) -> Response:
    """The answer of `POST /v1/proxy-execute`."""
    match outcome:
        case Completed(encoded, audit_id):
            return json_response({"result": msgspec.Raw(encoded), "status": "success", "audit_id": audit_id})
        case Denied(retry_after_s=retry_after_s):
            waiting = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
            return json_response(body_of(outcome), 403, waiting)
        case NotCompleted(reason, error=error):
            headers: dict[str, str] = {}
            if reason is Reason.RATE_LIMITED:
                wait = error.retry_after_s if error is not None and error.retry_after_s else DEFAULT_RETRY_S
                headers["Retry-After"] = str(max(1, math.ceil(wait)))
            if reason is Reason.OVERLOADED:
                headers["Retry-After"] = str(OVERLOAD_RETRY_S)
            return json_response(body_of(outcome), outcome.http_status, headers)
        case _:
            assert_never(outcome)


def body_of(outcome: Denied | NotCompleted) -> dict[str, Any]:
    """The body of a call that has no result, on every way in which calls are answered."""
    match outcome:
        case Denied(deny, audit_id, approval_id, note, by_asker=by_asker, runs_at_yes=runs_at_yes):
            body: dict[str, Any] = {
                "detail": deny.sentence(),
                "status": "denied",
                "reason": deny.reason.value,
                "rule_id": deny.rule_id,
                "audit_id": audit_id,
            }
            if approval_id is not None:
                body["approval_id"] = approval_id
            if by_asker:
                body["decided_by"] = DecidedBy.ASKER.value
            if runs_at_yes:
                body["at_yes"] = "run"
            if note:
                body["note"] = note
            return body
        case NotCompleted(reason, detail, audit_id, error):
            body = {"detail": detail, "status": "error", "reason": reason.value, "audit_id": audit_id}
            if error is not None:
                body["error"] = error.to_dict()
            return body


def problem(reason: Reason, detail: str, *, audit_id: str | None = None, status: int | None = None) -> Response:
    """Any other failure, in the same shape. `status` replaces the reason's own where HTTP has a finer one."""
    body = problem_body(reason, detail)
    if audit_id is not None:
        body["audit_id"] = audit_id
    return json_response(body, status or HTTP_STATUS[reason])


def away_response(*, may_have_run: bool, is_database: bool = True) -> Response:
    """The answer while the state cannot be reached or, if it is no database elsewhere, cannot be written: a full disk,
    a file that another program holds. `may_have_run`: the call was let through before that; then no Retry-After invites
    anybody to send it again, and a typed error says what to do instead."""
    if may_have_run:
        detail = "The gateway lost its database while the call ran. It may have taken effect: look before you repeat."
        error = QueryError(code=QueryErrorCode.INTERNAL, message=detail, next_step=DO_NOT_REPEAT)
        return json_response(
            {**problem_body(Reason.OVERLOADED, detail), "error": error.to_dict()}, HTTP_STATUS[Reason.OVERLOADED]
        )
    what = "reach its database" if is_database else "record calls"
    detail = f"The gateway cannot {what} now, so it lets nothing through. Try again in a moment."
    body = problem_body(Reason.OVERLOADED, detail)
    return json_response(body, HTTP_STATUS[Reason.OVERLOADED], {"Retry-After": str(DEFAULT_RETRY_S)})


def problem_body(reason: Reason, detail: str) -> dict[str, str]:
    """The body of `problem`, for a route that adds to it."""
    return {"detail": detail, "status": "denied" if reason is Reason.MISSING_SCOPE else "error", "reason": reason.value}
