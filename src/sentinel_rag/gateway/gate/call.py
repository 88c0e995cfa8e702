"""One call on its way through the gate, by how much is known of it, its intent on record, and how it can end.

`Call` is a call as it came, `EnteredCall` has its session and its tool, `DecidedCall` its judgement. No step takes a
call that the step before has not let through. With the intent every label rises that the call may raise, in this
process before the first pause, so no other call can be decided in between. An answer without a tool's run tells
something too: `reveal` raises the context before it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sentinel_rag.audit import CallIntended, CallRefused, ContextRaised, Journal, RecordConnection, Work
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Label, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import ClientDisconnect
from sentinel_rag.contracts.tool_calls import Deny, Reason
from sentinel_rag.gateway.approvals import ApprovalStore, Binding, CallSubject, near_duplicate_sha256
from sentinel_rag.gateway.flow import CallFacts, HandleReference, Judgement, judge
from sentinel_rag.gateway.flow.judging import PASSED, LabelledArgument, LabelSource
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, used
from sentinel_rag.gateway.pins import Quarantined
from sentinel_rag.gateway.policy import Effect, Policy, Remembers, ToolPolicy
from sentinel_rag.gateway.request_body import IF_EFFECT, ArgumentFault, CanonicalArguments, ExecuteRequest
from sentinel_rag.gateway.responses import HTTP_STATUS, DeniedCall, NotCompleted
from sentinel_rag.gateway.store import (
    ContextMoved,
    HandleStore,
    ResourceLabels,
    Session,
    SessionStore,
    next_result,
    resources_of,
)


@dataclass(frozen=True, slots=True)
class Stores:
    """Sessions with their labels, hidden values, labels of resources, approvals, the journal. They share one database,
    so that what belongs together is one transaction of the journal's."""

    sessions: SessionStore
    handles: HandleStore
    resources: ResourceLabels
    approvals: ApprovalStore
    journal: Journal


MAX_REFUSED_BYTES = 16_384
"""Longer arguments of a call that did not run leave only their hash: refusals cost nothing and could fill the disk."""


@dataclass(slots=True)
class Call:
    """What is on record of a call whatever becomes of it; what is not yet known is None. `request` is None for a body
    that could not be read, `tool` for a name that the policy does not know. `result` is its number among the results of
    its session, where the tool hides parts; `readers` are the names under which its server may let it read."""

    audit_id: str
    key_id: str
    policy: Policy
    request: ExecuteRequest | None = None
    tool: ToolPolicy | None = None
    session: Session | None = None
    arguments: CanonicalArguments | None = None
    references: Mapping[str, tuple[HandleReference, ...]] = field(default_factory=dict)
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

    def use(self, now: datetime) -> Work[object] | None:
        """The write that notes that the call's session is in use, whatever becomes of the call."""
        return None if self.session is None else self.session.use(now, self.policy.memory)

    def refusal(self, reason: Reason, deny: Deny | None = None) -> CallRefused:
        """The record of a call that is not run: with the arguments as judged, or as they came if it never got there."""
        arguments = self.arguments or (CanonicalArguments.of(self.request.args) if self.request else None)
        return CallRefused(
            audit_id=self.audit_id,
            key_id=self.key_id,
            session_id=None if self.request is None else self.request.session_id,
            tool=None if self.tool is None else self.tool.name,
            requested_tool=None if self.request is None else self.request.tool_name,
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
    facts: CallFacts
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
            near_duplicate_sha256=near_duplicate_sha256(
                self.tool, self.arguments.value, "" if self.subject is None else self.subject.number
            ),
        )


CLOSED = "This session is closed."


