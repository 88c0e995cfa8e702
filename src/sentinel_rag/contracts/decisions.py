"""A decision of the gateway as a value.

`Decision` is a closed union: a caller matches both arms and ends in `assert_never`. Reasons name the rule and the
label, never the data, so a decision may be shown to the agent and written to the audit as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.contracts.labels import Label


class Reason(StrEnum):
    """Stable reason codes of the gateway's wire format. A code is never reused for another meaning."""

    # 403
    NO_RULE_MATCHED = "no_rule_matched"
    RULE_DENIES = "rule_denies"
    APPROVAL_REQUIRED = "approval_required"
    CONDITION_UNDECIDED = "condition_undecided"
    SINK_LABEL = "sink_label"
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_QUARANTINED = "tool_quarantined"
    TOOL_SWITCHED_OFF = "tool_switched_off"
    MISSING_SCOPE = "missing_scope"
    OWN_APPROVAL = "own_approval"
    NOT_AN_APPROVER = "not_an_approver"
    # 401, 404, 405, 409, 413, 415, 421, 422, 429, 503
    UNAUTHENTICATED = "unauthenticated"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    APPROVAL_DECIDED = "approval_decided"
    APPROVAL_EXPIRED = "approval_expired"
    TOO_LARGE = "too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    MISDIRECTED = "misdirected"
    MALFORMED_BODY = "malformed_body"
    INVALID_ARGUMENT = "invalid_argument"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    CALLER_LEFT = "caller_left"
    # 500, 502, 504
    INTERNAL = "internal"
    UPSTREAM_FAILED = "upstream_failed"
    UPSTREAM_TIMEOUT = "upstream_timeout"


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run. `label` is the rule's own share of the result label; it is joined with others later."""

    rule_id: str
    label: Label


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run. `rule_id` is None where no rule was reached or none matched."""

    reason: Reason
    label: Label
    rule_id: str | None = None

    def sentence(self) -> str:
        """The text of the 403 body, in the words of the source template."""
        return f"Access denied by security policy. Taint level: {self.label.sensitivity.name}"


Decision = Allow | Deny
