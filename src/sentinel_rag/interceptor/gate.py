"""The gate: what happens to one tool call, on one page.

canonicalise → label → decide → record → dispatch → label → record. Above it lies the HTTP face, which knows who asks;
below it the policy, the flow of labels, the store, the journal and the tool servers. A call that is not recorded is not
run, and a decision that is not an Allow ends here.

A call is decided by labels that this process holds in memory, and no other call can be decided between that and the
rise of the context label. If the file turns out to know more, or an answer was awaited meanwhile, it is decided again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

import anyio

from sentinel_rag.audit import (
    CallIntended,
    CallOutcome,
    CallRefused,
    Connection,
    ContextRaised,
    Journal,
    OutcomeStatus,
    ValuesNamed,
    Work,
)
from sentinel_rag.contracts.decisions import Allow, Deny, Reason
from sentinel_rag.contracts.departure import Departure
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, TOP, Label, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.interceptor.approvals import ApprovalSpent, ApprovalStore, Binding, TurnedAway, question_about
from sentinel_rag.interceptor.arguments import ArgumentFault, CanonicalArguments, fit
from sentinel_rag.interceptor.flow import (
    Facts,
    Judgement,
    NoSuchHandle,
    Reference,
    find_references,
    judge,
    put_values,
    view_of,
)
from sentinel_rag.interceptor.flow.endorsement import endorsed_values
from sentinel_rag.interceptor.flow.judging import PASSED
from sentinel_rag.interceptor.flow.named_values import NamedValue
from sentinel_rag.interceptor.flow.plans import PLAN, chosen, used
from sentinel_rag.interceptor.flow.record import flow_record
from sentinel_rag.interceptor.flow.row_labels import row_labels_of
from sentinel_rag.interceptor.in_flight import InFlight
from sentinel_rag.interceptor.limits import Limits
from sentinel_rag.interceptor.outcomes import (
    HTTP_STATUS,
    Completed,
    Denied,
    NotCompleted,
    Outcome,
    OutcomeLost,
    outcome_of,
)
from sentinel_rag.interceptor.pins import Pins, Quarantined
from sentinel_rag.interceptor.policy import Effect, Policies, Policy, Rule, ToolPolicy
from sentinel_rag.interceptor.policy.deciding import UNKNOWN_TOOL
from sentinel_rag.interceptor.rates import RateLimiter
from sentinel_rag.interceptor.request_body import ExecuteRequest
from sentinel_rag.interceptor.store import (
    ContextMoved,
    HandleStore,
    Principal,
    ResourceLabels,
    Session,
    SessionClosed,
    SessionStore,
    TooManySessions,
    next_result,
    resources_of,
)
from sentinel_rag.interceptor.upstream import Returned, ToolFailed, Unanswered, Upstream, UpstreamReply
from sentinel_rag.interceptor.upstream.unanswered import nobody_waits

MAX_REFUSED_BYTES = 16_384
"""Longer arguments of a call that did not run leave only their hash: refusals cost nothing and could fill the disk."""

CLOSED = "This session is closed."

MAX_ATTEMPTS = 10
"""How often a call is decided again because labels rose meanwhile. A context label can rise three times in all."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What the gate keeps: sessions with their labels, hidden values, labels of resources, approvals, the journal."""

    sessions: SessionStore
    handles: HandleStore
    resources: ResourceLabels
    approvals: ApprovalStore
    journal: Journal


