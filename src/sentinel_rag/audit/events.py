"""What the journal says of calls, keys and sessions: one frozen dataclass for each kind of record.

A record holds what is needed to decide the call again (AUD-4), the arguments included. Arguments may hold personal data
or a secret that somebody typed, therefore the file is readable by its owner only and its reader needs the `audit`
scope. No record holds an API key or a result: of a result only hash, size and row count are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.storage.port import Work


class AuditEvent(Protocol):
    """Anything that can be a record. Other parts bring kinds of their own, in files of their own; a kind's name and
    fields are kept for ever, because old records must still be read."""

    kind: ClassVar[str]

    @property
    def audit_id(self) -> str:
        """The call or the change that the record belongs to."""
        ...

    def fields(self) -> dict[str, JsonValue]:
        """What the record holds besides its kind, id, time and place in the chain."""
        ...


class OutcomeStatus(StrEnum):
    """How an allowed call ended. UNKNOWN: the gateway ended between intent and outcome; the tool may have run."""

    SUCCESS = "success"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIntended:
    """An allowed call, written before the tool server hears of it. `context_after` is already in force.

    `flow` holds what beside the context decided about labels (see `gateway.flow.record`), None where nothing did;
    `approval_id` names the approval that the call used up.
    """

    kind: ClassVar[str] = "intent"
    audit_id: str
    key_id: str
    session_id: str
    tool: str
    requested_tool: str
    server: str
    effect: str
    arguments: JsonObject
    arguments_sha256: str
    rule_id: str
    label: Label
    context_before: Label
    context_after: Label
    policy_sha256: str
    approval_id: str | None = None
    flow: JsonObject | None = None
    readers: tuple[str, ...] | None = None

    def fields(self) -> dict[str, JsonValue]:
        # Only where the tool was told, so that the record of every other call stays as short as it was.
        readers: dict[str, JsonValue] = {} if self.readers is None else {"readers": list(self.readers)}
        return {
            **readers,
            "key_id": self.key_id,
            "session_id": self.session_id,
            "tool": self.tool,
            "requested_tool": self.requested_tool,
            "server": self.server,
            "effect": self.effect,
            "arguments": self.arguments,
            "arguments_sha256": self.arguments_sha256,
            "decision": "allow",
            "rule_id": self.rule_id,
            "label": self.label.to_dict(),
            "context_before": self.context_before.to_dict(),
            "context_after": self.context_after.to_dict(),
            "policy_sha256": self.policy_sha256,
            "approval_id": self.approval_id,
            "flow": self.flow,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What came of an intended call. `result_sha256` is over the exact bytes of `result` that the caller was sent."""

    kind: ClassVar[str] = "outcome"
    audit_id: str
    status: OutcomeStatus
    reason: Reason | None = None
    error_code: str | None = None
    duration_ms: float | None = None
    result_sha256: str | None = None
    result_bytes: int | None = None
    rows: int | None = None

    def fields(self) -> dict[str, JsonValue]:
        return {
            "status": self.status.value,
            "reason": None if self.reason is None else self.reason.value,
            "error_code": self.error_code,
            "duration_ms": self.duration_ms,
            "result_sha256": self.result_sha256,
            "result_bytes": self.result_bytes,
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRefused:
    """A call that no tool server heard of: denied by policy, or refused before a rule was asked (bad arguments,
    another key's session, too large). `arguments` is None where the body could not be read, and where they are long;
    then their hash stands alone. `flow` is as in an intent, `approval_id` the approval that the call waits for."""

    kind: ClassVar[str] = "refusal"
    audit_id: str
    key_id: str
    session_id: str | None
    tool: str | None
    requested_tool: str | None
    arguments: JsonObject | None
    arguments_sha256: str | None
    reason: Reason
    http_status: int
    rule_id: str | None
    label: Label | None
    context: Label | None
    policy_sha256: str
    approval_id: str | None = None
    flow: JsonObject | None = None

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "tool": self.tool,
            "requested_tool": self.requested_tool,
            "arguments": self.arguments,
            "arguments_sha256": self.arguments_sha256,
            "decision": "deny",
            "reason": self.reason.value,
            "http_status": self.http_status,
            "rule_id": self.rule_id,
            "label": None if self.label is None else self.label.to_dict(),
            "context_before": None if self.context is None else self.context.to_dict(),
            "context_after": None if self.context is None else self.context.to_dict(),
            "policy_sha256": self.policy_sha256,
            "approval_id": self.approval_id,
            "flow": self.flow,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationFailed:
    """A request without a valid key, or with one that lacks the scope. `key_id` is set only if there is, or was, a key
    with that id; `key_state` says why it opened nothing, for example because it has expired.

    `not_recorded` counts the failures since the last such record that were too many to record one by one.
    """

    kind: ClassVar[str] = "authentication_failed"
    audit_id: str
    key_id: str | None
    route: str
    method: str
    client: str
    reason: Reason
    key_state: str | None = None
    not_recorded: int = 0

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "key_state": self.key_state,
            "route": self.route,
            "method": self.method,
            "client": self.client,
            "reason": self.reason.value,
            "not_recorded": self.not_recorded,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged:
    """A session was opened, or closed, by the key `key_id`; `context` is its context label then. One that a person's
    key opens for an agent starts clean, one that an agent opens starts at the floor of its recent ones."""

    kind: ClassVar[str] = "session"
    audit_id: str
    key_id: str
    session_id: str
    change: str
    context: Label | None = None

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "change": self.change,
            "context": None if self.context is None else self.context.to_dict(),
        }


class AppendRecord(Protocol):
    """How an archive adds a record to the chain; `Journal.append_now`."""

    def __call__(self, event: AuditEvent, alongside: Work[object] | None = None) -> ChainHead: ...
