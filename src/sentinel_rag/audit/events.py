"""What the journal says: one frozen dataclass for each kind of record, of calls, keys, sessions, approvals, policy and
upkeep.

A record holds what is needed to decide the call again (AUD-4), the arguments included. Arguments may hold personal data
or a secret that somebody typed, therefore the file is its owner's only and its reader needs the scope `audit`.

All records of one approval carry its id as their `audit_id`, so one search shows its whole story. The use of an
approval is no record of its own: the intent of the call that used it names it, in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.contracts.json_values import JsonObject, JsonValue, field_names, json_form
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.storage.port import Work


class Record:
    """A kind of record that tells its own fields, in the order in which they are declared."""

    __slots__ = ()

    def fields(self) -> dict[str, JsonValue]:
        """What the record holds besides its kind, id, time and place in the chain."""
        kind: Any = type(self)
        return {name: json_form(getattr(self, name)) for name in field_names(kind) if name != "audit_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesNamed(Record):
    """Values, as (kind, text), that count as the user's own from now on. `source` is `user` for the user's words, else
    the endorsement rule that derived them from the result of the call with this `audit_id`."""

    kind: ClassVar[str] = "values_named"
    audit_id: str
    key_id: str
    session_id: str
    source: str
    values: tuple[tuple[str, str], ...]

    def fields(self) -> dict[str, JsonValue]:
        return {**Record.fields(self), "values": [{"kind": kind, "text": text} for kind, text in self.values]}


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlesResolved(Record):
    """A person was shown hidden values: which, and the label of each. The values are not here."""

    kind: ClassVar[str] = "handles_resolved"
    audit_id: str
    key_id: str
    session_id: str
    handles: tuple[tuple[str, Label], ...]
    refused: tuple[str, ...] = ()

    def fields(self) -> dict[str, JsonValue]:
        handles: list[JsonValue] = [{"handle": handle, "label": label.to_dict()} for handle, label in self.handles]
        return {**Record.fields(self), "handles": handles}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRaised(Record):
    """The decision about a call depended on a hidden value that its arguments held, so the answer itself tells a bit of
    it: the context label rises although no tool ran."""

    kind: ClassVar[str] = "context_raised"
    audit_id: str
    key_id: str
    session_id: str
    tool: str
    context_before: Label
    context_after: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanged(Record):
    """A key was created, rotated or revoked. `changed_at` is when; the record's own time is when the journal heard of
    it, which is later for a change made while no gateway ran. `by` says who, `detail` what the key may do since."""

    kind: ClassVar[str] = "key"
    audit_id: str
    key_id: str
    name: str
    change: str
    changed_at: str
    by: str
    detail: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanged(Record):
    """A person puts something into a store, or takes it out: `asked` before it is done, then `done` or `refused` under
    the same `audit_id`. Of what it holds there are the bytes and the SHA-256 alone, of a file."""

    kind: ClassVar[str] = "store_changed"
    audit_id: str
    key_id: str
    store: str
    change: str
    name: str
    state: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused(Record):
    """A request that was answered before its body was looked at: for another host, too large, too slow, too often.

    `key_id` is None where no key was asked for yet. `not_recorded` counts the refusals since the last such record that
    were too many to record one by one.
    """

    kind: ClassVar[str] = "request_refused"
    audit_id: str
    key_id: str | None
    route: str
    method: str
    client: str
    reason: Reason
    http_status: int
    not_recorded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoaded(Record):
    """A policy came into force; calls after this record are judged by it. `by` is a key id, `start` or `file`."""

    kind: ClassVar[str] = "policy_loaded"
    audit_id: str
    by: str
    policy_sha256: str
    previous_sha256: str | None
    source: str
    tools: int
    rules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRefused(Record):
    """A policy file did not load, and `policy_sha256` stays in force. `refused_sha256` is None where the file could not
    be read."""

    kind: ClassVar[str] = "policy_refused"
    audit_id: str
    by: str
    policy_sha256: str
    refused_sha256: str | None
    source: str
    problems: tuple[str, ...]
    problems_in_all: int


# A record holds hashes; the definitions themselves lie in the gateway's state. All records of a tool carry
# `tool:SERVER/NAME` as their `audit_id`, so one search shows its whole story.
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPinned(Record):
    """A definition was taken as it is: seen for the first time, or changed by an upgrade of this product itself
    (then `previous_sha256` is the one before)."""

    kind: ClassVar[str] = "tool_pinned"
    audit_id: str
    server: str
    tool: str
    sha256: str
    previous_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuarantined(Record):
    """Its server describes the tool otherwise than it was pinned; it is not offered and its calls are denied."""

    kind: ClassVar[str] = "tool_quarantined"
    audit_id: str
    server: str
    tool: str
    pinned_sha256: str
    served_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAccepted(Record):
    """The holder of `key_id` accepted the changed definition; it is the pinned one from now on."""

    kind: ClassVar[str] = "tool_accepted"
    audit_id: str
    key_id: str
    server: str
    tool: str
    sha256: str
    previous_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TailSealed(Record):
    """Records `first` to `last` had no checkpoint after them when a gateway started: the one that wrote them
    died, or they are older than checkpoints. They are sealed from here on; before, nothing proves them."""

    kind: ClassVar[str] = "tail_sealed"
    audit_id: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SealingChanged(Record):
    """Checkpoints can no longer be kept at `place` (`problem` says why), or can again (`problem` is empty)."""

    kind: ClassVar[str] = "sealing"
    audit_id: str
    place: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentClosed(Record):
    """Records `first` to `last` moved to a file of their own; `last_hash` is the hash of the last one, in hex."""

    kind: ClassVar[str] = "segment_closed"
    audit_id: str
    file: str
    first: int
    last: int
    last_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPruned(Record):
    """Records `first` to `through` were removed on purpose, because all were older than `older_than`. `through_hash` is
    the hash of the last of them, which the first kept record holds as the one before it."""

    kind: ClassVar[str] = "pruned"
    audit_id: str
    first: int
    through: int
    through_hash: str
    older_than: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRestored(Record):
    """This journal, which ended at record `head`, was put back on purpose from a backup of `made_at`. What other copies
    hold of later records is none of it."""

    kind: ClassVar[str] = "restored"
    audit_id: str
    made_at: str
    head: int


# No record holds an API key or a result: of a result only hash, size and row count are kept.
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
class CallIntended(Record):
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
        told = {**Record.fields(self), "decision": "allow"}
        if self.readers is None:  # only where the tool was told, so that every other record stays as short as it was
            del told["readers"]
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome(Record):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRefused(Record):
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
        told = Record.fields(self)
        context = told.pop("context")
        return {**told, "decision": "deny", "context_before": context, "context_after": context}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationFailed(Record):
    """A request without a valid key, or with one that lacks the scope. `key_id` is set only if there is, or was, a key
    with that id; `key_state` says why it opened nothing, for example because it has expired.

    `not_recorded` counts the failures since the last such record that were too many to record one by one.
    """

    kind: ClassVar[str] = "authentication_failed"
    audit_id: str
    key_id: str | None
    key_state: str | None = None
    route: str
    method: str
    client: str
    reason: Reason
    not_recorded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChanged(Record):
    """A session was opened, or closed, by the key `key_id`; `context` is its context label then. One that a person's
    key opens for an agent starts clean, one that an agent opens starts at the floor of its recent ones."""

    kind: ClassVar[str] = "session"
    audit_id: str
    key_id: str
    session_id: str
    change: str
    context: Label | None = None


class AppendRecord(Protocol):
    """How an archive adds a record to the chain; `Journal.append_now`."""

    def __call__(self, event: AuditEvent, alongside: Work[object] | None = None) -> ChainHead: ...


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
