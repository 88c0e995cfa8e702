"""How a call ended, as values: for the caller an `Outcome`, for the journal a `CallOutcome`.

The status of each reason is written down once, here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import msgspec

from sentinel_rag.audit import CallOutcome, OutcomeStatus, StateAway
from sentinel_rag.contracts.decisions import Deny, Reason
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.policy import Effect, ToolPolicy
from sentinel_rag.gateway.policy.fields import FieldExposure
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
