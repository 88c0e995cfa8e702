"""How a request ended: a call's outcome for its caller (`Outcome`) and for the journal (`CallOutcome`), the bodies of
the wire format, and the record of requests that end before the gate.

A body names a rule, a reason and an audit id; it never holds data, labels of other sessions, keys, or the names of
servers. Whoever can reach the port can send as many bad requests as they like, so each kind has its budget of single
records; what is over it is counted in the next one.

The status of each reason is written down once, here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from sentinel_rag.audit import AuthenticationFailed, CallOutcome, Journal, OutcomeStatus, RequestRefused, StateAway
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Deny, Reason
from sentinel_rag.gateway.approvals import DecidedBy
from sentinel_rag.gateway.policy import Effect, ToolPolicy
from sentinel_rag.gateway.policy.model import FieldExposure
from sentinel_rag.gateway.store import RefusedKey, Scope
from sentinel_rag.gateway.upstream import Returned, ToolFailed, Unanswered, UpstreamReply

HTTP_STATUS: Mapping[Reason, int] = {
    Reason.NO_RULE_MATCHED: 403,
    Reason.RULE_DENIES: 403,
    Reason.APPROVAL_REQUIRED: 403,
    Reason.CONDITION_UNDECIDED: 403,
    Reason.SINK_LABEL: 403,
    Reason.UNKNOWN_TOOL: 403,
    Reason.TOOL_QUARANTINED: 403,
    Reason.TOOL_SWITCHED_OFF: 403,
    Reason.MISSING_SCOPE: 403,
    Reason.OWN_APPROVAL: 403,
    Reason.NOT_AN_APPROVER: 403,
    Reason.UNAUTHENTICATED: 401,
    Reason.NOT_FOUND: 404,
    Reason.METHOD_NOT_ALLOWED: 405,
    Reason.CONFLICT: 409,
    Reason.APPROVAL_DECIDED: 409,
    Reason.APPROVAL_EXPIRED: 409,
    Reason.TOO_LARGE: 413,
    Reason.UNSUPPORTED_MEDIA_TYPE: 415,
    Reason.MISDIRECTED: 421,
    Reason.MALFORMED_BODY: 422,
    Reason.INVALID_ARGUMENT: 422,
    Reason.RATE_LIMITED: 429,
    Reason.INTERNAL: 500,
    Reason.UPSTREAM_FAILED: 502,
    Reason.OVERLOADED: 503,
    Reason.CALLER_LEFT: 503,
    Reason.UPSTREAM_TIMEOUT: 504,
}

_REASON_OF_ERROR: Mapping[QueryErrorCode, Reason] = {
    QueryErrorCode.INVALID_ARGUMENT: Reason.INVALID_ARGUMENT,
    QueryErrorCode.QUERY_REJECTED: Reason.INVALID_ARGUMENT,
    QueryErrorCode.THROTTLED: Reason.RATE_LIMITED,
    QueryErrorCode.TIMEOUT: Reason.UPSTREAM_TIMEOUT,
    QueryErrorCode.CONFLICT: Reason.CONFLICT,
}
"""What a tool's own error means for the caller; every other one is a failing tool server."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The tool's result: `encoded` is its JSON. `label` is an upper bound of what it reveals, `context` the session's
    label once it is told, `exposures` what the policy says of its parts."""

    encoded: bytes
    audit_id: str
    label: Label = BOTTOM
    context: Label = BOTTOM
    exposures: tuple[FieldExposure, ...] = ()


@dataclass(frozen=True, slots=True)
class DeniedCall:
    """The policy said no. `approval_id` names the approval that a person may give, `by_asker` that it is the one who
    asked, `runs_at_yes` that the call then runs by itself. `note` says why none could be asked for, with
    `retry_after_s` for when to try again, or which volume asks for it."""

    deny: Deny
    audit_id: str
    approval_id: str | None = None
    note: str = ""
    retry_after_s: int | None = None
    by_asker: bool = False
    runs_at_yes: bool = False


@dataclass(frozen=True, slots=True)
class NotCompleted:
    """No result and no denial. `error` is there where it helps the caller to do better."""

    reason: Reason
    detail: str
    audit_id: str
    error: QueryError | None = None

    @property
    def http_status(self) -> int:
        return HTTP_STATUS[self.reason]


Outcome = Completed | DeniedCall | NotCompleted


def outcome_kept(outcome: Outcome) -> bytes:
    """What its agent is told of a call that ran without it, as JSON; see `outcome_told`. Empty for one that did not
    run."""
    match outcome:
        case Completed(encoded, audit_id):
            return msgspec.json.encode({"audit_id": audit_id, "result": msgspec.Raw(encoded)})
        case NotCompleted(reason, detail, audit_id, error):
            told = {"audit_id": audit_id, "reason": reason.value, "detail": detail}
            return msgspec.json.encode(told | ({} if error is None else {"error": error.to_dict()}))
        case DeniedCall():
            return b""
        case _:
            assert_never(outcome)


class _Kept(msgspec.Struct):
    audit_id: str
    result: msgspec.Raw = msgspec.Raw()
    reason: str = ""
    detail: str = ""
    error: dict[str, Any] | None = None


def outcome_told(kept: bytes) -> Completed | NotCompleted:
    """Inverse of `outcome_kept`, without labels."""
    found = msgspec.json.decode(kept, type=_Kept)
    if found.reason == "":
        return Completed(bytes(found.result), found.audit_id)
    error = None if found.error is None else QueryError.from_dict(found.error)
    return NotCompleted(Reason(found.reason), found.detail, found.audit_id, error)


DO_NOT_REPEAT = "It may have taken effect: look before you call again."


class OutcomeLost(StateAway):
    """The call ran, and what came of it could not be recorded whole: nobody is told more than that."""


def outcome_of(
    reply: UpstreamReply, tool: ToolPolicy, audit_id: str, duration_ms: float
) -> tuple[Outcome, CallOutcome]:
    """What the caller is told and what is recorded, for a reply that took `duration_ms`."""
    duration_ms = round(duration_ms, 3)
    match reply:
        case Returned(encoded, rows=rows):
            return Completed(encoded, audit_id), CallOutcome(
                audit_id=audit_id,
                status=OutcomeStatus.SUCCESS,
                duration_ms=duration_ms,
                result_sha256=hashlib.sha256(encoded).hexdigest(),
                result_bytes=len(encoded),
                rows=rows,
            )
        case ToolFailed(error):
            reason = _REASON_OF_ERROR.get(error.code, Reason.UPSTREAM_FAILED)
        case Unanswered(reason, error, may_have_run):
            if may_have_run and tool.effect is not Effect.READ:
                error = _do_not_repeat(error)
        case _:
            assert_never(reply)
    return NotCompleted(reason, error.message, audit_id, error), CallOutcome(
        audit_id=audit_id,
        status=OutcomeStatus.ERROR,
        reason=reason,
        error_code=error.code.value,
        duration_ms=duration_ms,
    )


def _do_not_repeat(error: QueryError) -> QueryError:
    """A call that may have changed something must not look like one that is safe to send again."""
    code = QueryErrorCode.TIMEOUT if error.code is QueryErrorCode.TIMEOUT else QueryErrorCode.INTERNAL
    return replace(error, code=code, next_step=DO_NOT_REPEAT)


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
        case DeniedCall(retry_after_s=retry_after_s):
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


def body_of(outcome: DeniedCall | NotCompleted) -> dict[str, Any]:
    """The body of a call that has no result, on every way in which calls are answered."""
    match outcome:
        case DeniedCall(deny, audit_id, approval_id, note, by_asker=by_asker, runs_at_yes=runs_at_yes):
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


KEY_ID = "sentinel.key_id"
"""Where admission leaves the id of the key in a request's scope."""