class Endings:
    """Each method but `reveal` records the end of a call and gives its answer. All raise UnavailableError where the
    record cannot be written."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    async def deny(self, call: Call, deny: Deny) -> DeniedCall:
        """The policy says no, or the state of the tool does."""
        await self._journal.append(call.refusal(deny.reason, deny), alongside=call.use(self._clock()))
        return DeniedCall(deny, call.audit_id, call.approval_id)

    async def refuse(self, call: Call, reason: Reason, detail: str, error: QueryError | None = None) -> NotCompleted:
        """The call cannot be taken; `detail` is for people, `error` for an agent that could do better."""
        await self._journal.append(call.refusal(reason), alongside=call.use(self._clock()))
        return NotCompleted(reason, detail, call.audit_id, error)

    async def refuse_body(self, call: Call, fault: str) -> NotCompleted:
        """The body could not be read, for the reason `fault`."""
        error = QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message=f"The request was refused: {fault}.")
        return await self.refuse(call, Reason.MALFORMED_BODY, error.message, error)

    async def refuse_for_now(self, call: Call, wait_s: float) -> NotCompleted:
        """The key or the tool is over its rate for `wait_s` more seconds."""
        error = QueryError(
            code=QueryErrorCode.THROTTLED,
            message="This key calls too often.",
            next_step="Wait and call again.",
            retry_after_s=wait_s,
        )
        return await self.refuse(call, Reason.RATE_LIMITED, error.message, error)

    async def refuse_effect(self, call: Call, wanted: Effect) -> NotCompleted:
        """The call was meant only if its tool had another effect than the policy gives it now."""
        error = QueryError(
            code=QueryErrorCode.CONFLICT,
            message=f"This tool's effect is not {wanted.value} any more, so nothing ran.",
            next_step="Call again without if_effect, once: it may change something.",
            field=IF_EFFECT,
        )
        return await self.refuse(call, Reason.CONFLICT, error.message, error)

    async def refuse_arguments(self, call: Call, fault: ArgumentFault) -> NotCompleted:
        """The arguments do not fit the tool."""
        error = QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT,
            message=fault.message,
            next_step=fault.next_step,
            field=fault.field,
            allowed=fault.allowed,
        )
        return await self.refuse(call, Reason.INVALID_ARGUMENT, fault.message, error)

    async def reveal(self, entered: EnteredCall, label: Label) -> bool:
        """Raise the context by what the answer to this call is about to tell, though no tool runs; whether it rose.
        Raises ContextMoved if the file knows of labels that this process does not."""
        call, session = entered.call, entered.session
        before = session.context
        if label.flows_to(before) and (session.user_key_id is not None or label == BOTTOM):
            return False  # in a session of the agent's own, a person's session may still have to rise
        raising = session.raise_to(
            label, audit_id=call.audit_id, tool=entered.tool.name, now=self._clock(), at_least=call.policy.memory
        )
        await self._journal.append(
            ContextRaised(
                audit_id=call.audit_id,
                key_id=call.key_id,
                session_id=session.session_id,
                tool=entered.tool.name,
                context_before=before,
                context_after=session.context,
            ),
            alongside=raising,
        )
        return session.context != before


class Intent:
    """Writes intents."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock

    async def record(self, decided: DecidedCall) -> None:
        """Raise the labels and write the intent, in one transaction. Raises ContextMoved if the file knows of labels
        that the call was not decided by, ApprovalSpent, UnavailableError; then nothing is written."""
        session = decided.session
        works = self._raising(decided)
        passing = dict.fromkeys(decided.judgement.passes, PASSED)
        if decided.judgement.step is not None:
            passing[used(decided.judgement.step)] = PLAN
        if any(value in session.named for value in passing):
            raise ContextMoved
        works += [session.pass_once(value, by) for value, by in passing.items()]
        try:
            await _append(self._stores.journal, decided, works)
        except BaseException:
            _not_passed(session, passing)
            raise

    def _raising(self, decided: DecidedCall) -> list[Work[object]]:
        """The writes that go with the intent, in their order. The session's own context rises at once."""
        call, tool, session, judgement = decided.call, decided.tool, decided.session, decided.judgement
        works: list[Work[object]] = [
            session.raise_to(
                judgement.revealed,
                audit_id=call.audit_id,
                tool=tool.name,
                now=self._clock(),
                at_least=call.policy.memory,
            )
        ]
        if tool.reads:
            works.append(self._stores.resources.confirm(decided.reads, decided.facts.resources))
        if tool.across_sessions or decided.approval_id is not None:  # before this call raises its own session
            seen = decided.facts.context.join(decided.memory)
            works.insert(0, self._stores.sessions.confirm_seen(session, call.remembers(), seen))
        if tool.writes:
            # Whatever the tool counts: the agent wrote it with all that it remembers.
            memory = decided.memory if any(_is_the_agents(entry) for entry in judgement.arguments) else BOTTOM
            written = join_all([memory, *(entry.label for entry in judgement.arguments)])
            works.append(self._stores.resources.raise_to(resources_of(tool.writes, decided.arguments.value), written))
        if decided.approval_id is not None:
            works.append(self._stores.approvals.consume(decided.approval_id, decided.binding()))
        if tool.fields.hides:
            works.append(_numbering(call, session))
        return works


def _is_the_agents(argument: LabelledArgument) -> bool:
    return argument.source is LabelSource.LITERAL or not argument.is_whole


def _numbering(call: Call, session: Session) -> Work[object]:
    """Give the call its number among the results of the session, by which handles name what it hides."""

    def write(connection: RecordConnection) -> None:
        call.result = next_result(connection, session.session_id)

    return write


def _not_passed(session: Session, values: Iterable[NamedValue]) -> None:
    """The call did not run, so nothing has passed, unless the file says so."""
    for value in values:
        session.named.pop(value, None)


async def _append(journal: Journal, decided: DecidedCall, works: Sequence[Work[object]]) -> None:
    call, tool, session = decided.call, decided.tool, decided.session
    await journal.append(
        CallIntended(
            audit_id=call.audit_id,
            key_id=call.key_id,
            session_id=session.session_id,
            tool=tool.name,
            requested_tool=call.request.tool_name if call.request else tool.name,
            server=tool.server,
            effect=tool.effect.value,
            arguments=decided.arguments.value,
            arguments_sha256=decided.arguments.sha256,
            rule_id=decided.rule_id,
            label=decided.judgement.revealed,
            context_before=decided.facts.context,
            context_after=session.context,
            policy_sha256=call.policy.sha256,
            approval_id=decided.approval_id,
            flow=call.flow,
            readers=None if call.readers is None else tuple(sorted(call.readers)),
        ),
        alongside=all_of(works),
    )


def all_of(works: Sequence[Work[object]]) -> Work[object]:
    """One write of several."""
    if len(works) == 1:
        return works[0]

    def write(connection: RecordConnection) -> None:
        for work in works:
            work(connection)

    return write
