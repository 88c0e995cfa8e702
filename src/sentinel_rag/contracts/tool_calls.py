"""A tool call as the agent states it, the gateway's decision on it as a value, and what came back.

`ToolCall` is a request: it holds no credential and no label. `ToolOutcome` is one of three arms, so that a caller
cannot take a denial for an empty result.

`Decision` is a closed union: a caller matches both arms and ends in `assert_never`. Reasons name the rule and the
label, never the data, so a decision may be shown to the agent and written to the audit as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.query_results import QueryError, QueryResult


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


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """One tool as plain data: `parameters` is a JSON Schema of type object, in the form that OpenAI and MCP share."""

    name: str
    description: str
    parameters: JsonObject
    aliases: tuple[str, ...] = ()

    def parameter_schemas(self) -> Mapping[str, JsonObject]:
        properties = self.parameters["properties"]
        assert isinstance(properties, Mapping)
        return properties  # type: ignore[return-value]  # JSON Schema nests objects only here

    def required(self) -> frozenset[str]:
        names = self.parameters.get("required", ())
        assert isinstance(names, tuple | list)
        return frozenset(str(name) for name in names)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the gateway offers it: its schema cut down to what the policy allows. `reads`: the policy says that it
    changes nothing and sends nothing out. `refused_now` says why the session refuses every call of it at present, and
    no person is asked; empty if it does not."""

    schema: ToolSchema
    reads: bool
    refused_now: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What the agent asks for. `call_id` is unique in its session and names the call in evidence and footnotes."""

    call_id: str
    session_id: str
    tool_name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """A result that is not rows of a table: a file, pages of the web, whatever a third-party tool returns. `value` is
    the result as the gateway gave it."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool ran. `audit_id` names the gateway's record of the call. `quoted` are JSON pointers into the result, to
    texts that the policy lets an agent see as words of others only."""

    call: ToolCall
    result: QueryResult | DocumentResult
    audit_id: str = ""
    quoted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The call was allowed, or never judged, and did not produce a result."""

    call: ToolCall
    error: QueryError
    audit_id: str = ""


@dataclass(frozen=True, slots=True)
class Denied:
    """The gateway refused. `detail` is its sentence; it names the rule and never the data. `approval_id` names the
    approval by which a person may let exactly this call run, in the same session; `note` says why there is none, or
    which volume of rows asks for it. `decided_by` is `asker` where the person who asked decides themselves;
    `runs_at_yes`: the call runs then by itself."""

    call: ToolCall
    reason: Reason
    detail: str
    rule_id: str | None = None
    audit_id: str = ""
    approval_id: str | None = None
    note: str = ""
    decided_by: str = ""
    runs_at_yes: bool = False


ToolOutcome = Succeeded | Failed | Denied
