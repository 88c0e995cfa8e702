"""What the journal says of approvals: what a call would change is read, asked, decided, lifted, bounded, lapsed, told.

All records of one approval carry its id as their `audit_id`, so one search shows its whole story. The use of an
approval is no record of its own: the intent of the call that used it names it, in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.audit.events import Record
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewRead(Record):
    """The gateway is about to read what a call would change, for whoever decides about it; `audit_id` is the call's.
    The agent is told nothing of it."""

    kind: ClassVar[str] = "preview_read"
    audit_id: str
    key_id: str
    session_id: str
    tool: str
    server: str
    arguments_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked(Record):
    """A call waits for a person: for the one who asked (`decided_by` is `asker`) or for another. `binding` is
    everything that the approval is for; `arguments` is None where they are long, then their hash in the binding stands
    alone. `words` are what the person said before it, `shown_sha256` the hash of all that the decider is shown."""

    kind: ClassVar[str] = "approval_asked"
    audit_id: str
    key_id: str
    binding: JsonObject
    binding_sha256: str
    arguments: JsonObject | None
    why: str
    ends_at: str
    decided_by: str
    words: str
    shown_sha256: str

    def fields(self) -> dict[str, JsonValue]:
        return {**Record.fields(self), **{name: self.binding[name] for name in ("tool", "session_id")}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided(Record):
    """A person said yes or no. `key_id` decided; `via` is `api`, `elicitation` (the person at the MCP client of that
    key, as the policy attests) or `webhook`, and then `actor` is who the webhook's receiver says it was."""

    kind: ClassVar[str] = "approval_decided"
    audit_id: str
    key_id: str
    decision: str
    via: str
    actor: str
    comment: str
    tool: str
    requested_by: str
    binding_sha256: str
    shown_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDenialLifted(Record):
    """A no holds no longer: the call may be asked about again. `key_id` lifted it."""

    kind: ClassVar[str] = "approval_denial_lifted"
    audit_id: str
    key_id: str
    via: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsBounded(Record):
    """A conversation, a person or all together are over a bound on questions; once until `ends_at`, however many more
    calls are refused. `audit_id` is the call's that came first."""

    kind: ClassVar[str] = "approvals_bounded"
    audit_id: str
    key_id: str
    session_id: str
    tool: str
    why: str
    ends_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecisionRefused(Record):
    """Somebody tried to decide who may not, or too late."""

    kind: ClassVar[str] = "approval_decision_refused"
    audit_id: str
    key_id: str
    decision: str
    via: str
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalLapsed(Record):
    """Nobody decided in time, or the call that was allowed did not come again in time; `state` is what it was."""

    kind: ClassVar[str] = "approval_lapsed"
    audit_id: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNotified(Record):
    """The webhook's receiver was told, or could not be told in `attempts` attempts."""

    kind: ClassVar[str] = "approval_notified"
    audit_id: str
    delivered: bool
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedCallTold(Record):
    """The agent sent a call again that had run when it was approved, and was told what came of that; nothing ran.
    `audit_id` is the new call's, the intent of the one that ran names the approval."""

    kind: ClassVar[str] = "approved_call_told"
    audit_id: str
    key_id: str
    session_id: str
    approval_id: str