class Gate:
    """Judges and runs calls. `upstreams` maps the policy's `server` names to tool servers; a tool that is
    `switched_off` is denied whatever its rules say. `readers_of` tells under which names a key may read."""

    def __init__(
        self,
        *,
        policies: Policies,
        stores: Stores,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        rates: RateLimiter,
        pins: Pins,
        switched_off: Collection[str] = (),
        new_id: Callable[[], str],
        clock: Clock,
        readers_of: Callable[[str], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._policies = policies
        self._stores = stores
        self._journal = stores.journal
        self._upstreams = upstreams
        self._limits = limits
        self._rates = rates
        self._pins = pins
        self._switched_off = frozenset(switched_off)
        self._new_id = new_id
        self._clock = clock
        self._readers_of = readers_of
        self._in_flight = InFlight(limits)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return len(self._in_flight)

    async def execute(self, principal: Principal, wish: ExecuteRequest, caller: Departure | None = None) -> Outcome:
        """Judge one call and run it if allowed. Raises UnavailableError if it cannot be recorded; then it did not run,
        or its outcome is on record as unknown. `caller` tells when nobody waits for the outcome any more: a call that
        only reads is then stopped, any other goes on to its end, and the outcome of both is recorded."""
        return await self._take(principal, wish, caller)

    async def look(self, principal: Principal, wish: ExecuteRequest, caller: Departure | None = None) -> Outcome:
        """`execute` for a person who reads without an agent: only what reads, in a session of the person's own key.

        No agent's key enters such a session, so nothing of a conversation reaches it; it raises no conversation, since
        labels rise within the sessions of one key.
        """
        return await self._take(principal, wish, caller, looking=True)

    async def _take(
        self, principal: Principal, wish: ExecuteRequest, caller: Departure | None, *, looking: bool = False
    ) -> Outcome:
        policy = self._policies.current
        call = _Call(self._new_id(), principal.key_id, policy, wish, policy.tool(wish.tool_name), caller=caller)
        refused = await self._unless_entered(call, principal, wish, looking=looking)
        if refused is not None:
            # It ends before the rate of a tool is asked and is on record all the same: so it counts for its key's.
            self._rates.take(principal.key_id, principal.rate)
            return refused
        session = call.session
        assert session is not None
        assert call.tool is not None
        wait_s = self._rates.take(principal.key_id, principal.rate, call.tool.name, call.tool.rate)
        if wait_s is not None:
            # By the tool's rate or the key's: a key that goes on and on all the same comes to the end of its own.
            self._rates.take(principal.key_id, principal.rate)
            return await self._refuse_for_now(call, wait_s)
        refused = await self._unless_readable(call, call.tool, wish) if looking else None
        refused = refused or await self._unless_pinned(call, call.tool)
        if refused is not None:
            return refused
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._attempt(call, call.tool, session, wish.args)
            except ContextMoved:
                await self._stores.sessions.refresh(session)
                if session.closed:
                    return await self._refuse(call, Reason.CONFLICT, CLOSED)
        return await self._refuse(call, Reason.OVERLOADED, "The session's labels keep rising; try again in a moment.")

    async def refuse_body(self, principal: Principal, fault: str) -> NotCompleted:
        """Record and answer a call whose body could not be read."""
        call = _Call(self._new_id(), principal.key_id, self._policies.current)
        error = QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message=f"The request was refused: {fault}.")
        return await self._refuse(call, Reason.MALFORMED_BODY, error.message, error)

    async def _unless_entered(
        self, call: _Call, principal: Principal, wish: ExecuteRequest, *, looking: bool
    ) -> Outcome | None:
        """None for a call of a tool that there is, in a session that the key may use, which `call` has then; else the
        answer."""
        try:
            session = await self._stores.sessions.claim(
                wish.session_id,
                principal.key_id,
                user_key_id=principal.key_id if looking else None,
                most=self._limits.sessions_per_key,
            )
        except SessionClosed as closed:
            return await self._refuse(call, Reason.CONFLICT, f"{closed} {closed.next_step}")
        except TooManySessions as many:
            return await self._refuse(call, Reason.RATE_LIMITED, f"{many} {many.next_step}")
        # A key that may execute too does not act as an agent where its person looks, nor the other way round.
        if session is None or (session.user_key_id == principal.key_id) is not looking:
            return await self._refuse(call, Reason.NOT_FOUND, "There is no such session.")
        call.session = session
        if call.tool is None:
            return await self._deny(call, UNKNOWN_TOOL)
        if call.tool.name in self._switched_off:
            denied = await self._deny(call, Deny(Reason.TOOL_SWITCHED_OFF, TOP))
            return replace(denied, note="The operator has not switched this tool on.")
        return None

    async def _unless_readable(self, call: _Call, tool: ToolPolicy, wish: ExecuteRequest) -> Outcome | None:
        """None for a call that a person may make alone; else the answer."""
        if tool.effect is not Effect.READ:
            denied = await self._deny(call, Deny(Reason.MISSING_SCOPE, TOP))
            return replace(denied, note="A person looks with tools that only read; ask the agent for what changes.")
        with suppress(NoSuchHandle):
            if not find_references(wish.args):
                return None
        # A tool may repeat what it was asked, and so tell what the person's clearance does not cover.
        return await self._refuse_arguments(call, ArgumentFault("", "A look takes values and no handles."))

    async def _unless_pinned(self, call: _Call, tool: ToolPolicy) -> Outcome | None:
        """None if the tool is what it was when its definition was accepted; else the answer."""
        pin = self._pins.sha256_of(tool)
        if pin is None and tool.server in self._upstreams and not await self._pins.learn(tool.server):
            message = "The tool server does not list its tools."
            error = QueryError(
                code=QueryErrorCode.UNAVAILABLE,
                message=message,
                next_step="Check that the tool server runs; ask again.",
            )
            return await self._refuse(call, Reason.UPSTREAM_FAILED, message, error)
        call.pin = pin or self._pins.sha256_of(tool)
        if isinstance(call.pin, Quarantined):
            denied = await self._deny(call, Deny(Reason.TOOL_QUARANTINED, TOP))
            return replace(denied, note="The definition of the tool has changed; an administrator has to accept it.")
        return None

    async def _attempt(self, call: _Call, tool: ToolPolicy, session: Session, sent: JsonObject) -> Outcome:
        """Decide, by what is known now, and do what was decided. Raises ContextMoved to be asked again."""
        try:
            call.references = find_references(sent)
            values = await self._resolve(call, session)
        except NoSuchHandle as fault:
            await self._reveal(call, tool, session, fault.told)
            return await self._refuse_arguments(call, ArgumentFault("", f"The arguments name a handle: {fault}."))
        arguments = fit(tool, {name: put_values(value, values) for name, value in sent.items()} if values else sent)
        if isinstance(arguments, ArgumentFault):
            await self._reveal(call, tool, session, join_all(call.handle_labels.values()))
            return await self._refuse_arguments(call, arguments)
        call.arguments = arguments
        reads = resources_of(tool.reads, arguments.value)
        stored = await self._stores.resources.of(reads)
        memory = await self._stores.sessions.seen_elsewhere(session) if tool.across_sessions else BOTTOM
        facts = Facts(session.context, call.handle_labels, session.named, stored, memory)
        judgement = judge(call.policy, tool, arguments.value, facts)
        call.flow = flow_record(judgement, facts, call.references)
        decision = judgement.decision
        match decision:
            case Allow():
                return await self._run(_Run(call, tool, session, arguments, facts, judgement, decision.rule_id, reads))
            case Deny():
                # A refusal may hang on the values behind handles, their types and forms too; so whoever is refused may
                # learn something of them. (A call that runs raises the context by what its arguments carry.)
                if await self._reveal(call, tool, session, join_all(call.handle_labels.values())):
                    raise ContextMoved
                # Another process may have heard words of the person that name the value.
                if decision.reason is Reason.SINK_LABEL and await self._stores.sessions.refresh(session):
                    raise ContextMoved
                rule = tool.rule(decision.rule_id)
                if (
                    rule is None
                    or not rule.may_ask
                    or decision.reason not in (Reason.APPROVAL_REQUIRED, Reason.SINK_LABEL)
                ):
                    return await self._deny(call, decision)
                run = _Run(call, tool, session, arguments, facts, judgement, rule.rule_id, reads)
                return await self._run_if_approved(run, rule, decision)
            case _:
                assert_never(decision)

    async def _run_if_approved(self, run: _Run, rule: Rule, deny: Deny) -> Outcome:
        binding = run.binding()
        approval_id = await self._stores.approvals.approved(binding)
        if approval_id is not None:
            try:
                return await self._run(replace(run, approval_id=approval_id))
            except ApprovalSpent:  # another call was first: this one has to ask again
                pass
        raised_by = await self._stores.sessions.raises(run.session)
        question = question_about(run.tool, rule, deny.reason, run.arguments.value, run.judgement.violations, raised_by)
        answer = await self._stores.approvals.request(binding, question)
        required = replace(deny, reason=Reason.APPROVAL_REQUIRED)
        if isinstance(answer, TurnedAway):
            return replace(
                await self._deny(run.call, required), note=answer.sentence, retry_after_s=answer.retry_after_s
            )
        run.call.approval_id = answer.approval_id
        return await self._deny(run.call, required)

    async def _run(self, run: _Run) -> Outcome:
        call, tool, session = run.call, run.tool, run.session
        upstream = self._upstreams.get(tool.server)
        full = self._in_flight.refusal(call.key_id)
        if upstream is None or full is not None:
            await self._reveal(call, tool, session, join_all(call.handle_labels.values()))
        if upstream is None:
            return await self._refuse(call, Reason.UPSTREAM_FAILED, "No tool server is connected for this tool.")
        if full is not None:
            return await self._refuse(call, Reason.OVERLOADED, full)
        if session.context != run.facts.context:
            raise ContextMoved
        self._in_flight.enter(call.key_id)
        try:
            if tool.sends_readers:
                # A person's session reads as that person does, the agent's own as its key does.
                call.readers = self._readers_of(session.user_key_id or session.key_id)
            await self._intend(run)
            started = time.perf_counter()
            try:
                reply = await self._reply(run, upstream)
            except BaseException:  # this server stops, or the upstream broke its promise not to raise
                await self._journal.append(CallOutcome(audit_id=call.audit_id, status=OutcomeStatus.UNKNOWN))
                raise
            try:
                return await self._finish(run, reply, (time.perf_counter() - started) * 1e3)
            except UnavailableError as away:
                # Whichever record could not be written: the call has run, and must not look as if it had not.
                if tool.effect is Effect.READ:
                    raise
                raise OutcomeLost(str(away), next_step=away.next_step) from away
        finally:
            self._in_flight.leave(call.key_id)

    async def _reply(self, run: _Run, upstream: Upstream) -> UpstreamReply:
        """What the tool server answers. A call that only reads is stopped once its caller has left."""
        call, tool = run.call, run.tool
        asked = partial(
            upstream.call,
            tool.name,
            run.arguments,
            principal=call.key_id,
            session_id=run.session.session_id,
            timeout_s=tool.timeout_s or self._limits.tool_seconds,
            readers=call.readers,
        )
        if call.caller is None or tool.effect is not Effect.READ:
            return await asked()
        with anyio.CancelScope() as waiting, call.caller.heard_by(waiting.cancel):
            return await asked()
        return nobody_waits()

    async def _intend(self, run: _Run) -> None:
        """Raise every label that the call may raise, and write the intent, in one transaction."""
        call, tool, session, judgement = run.call, run.tool, run.session, run.judgement
        works: list[Work[object]] = [
            session.raise_to(judgement.revealed, audit_id=call.audit_id, tool=tool.name, now=self._clock())
        ]
        if tool.reads:
            works.append(self._stores.resources.confirm(run.reads, run.facts.resources))
        if tool.across_sessions:  # before this call raises its own session
            works.insert(0, self._stores.sessions.confirm_seen(session, run.facts.seen))
        if tool.writes:
            written = join_all(entry.label for entry in judgement.arguments)
            works.append(self._stores.resources.raise_to(resources_of(tool.writes, run.arguments.value), written))
        if run.approval_id is not None:
            works.append(self._stores.approvals.consume(run.approval_id, run.binding()))
        if tool.fields.hides:
            works.append(lambda connection: setattr(call, "result", next_result(connection, session.session_id)))
        passing = dict.fromkeys(judgement.passes, PASSED)
        if judgement.step is not None:
            passing[used(judgement.step)] = PLAN
        if any(value in session.named for value in passing):
            raise ContextMoved
        works += [session.pass_once(value, by) for value, by in passing.items()]
        try:
            await self._record_intent(run, works)
        except BaseException:
            for value in passing:  # it did not run: nothing has passed, unless the file says so
                session.named.pop(value, None)
            raise

    async def _record_intent(self, run: _Run, works: Sequence[Work[object]]) -> None:
        call, tool, session, judgement = run.call, run.tool, run.session, run.judgement
        await self._journal.append(
            CallIntended(
                audit_id=call.audit_id,
                key_id=call.key_id,
                session_id=session.session_id,
                tool=tool.name,
                requested_tool=call.wish.tool_name if call.wish else tool.name,
                server=tool.server,
                effect=tool.effect.value,
                arguments=run.arguments.value,
                arguments_sha256=run.arguments.sha256,
                rule_id=run.rule_id,
                label=judgement.revealed,
                context_before=run.facts.context,
                context_after=session.context,
                policy_sha256=call.policy.sha256,
                approval_id=run.approval_id,
                flow=call.flow,
                readers=None if call.readers is None else tuple(sorted(call.readers)),
            ),
            alongside=_all_of(works),
        )

    async def _finish(self, run: _Run, reply: UpstreamReply, duration_ms: float) -> Outcome:
        """Take out what the agent may not see, and write the outcome with it."""
        call, tool, session = run.call, run.tool, run.session
        alongside: Work[object] | None = None
        endorsed: Mapping[str, frozenset[NamedValue]] = {}
        value: JsonValue = None
        told = run.judgement.revealed
        if isinstance(reply, Returned):
            value = reply.value
            rows = row_labels_of(tool.row_labels, reply.value, reply.row_labels)
            view = view_of(reply.value, reply.encoded, tool.fields, run.judgement.base, call.result, rows)
            told = told.join(view.rows)
            if run.judgement.step is not None:
                hidden = [each.reference.path for each in view.hidden]
                endorsed = {PLAN: chosen(run.judgement.step, reply.value, session.named, hidden, call.policy.kinds)}
            if not await self._reveal_rows(run, view.rows):
                reply = Unanswered(Reason.CONFLICT, QueryError(code=QueryErrorCode.CONFLICT, message=CLOSED), True)
                return await self._record_outcome(run, reply, duration_ms)
            if view.hidden:
                alongside = self._stores.handles.keep(session.session_id, view.hidden)
            if view.encoded is not reply.encoded:
                reply = replace(reply, encoded=view.encoded)
        elif isinstance(reply, ToolFailed) and tool.fields.hides:
            # Its text may quote what the policy hides.
            withheld = "The tool failed; its message is withheld, because the policy hides parts of its results."
            reply = ToolFailed(QueryError(code=reply.error.code, message=withheld))
        outcome = await self._record_outcome(run, reply, duration_ms, alongside)
        if isinstance(outcome, Completed):
            outcome = replace(outcome, label=told, context=session.context)
        if value is not None:
            # Not before the last pause: of two calls at once the second has to see what the first one named.
            endorsed = {**endorsed, **endorsed_values(call.policy, tool, run.judgement, value, session.named)}
        named = [(source, *session.name(values, source)) for source, values in endorsed.items()]
        for source, fresh, write in named:
            if fresh:
                await self._journal.append(
                    ValuesNamed(
                        audit_id=call.audit_id,
                        key_id=call.key_id,
                        session_id=session.session_id,
                        source=source,
                        values=tuple((str(value.kind), value.text) for value in fresh),
                    ),
                    alongside=write,
                )
        return outcome

    async def _record_outcome(
        self, run: _Run, reply: UpstreamReply, duration_ms: float, alongside: Work[object] | None = None
    ) -> Outcome:
        outcome, record = outcome_of(reply, run.tool, run.call.audit_id, duration_ms)
        await self._journal.append(record, alongside=alongside)
        return outcome

    async def _reveal_rows(self, run: _Run, label: Label) -> bool:
        """Raise the context by what the rows of a result carry beyond what the policy foresaw, before any of it is
        told; False if the session was closed meanwhile, and nothing may be told."""
        if label.flows_to(run.judgement.revealed):
            return True
        while not run.session.closed:
            try:
                await self._reveal(run.call, run.tool, run.session, label)
            except ContextMoved:
                await self._stores.sessions.refresh(run.session)
            else:
                return True
        return False

    async def _resolve(self, call: _Call, session: Session) -> Mapping[Reference, JsonValue]:
        """The values of the call's handles; their labels are noted in the call. Raises NoSuchHandle."""
        if not call.references:
            return {}
        wanted = {reference for references in call.references.values() for reference in references}
        stored = await self._stores.handles.resolve(session.session_id, wanted)
        call.handle_labels = {
            name: join_all(stored[reference].label for reference in references)
            for name, references in call.references.items()
        }
        return {reference: found.value for reference, found in stored.items()}

    async def _reveal(self, call: _Call, tool: ToolPolicy, session: Session, label: Label) -> bool:
        """Raise the context by what the answer to this call is about to tell, though no tool runs; whether it rose."""
        before = session.context
        if label.flows_to(before) and (session.user_key_id is not None or label == BOTTOM):
            return False  # in a session of the agent's own, a person's session may still have to rise
        raising = session.raise_to(label, audit_id=call.audit_id, tool=tool.name, now=self._clock())
        await self._journal.append(
            ContextRaised(
                audit_id=call.audit_id,
                key_id=call.key_id,
                session_id=session.session_id,
                tool=tool.name,
                context_before=before,
                context_after=session.context,
            ),
            alongside=raising,
        )
        return session.context != before

    async def _deny(self, call: _Call, deny: Deny) -> Denied:
        await self._journal.append(call.refusal(deny.reason, deny))
        return Denied(deny, call.audit_id, call.approval_id)

    async def _refuse(self, call: _Call, reason: Reason, detail: str, error: QueryError | None = None) -> NotCompleted:
        await self._journal.append(call.refusal(reason))
        return NotCompleted(reason, detail, call.audit_id, error)

    async def _refuse_for_now(self, call: _Call, wait_s: float) -> NotCompleted:
        error = QueryError(
            code=QueryErrorCode.THROTTLED,
            message="This key calls too often.",
            next_step="Wait and call again.",
            retry_after_s=wait_s,
        )
        return await self._refuse(call, Reason.RATE_LIMITED, error.message, error)

    async def _refuse_arguments(self, call: _Call, fault: ArgumentFault) -> NotCompleted:
        error = QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT,
            message=fault.message,
            next_step="Correct the argument and call again.",
            field=fault.field,
            allowed=fault.allowed,
        )
        return await self._refuse(call, Reason.INVALID_ARGUMENT, fault.message, error)


@dataclass(slots=True)
class _Call:
    """One call on its way through the gate; what is not yet known to be good is None. `result` is its number among the
    results of its session, where the tool hides parts."""

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
    caller: Departure | None = None
    result: int = 0
    readers: frozenset[str] | None = None

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
class _Run:
    """A call that the policy allows, or would with an approval."""

    call: _Call
    tool: ToolPolicy
    session: Session
    arguments: CanonicalArguments
    facts: Facts
    judgement: Judgement
    rule_id: str
    reads: Sequence[str]
    approval_id: str | None = None

    def binding(self) -> Binding:
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
        )


def _all_of(works: Sequence[Work[object]]) -> Work[object]:
    if len(works) == 1:
        return works[0]

    def write(connection: Connection) -> None:
        for work in works:
            work(connection)

    return write
