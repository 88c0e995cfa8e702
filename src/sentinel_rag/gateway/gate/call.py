"""One call on its way through the gate, by how much is known of it: `Call` as it came, `EnteredCall` with its session
and its tool, `DecidedCall` with its judgement. No step takes a call that the step before has not let through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sentinel_rag.audit import CallRefused
from sentinel_rag.contracts.client_disconnect import ClientDisconnect
from sentinel_rag.contracts.decisions import Deny, Reason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Label, join_all
from sentinel_rag.gateway.approvals import Binding, CallSubject
from sentinel_rag.gateway.arguments import CanonicalArguments
from sentinel_rag.gateway.flow import Facts, Judgement, Reference, judge
from sentinel_rag.gateway.outcomes import HTTP_STATUS
from sentinel_rag.gateway.pins import Quarantined
from sentinel_rag.gateway.policy import Policy, Remembers, ToolPolicy
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.store import Session

MAX_REFUSED_BYTES = 16_384
"""Longer arguments of a call that did not run leave only their hash: refusals cost nothing and could fill the disk."""


@dataclass(slots=True)
class Call:
    """What is on record of a call whatever becomes of it; what is not yet known is None. `wish` is None for a body that
    could not be read, `tool` for a name that the policy does not know. `result` is its number among the results of its
    session, where the tool hides parts; `readers` are the names under which its server may let it read."""

    audit_id: str
    key_id: str
    policy: Policy
    wish: ExecuteRequest | None = None
    tool: ToolPolicy | None = None
    session: Session | None = None
    arguments: CanonicalArguments | None = None
    references: Mapping[str, tuple[Reference, ...]] = field(default_factory=dict)
    handle_labels: Mapping[str, Label] = field(default_factory=dict)
    flow: JsonObject | None = None
    approval_id: str | None = None
    pin: str | Quarantined | None = None
    caller: ClientDisconnect | None = None
    result: int = 0
    readers: frozenset[str] | None = None
    key_name: str = ""

    def remembers(self) -> Remembers:
        """What the agent may know of its other sessions."""
        return self.policy.remembers(self.key_id, self.key_name)

    def refusal(self, reason: Reason, deny: Deny | None = None) -> CallRefused:
        """The record of a call that is not run: with the arguments as judged, or as they came if it never got there."""
        arguments = self.arguments or (CanonicalArguments.of(self.wish.args) if self.wish else None)
        return CallRefused(
            audit_id=self.audit_id,
            key_id=self.key_id,
            session_id=None if self.wish is None else self.wish.session_id,
            tool=None if self.tool is None else self.tool.name,
            requested_tool=None if self.wish is None else self.wish.tool_name,
            arguments=arguments.value if arguments and len(arguments.encoded) <= MAX_REFUSED_BYTES else None,
            arguments_sha256=None if arguments is None else arguments.sha256,
            reason=reason,
            http_status=HTTP_STATUS[reason],
            rule_id=None if deny is None else deny.rule_id,
            label=None if deny is None else deny.label,
            context=None if self.session is None else self.session.context,
            policy_sha256=self.policy.sha256,
            approval_id=self.approval_id,
            flow=self.flow,
        )


@dataclass(frozen=True, slots=True)
class EnteredCall:
    """A call of a tool that there is and that is what it was when it was accepted, in a session that the key may use,
    within its rate. Whether the policy allows it is still open."""

    call: Call
    tool: ToolPolicy
    session: Session

    def handles_label(self) -> Label:
        """The label of everything that the call's handles stand for."""
        return join_all(self.call.handle_labels.values())


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """A call that the policy allows, or would with an approval. `reads` are the resources whose stored labels are among
    `facts`. `memory` is what the agent may remember, whether or not the tool counts it: what a person is shown and
    approves, and what the call writes, is judged by it."""

    entered: EnteredCall
    arguments: CanonicalArguments
    facts: Facts
    judgement: Judgement
    rule_id: str
    reads: Sequence[str]
    memory: Label = BOTTOM
    approval_id: str | None = None
    subject: CallSubject | None = None
    """What the call would change, as the gateway has read it for whoever decides."""

    @property
    def call(self) -> Call:
        return self.entered.call

    @property
    def tool(self) -> ToolPolicy:
        return self.entered.tool

    @property
    def session(self) -> Session:
        return self.entered.session

    def at_present(self) -> DecidedCall:
        """The same call by what its session has seen by now, its own intent included: as it would be judged again."""
        facts = replace(self.facts, context=self.session.context)
        judgement = judge(self.call.policy, self.tool, self.arguments.value, facts)
        return replace(self, facts=facts, judgement=judgement)

    def binding(self) -> Binding:
        """What an approval of this call is bound to: it serves no call that differs in any of it."""
        return Binding(
            key_id=self.call.key_id,
            session_id=self.session.session_id,
            tool=self.tool.name,
            arguments_sha256=self.arguments.sha256,
            argument_labels={entry.name: entry.label for entry in self.judgement.arguments},
            context=self.facts.context,
            rule_id=self.rule_id,
            policy_sha256=self.call.policy.sha256,
            schema_sha256=self.call.pin if isinstance(self.call.pin, str) else None,
            subject_sha256=None if self.subject is None else self.subject.sha256(),
            memory=self.memory,
        )