class RefusedRequest(Exception):
    """The request ends here, with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Unread(RefusedRequest):
    """The request ends here, before its body was read to the end; the handler of refusals records it."""

    def __init__(
        self, reason: Reason, detail: str, *, status: int | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(problem(reason, detail, status=status))
        self.reason = reason
        self.detail = detail
        self.status = status or HTTP_STATUS[reason]
        self.retry_after_s = retry_after_s


class Refusals:
    """Answers such requests and writes them into `journal`. `seconds` is a clock that only goes forward."""

    def __init__(self, journal: Journal, new_id: Callable[[], str], seconds: Callable[[], float]) -> None:
        self._journal = journal
        self._new_id = new_id
        self._without_key = RecordBudget(seconds)
        self._unread = RecordBudget(seconds)

    async def no_entry(self, request: HTTPConnection, refused: RefusedKey, detail: str) -> RefusedRequest:
        """The refusal of a header that opens nothing."""
        return await self._authentication(request, Reason.UNAUTHENTICATED, refused.key_id, refused.state.value, detail)

    async def no_signature(self, request: HTTPConnection, detail: str) -> RefusedRequest:
        """The refusal of a request that is not signed as it must be."""
        return await self._authentication(request, Reason.UNAUTHENTICATED, None, None, detail)

    async def no_scope(self, request: HTTPConnection, key_id: str, scope: Scope) -> RefusedRequest:
        """The refusal of a live key that lacks `scope`."""
        detail = f"This key lacks the scope {scope.value!r}."
        return await self._authentication(request, Reason.MISSING_SCOPE, key_id, None, detail)

    async def unread(self, request: HTTPConnection, refusal: Unread) -> Response:
        """Record such a refusal; its response, with the record's id."""
        audit_id = None
        missed = self._unread.take()
        if missed is not None:
            audit_id = self._new_id()
            await self._journal.append(
                RequestRefused(
                    audit_id=audit_id,
                    key_id=request.scope.get(KEY_ID),
                    route=_route(request),
                    method=request.scope["method"],
                    client=_client(request),
                    reason=refusal.reason,
                    http_status=refusal.status,
                    not_recorded=missed,
                )
            )
        response = problem(refusal.reason, refusal.detail, audit_id=audit_id, status=refusal.status)
        if refusal.retry_after_s is not None:
            response.headers["Retry-After"] = str(refusal.retry_after_s)
        return response

    async def _authentication(
        self, request: HTTPConnection, reason: Reason, key_id: str | None, state: str | None, detail: str
    ) -> RefusedRequest:
        audit_id = None
        missed = self._without_key.take()
        if missed is not None:
            audit_id = self._new_id()
            await self._journal.append(
                AuthenticationFailed(
                    audit_id=audit_id,
                    key_id=key_id,
                    key_state=state,
                    route=_route(request),
                    method=request.scope["method"],
                    client=_client(request),
                    reason=reason,
                    not_recorded=missed,
                )
            )
        return RefusedRequest(problem(reason, detail, audit_id=audit_id))


def _route(request: HTTPConnection) -> str:
    """The route's pattern and never the path, which is the caller's text; empty before a route is found."""
    return getattr(request.scope.get("route"), "path", "")


def _client(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


# How many refusals of one kind are recorded one by one.
#
# Whoever can reach the port can be refused as often as they like. Beyond the budget refusals are counted, and the next
# record carries the count, so that a flood can neither fill the disk nor go unseen.


BURST = 1_000.0
PER_SECOND = 20.0


class RecordBudget:
    """A token bucket over `seconds`, a clock that only goes forward."""

    def __init__(self, seconds: Callable[[], float], *, burst: float = BURST, per_second: float = PER_SECOND) -> None:
        self._seconds = seconds
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at = seconds()
        self._uncounted = 0

    def take(self) -> int | None:
        """None if this refusal is over the budget; else how many were since the last one that was not."""
        now = self._seconds()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self._uncounted += 1
            return None
        self._left -= 1
        missed, self._uncounted = self._uncounted, 0
        return missed
