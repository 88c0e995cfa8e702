"""Whether a call comes in, and its decision: handles become values, arguments their canonical form, labels a judgement,
which is made again when labels have risen.

A call is decided by labels that this process holds in memory, and no other call can be decided between that and the
rise of the context label. If the file turns out to know more, or an answer was awaited meanwhile, it is decided again.
A call that a person approves runs at that moment, the whole way through the gate, as its agent's; where anything that
the approval is bound to has changed, it does not run, and a person is asked anew.

The judgement itself is a pure function (`flow.judging`); this module gathers what it needs and asks a person where the
rule lets it. What a person is shown of what the call would change is read by the gateway itself, on record before it is
read; it changes nothing and reaches nobody but whoever decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, assert_never

from sentinel_rag.audit import Journal, JournalEntry, OutcomeStatus, RecordFilter
from sentinel_rag.audit.events import PreviewRead
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, TOP, Label, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import OWN_SERVERS, ClientDisconnect
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.admission import GatewayLimits, RateLimiter
from sentinel_rag.gateway.approvals import (
    Approval,
    ApprovalQuestion,
    ApprovalSpent,
    ApprovalState,
    ApprovalStore,
    Asker,
    Binding,
    CallSubject,
    DecidedBy,
    DeniedBefore,
    EarlierRead,
    FieldChange,
    TurnedAway,
    Waiting,
    YesOutcome,
    question_about,
    said_in,
)
from sentinel_rag.gateway.flow import CallFacts, HandleReference, NoSuchHandle, find_references, judge, put_values
from sentinel_rag.gateway.flow.judging import Violation, flow_record, refused_whatever
from sentinel_rag.gateway.flow.view import step_into
from sentinel_rag.gateway.gate.call import CLOSED, Call, DecidedCall, Endings, EnteredCall, Intent, Stores
from sentinel_rag.gateway.gate.running import ResultRecorder, Running
from sentinel_rag.gateway.pins import Pins, Quarantined
from sentinel_rag.gateway.policy import Effect, Policies, Policy, Preview, Remembers, TaintRule, ToolPolicy, Volume
from sentinel_rag.gateway.policy.model import UNKNOWN_TOOL, Path
from sentinel_rag.gateway.request_body import ArgumentFault, CanonicalArguments, ExecuteRequest, fit
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted, Outcome, outcome_kept, outcome_told
from sentinel_rag.gateway.store import (
    ContextMoved,
    Principal,
    Session,
    SessionClosed,
    SessionStore,
    TooManySessions,
    resources_of,
)
from sentinel_rag.gateway.store.session_tables import VolumeExceeded
from sentinel_rag.gateway.upstream import Returned, ToolFailed, Upstream, UpstreamCall

LONGEST_S = 10.0
"""A person is asked without a preview rather than late."""

MAX_EVIDENCE = 8
EVIDENCE_OF = timedelta(days=1)


class Previews:
    """`upstreams` maps the policy's `server` names to tool servers."""

    def __init__(
        self, journal: Journal, upstreams: Mapping[str, Upstream], limits: GatewayLimits, clock: Clock
    ) -> None:
        self._journal = journal
        self._upstreams = upstreams
        self._limits = limits
        self._clock = clock

    async def of(self, wanted: DecidedCall) -> CallSubject | QueryError | None:
        """What the call would change; the tool server's error where its arguments cannot be used; None where nothing
        can be read. Raises UnavailableError if the reading cannot be recorded."""
        tool, preview = wanted.tool, wanted.tool.preview
        upstream = self._upstreams.get(tool.server)
        if preview is None or upstream is None:
            return None
        given = wanted.arguments.value
        handed = CanonicalArguments.of(
            {name: value for name, value in given.items() if not preview.arguments or name in preview.arguments}
        )
        await self._journal.append(
            PreviewRead(
                audit_id=wanted.call.audit_id,
                key_id=wanted.call.key_id,
                session_id=wanted.session.session_id,
                tool=preview.tool,
                server=tool.server,
                arguments_sha256=handed.sha256,
            )
        )
        reply = await upstream.call(
            UpstreamCall(
                tool=preview.tool,
                arguments=handed,
                principal=wanted.call.key_id,
                session_id=wanted.session.session_id,
                timeout_s=min(LONGEST_S, tool.timeout_s or self._limits.tool_seconds),
            )
        )
        if isinstance(reply, Returned):
            return _subject(preview, reply.value, given)
        ours = tool.server in OWN_SERVERS
        if ours and isinstance(reply, ToolFailed) and reply.error.code is QueryErrorCode.INVALID_ARGUMENT:
            return reply.error
        return None

    async def evidence(self, wanted: DecidedCall) -> tuple[EarlierRead, ...]:
        """The newest calls of the session that read something: first those that asked for what the call is for."""
        session_id = wanted.session.session_id
        found = await self._journal.back(
            RecordFilter(kind="intent", session_id=session_id, since=self._clock() - EVIDENCE_OF), None, 100
        )
        things = frozenset(resources_of(wanted.tool.writes, wanted.arguments.value))
        read = [_evidence(wanted, entry, things) for entry in found.entries if _has_read(entry)]
        return tuple(sorted(read, key=lambda each: not each.about)[:MAX_EVIDENCE])


def _has_read(entry: JournalEntry) -> bool:
    return entry.record.get("effect") == Effect.READ.value and entry.outcome is OutcomeStatus.SUCCESS


def _evidence(wanted: DecidedCall, entry: JournalEntry, things: Iterable[str]) -> EarlierRead:
    """Whether a read was about the thing says the text by which both name it."""
    arguments: JsonObject = entry.record.get("arguments") or {}
    asked = {resource for template in wanted.tool.writes for resource in resources_of([template], arguments)}
    return EarlierRead(entry.audit_id, str(entry.record["tool"]), str(entry.record["at"]), not asked.isdisjoint(things))


def _subject(preview: Preview, result: Any, arguments: JsonObject) -> CallSubject | None:
    """None where the result is not of the form that the policy says."""
    try:
        told = step_into(result, preview.changes) if preview.changes else None
        changes = _told_changes(told) if preview.changes else _replaced(preview, result, arguments)
    except (NoSuchHandle, TypeError, KeyError):
        return None
    number, name = (_text_at(result, path) for path in (preview.number, preview.name))
    state = {field: _value_at(result, path) for field, path in preview.state.items()}
    return CallSubject(number, name, state, changes)


def _told_changes(told: Any) -> tuple[FieldChange, ...]:
    """Raises TypeError or KeyError for what is no list of changes."""
    if not isinstance(told, list):
        raise TypeError("no list")
    return tuple(FieldChange(str(each["field"]), each["before"], each["after"]) for each in told)


def _replaced(preview: Preview, result: Any, arguments: JsonObject) -> tuple[FieldChange, ...]:
    found = (
        FieldChange(name, _value_at(result, path), arguments[name])
        for name, path in preview.fields.items()
        if name in arguments
    )
    return tuple(change for change in found if change.before != change.after)


def _value_at(result: Any, path: Path) -> JsonValue:
    try:
        value: JsonValue = step_into(result, path)
    except NoSuchHandle:
        return None
    return value


def _text_at(result: Any, path: Path) -> str:
    value = _value_at(result, path) if path else None
    return "" if value is None else str(value)


MAY_BE_GRANTED = (Reason.APPROVAL_REQUIRED, Reason.SINK_LABEL)
"""What a person's approval can make up for, where the rule lets one be asked."""


class CallDecider:
    """Decides calls that have entered, by the labels of `stores` as they are now."""

    def __init__(
        self,
        stores: Stores,
        running: Running,
        endings: Endings,
        previews: Previews,
        name_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._name_of = name_of
        self._previews = previews
        self._stores = stores
        self._running = running
        self._endings = endings

    async def attempt(self, entered: EnteredCall, sent: JsonObject) -> Outcome:
        """Decide, by what is known now, and do what was decided. Raises ContextMoved to be asked again."""
        call = entered.call
        try:
            call.references = find_references(sent)
            values = await self._resolve(entered)
        except NoSuchHandle as fault:
            await self._endings.reveal(entered, fault.told)
            return await self._endings.refuse_arguments(
                call, ArgumentFault("", f"The arguments name a handle: {fault}.")
            )
        arguments = fit(
            entered.tool, {name: put_values(value, values) for name, value in sent.items()} if values else sent
        )
        if isinstance(arguments, ArgumentFault):
            await self._endings.reveal(entered, entered.handles_label())
            return await self._endings.refuse_arguments(call, arguments)
        call.arguments = arguments
        return await self._judge(entered, arguments)

    async def _resolve(self, entered: EnteredCall) -> Mapping[HandleReference, JsonValue]:
        """The values of the call's handles; their labels are noted in the call. Raises NoSuchHandle."""
        call = entered.call
        if not call.references:
            return {}
        wanted = {reference for references in call.references.values() for reference in references}
        stored = await self._stores.handles.resolve(entered.session.session_id, wanted)
        call.handle_labels = {
            name: join_all(stored[reference].label for reference in references)
            for name, references in call.references.items()
        }
        return {reference: found.value for reference, found in stored.items()}

    async def _judge(self, entered: EnteredCall, arguments: CanonicalArguments) -> Outcome:
        call, tool, session = entered.call, entered.tool, entered.session
        reads = resources_of(tool.reads, arguments.value)
        stored = await self._stores.resources.of(reads)
        memory = await self._memory(call.policy, tool, session, call.remembers())
        counted = memory if tool.across_sessions else BOTTOM
        facts = CallFacts(session.context, call.handle_labels, session.named, stored, counted)
        judgement = judge(call.policy, tool, arguments.value, facts)
        call.flow = flow_record(judgement, facts, call.references)
        decision = judgement.decision
        match decision:
            case Allow():
                allowed = DecidedCall(entered, arguments, facts, judgement, decision.rule_id, reads, memory)
                rule = tool.rule(decision.rule_id)
                if rule is not None and rule.runs_at_yes and (told := await self._told(allowed)):
                    return told
                try:
                    return await self._running.run(allowed)
                except VolumeExceeded as exceeded:
                    return await self._ask_for_volume(allowed.at_present(), exceeded.volume)
            case Deny():
                await self._unless_more_is_known(entered, decision)
                rule = tool.rule(decision.rule_id)
                if rule is None or not rule.may_ask or decision.reason not in MAY_BE_GRANTED:
                    return await self._endings.deny(call, decision)
                wanted = DecidedCall(entered, arguments, facts, judgement, rule.rule_id, reads, memory)
                return await self._run_if_approved(wanted, rule, decision)
            case _:
                assert_never(decision)

    async def refused_whatever(
        self, policy: Policy, tool: ToolPolicy, session: Session, remembers: Remembers
    ) -> tuple[Violation, ...]:
        """What every call of the tool would violate now in the session."""
        memory = await self._memory(policy, tool, session, remembers) if tool.across_sessions else BOTTOM
        facts = CallFacts(session.context, named=session.named, memory=memory)
        return refused_whatever(policy, tool, facts)

    async def _memory(self, policy: Policy, tool: ToolPolicy, session: Session, remembers: Remembers) -> Label:
        """What the agent may remember, where anything asks for it: a sink, a person, what the call writes, and whether
        the rows that it finds are of the agent's choice."""
        finds = any(rule.tool == tool.name and rule.rows is not None for rule in policy.endorsements)
        if not (tool.across_sessions or tool.writes or finds or any(rule.may_ask for rule in tool.rules)):
            return BOTTOM
        return await self._stores.sessions.seen_elsewhere(session, remembers)

    async def _unless_more_is_known(self, entered: EnteredCall, deny: Deny) -> None:
        """Raises ContextMoved where the call has to be decided again before it is denied."""
        # A refusal may hang on the values behind handles, their types and forms too; so whoever is refused may learn
        # something of them. (A call that runs raises the context by what its arguments carry.)
        if await self._endings.reveal(entered, entered.handles_label()):
            raise ContextMoved
        # Another process may have heard words of the person that name the value.
        if deny.reason is Reason.SINK_LABEL and await self._stores.sessions.refresh(entered.session):
            raise ContextMoved

    async def _run_if_approved(self, wanted: DecidedCall, rule: TaintRule, deny: Deny) -> Outcome:
        """Run by an approval that a person has given; without one, ask for it and deny."""
        call, approvals = wanted.call, self._stores.approvals
        if rule.runs_at_yes and (told := await self._told(wanted)):
            return told
        subject = await self._previews.of(wanted)
        if isinstance(subject, QueryError):
            return await self._refuse_what_cannot_be(wanted, subject)
        wanted = replace(wanted, subject=subject)
        binding = wanted.binding()
        approval_id = await approvals.approved(binding)
        if approval_id is not None:
            try:
                return await self._running.run(replace(wanted, approval_id=approval_id))
            except ApprovalSpent:  # another call was first: this one has to ask again
                pass
        holds = call.policy.denial_holds
        answer = await approvals.answered_already(binding, holds)
        if answer is None:
            question = await self._question(wanted, rule, deny.reason)
            sent: JsonObject | None = None
            if rule.runs_at_yes and call.request is not None:
                sent = {"args": dict(call.request.args), "marks_quotes": call.request.marks_quotes}
            answer = await approvals.request(binding, question, sent, holds=holds)
        required = replace(deny, reason=Reason.APPROVAL_REQUIRED)
        if not isinstance(answer, Waiting):
            if isinstance(answer, DeniedBefore):  # on record only: nothing waits under this id
                call.approval_id = answer.approval_id
            denied = replace(await self._endings.deny(call, required), approval_id=None)
            return await self._not_asked(call, binding, answer, denied)
        call.approval_id = answer.approval_id
        denied = await self._endings.deny(call, required)
        by_asker = rule.asks_the_asker and wanted.session.user_key_id is not None
        return replace(denied, by_asker=by_asker, runs_at_yes=rule.runs_at_yes)

    async def _told(self, decided: DecidedCall) -> Outcome | None:
        """What came of exactly this call when a person approved it, for the agent that sends it again; once."""
        kept = await self._stores.approvals.take(decided.binding(), decided.call.audit_id)
        told = None if kept is None else outcome_told(kept)
        if not isinstance(told, Completed):
            return told
        # The context rose when it ran.
        label, shown = decided.judgement.revealed, decided.tool.fields.exposures
        return replace(told, label=label, context=decided.session.context, exposures=shown)

    async def _refuse_what_cannot_be(self, wanted: DecidedCall, error: QueryError) -> Outcome:
        """Tell the agent why the call cannot be made, as if it had been: nobody is asked about it."""
        if await self._endings.reveal(wanted.entered, wanted.judgement.revealed):
            raise ContextMoved
        return await self._endings.refuse(wanted.call, Reason.INVALID_ARGUMENT, error.message, error)

    async def _ask_for_volume(self, read: DecidedCall, volume: Volume) -> Outcome:
        """Ask whether what was read may be told, when the same call comes again. Its end is on record already."""
        call, rule = read.call, read.tool.rule(read.rule_id)
        assert rule is not None
        memory = await self._stores.sessions.seen_elsewhere(read.session, call.remembers())
        question = await self._question(replace(read, memory=memory), rule, Reason.APPROVAL_REQUIRED)
        binding = read.binding()
        answer = await self._stores.approvals.request(
            binding,
            replace(question, why=volume.sentence(), decided_by=DecidedBy.OTHER),
            holds=call.policy.denial_holds,
        )
        deny = Deny(Reason.APPROVAL_REQUIRED, read.judgement.revealed, read.rule_id)
        if not isinstance(answer, Waiting):
            return await self._not_asked(call, binding, answer, DeniedCall(deny, call.audit_id))
        return DeniedCall(deny, call.audit_id, answer.approval_id, volume.sentence())

    async def _not_asked(
        self, call: Call, binding: Binding, answer: TurnedAway | DeniedBefore, denied: DeniedCall
    ) -> DeniedCall:
        """The refusal of a call about which no person is asked, with what helps."""
        if isinstance(answer, TurnedAway):
            await self._stores.approvals.note_bound(binding, answer, call.audit_id)
            return replace(denied, note=answer.sentence, retry_after_s=answer.retry_after_s)
        who = answer.actor or self._name_of(answer.decider) or answer.decider
        note = (
            f"{who} denied this call on {answer.at:%Y-%m-%d at %H:%M} UTC, and nobody is asked about it again before "
            f"{answer.until:%Y-%m-%d at %H:%M} UTC. Whoever may decide it takes that back with: sentinel approvals "
            f"lift {answer.approval_id}"
        )
        return replace(denied, note=note, retry_after_s=answer.retry_after_s)

    async def _question(self, wanted: DecidedCall, rule: TaintRule, reason: Reason) -> ApprovalQuestion:
        """What a person is asked: the call, whom the agent asks for, and all that it may have been steered by."""
        sessions, session, remembers = self._stores.sessions, wanted.session, wanted.call.remembers()
        person = session.user_key_id
        named = tuple(entry.name for entry in wanted.judgement.arguments if entry.is_named)
        asker = Asker()
        if person is not None:
            words = await sessions.words(session)
            said = said_in(words, wanted.tool, wanted.arguments.value)
            asker = Asker(self._name_of(person) or person, words, named, said)
        elsewhere = () if wanted.memory == BOTTOM else await sessions.raises_elsewhere(session, remembers)
        return question_about(
            wanted.tool,
            rule,
            reason,
            wanted.arguments.value,
            wanted.judgement.violations,
            await sessions.raises(session),
            asker=asker,
            memory=wanted.memory,
            remembered=elsewhere,
            subject=wanted.subject,
            evidence=await self._previews.evidence(wanted),
        )


NotEntered = DeniedCall | NotCompleted


class Entrance:
    """`servers` names the tool servers that are connected; a tool that is `switched_off` is denied whatever its rules
    say."""

    def __init__(
        self,
        sessions: SessionStore,
        endings: Endings,
        *,
        limits: GatewayLimits,
        rates: RateLimiter,
        pins: Pins,
        servers: Collection[str],
        switched_off: Collection[str],
    ) -> None:
        self._sessions = sessions
        self._endings = endings
        self._limits = limits
        self._rates = rates
        self._pins = pins
        self._servers = servers
        self._switched_off = frozenset(switched_off)

    async def enter(
        self, call: Call, principal: Principal, request: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        """The call with its session and tool; or the answer, which is on record. `looking` is for a person who reads
        alone. Whatever is turned away counts for the rate of the key as a call does."""
        entered = await self._with_session_and_tool(call, principal, request, looking=looking)
        if not isinstance(entered, EnteredCall):
            # It ends before the rate of a tool is asked and is on record all the same: so it counts for its key's.
            self._rates.take(principal.key_id, principal.rate)
            return entered
        # One agent serves many people: what one of them, or whoever steers their conversation, uses up of a tool is
        # taken from nobody else.
        whose = entered.session.user_key_id or principal.key_id
        wait_s = self._rates.take(principal.key_id, principal.rate, entered.tool.name, entered.tool.rate, tool_of=whose)
        if wait_s is not None:
            # By the tool's rate or the key's: a key that goes on and on all the same comes to the end of its own.
            self._rates.take(principal.key_id, principal.rate)
            return await self._endings.refuse_for_now(call, wait_s)
        turned_away = await self._unless_readable(entered, request) if looking else None
        return turned_away or await self._unless_pinned(entered) or entered

    async def _with_session_and_tool(
        self, call: Call, principal: Principal, request: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        try:
            session = await self._sessions.claim(
                request.session_id,
                principal.key_id,
                user_key_id=principal.key_id if looking else None,
                most=self._limits.sessions_per_key,
            )
        except SessionClosed as closed:
            return await self._endings.refuse(call, Reason.CONFLICT, f"{closed} {closed.next_step}")
        except TooManySessions as many:
            return await self._endings.refuse(call, Reason.RATE_LIMITED, f"{many} {many.next_step}")
        # A key that may execute too does not act as an agent where its person looks, nor the other way round.
        if session is None or (session.user_key_id == principal.key_id) is not looking:
            return await self._endings.refuse(call, Reason.NOT_FOUND, "There is no such session.")
        call.session = session
        if call.tool is None:
            return await self._endings.deny(call, UNKNOWN_TOOL)
        if call.tool.name in self._switched_off:
            denied = await self._endings.deny(call, Deny(Reason.TOOL_SWITCHED_OFF, TOP))
            return replace(denied, note="The operator has not switched this tool on.")
        if request.if_effect is not None and request.if_effect is not call.tool.effect:
            return await self._endings.refuse_effect(call, request.if_effect)
        return EnteredCall(call, call.tool, session)

    async def _unless_readable(self, entered: EnteredCall, request: ExecuteRequest) -> NotEntered | None:
        """None for a call that a person may make alone; else the answer."""
        if entered.tool.effect is not Effect.READ:
            denied = await self._endings.deny(entered.call, Deny(Reason.MISSING_SCOPE, TOP))
            return replace(denied, note="A person looks with tools that only read; ask the agent for what changes.")
        with suppress(NoSuchHandle):
            if not find_references(request.args):
                return None
        # A tool may repeat what it was asked, and so tell what the person's clearance does not cover.
        return await self._endings.refuse_arguments(
            entered.call, ArgumentFault("", "A look takes values and no handles.")
        )

    async def _unless_pinned(self, entered: EnteredCall) -> NotEntered | None:
        """None if the tool is what it was when its definition was accepted; else the answer."""
        call, tool = entered.call, entered.tool
        pin = self._pins.sha256_of(tool)
        if pin is None and tool.server in self._servers and not await self._pins.learn(tool.server):
            message = "The tool server does not list its tools."
            error = QueryError(
                code=QueryErrorCode.UNAVAILABLE,
                message=message,
                next_step="Check that the tool server runs; ask again.",
            )
            return await self._endings.refuse(call, Reason.UPSTREAM_FAILED, message, error)
        call.pin = pin or self._pins.sha256_of(tool)
        if isinstance(call.pin, Quarantined):
            denied = await self._endings.deny(call, Deny(Reason.TOOL_QUARANTINED, TOP))
            return replace(denied, note="The definition of the tool has changed; an administrator has to accept it.")
        return None


MAX_ATTEMPTS = 10
"""How often a call is decided again because labels rose meanwhile. A context label can rise three times in all."""


class Gate:
    """Judges and runs calls. `upstreams` maps the policy's `server` names to tool servers; a tool that is
    `switched_off` is denied whatever its rules say. `readers_of` tells under which names a key may read, `name_of` the
    name of a key."""

    def __init__(
        self,
        *,
        policies: Policies,
        stores: Stores,
        upstreams: Mapping[str, Upstream],
        limits: GatewayLimits,
        rates: RateLimiter,
        pins: Pins,
        switched_off: Collection[str] = (),
        new_id: Callable[[], str],
        clock: Clock,
        readers_of: Callable[[str], frozenset[str]] = lambda _: frozenset(),
        name_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._policies = policies
        self._sessions = stores.sessions
        self._new_id = new_id
        self._endings = Endings(stores.journal, clock)
        self._entrance = Entrance(
            stores.sessions,
            self._endings,
            limits=limits,
            rates=rates,
            pins=pins,
            servers=upstreams,
            switched_off=switched_off,
        )
        self._running = Running(
            stores.journal,
            self._endings,
            intent=Intent(stores, clock),
            result=ResultRecorder(stores, self._endings, clock),
            upstreams=upstreams,
            limits=limits,
            readers_of=readers_of,
        )
        previews = Previews(stores.journal, upstreams, limits, clock)
        self._decision = CallDecider(stores, self._running, self._endings, previews, name_of)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return self._running.calls_in_flight

    async def execute(
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None = None
    ) -> Outcome:
        """Judge one call and run it if allowed. Raises UnavailableError if it cannot be recorded; then it did not run,
        or its outcome is on record as unknown. `caller` tells when nobody waits for the outcome any more: a call that
        only reads is then stopped, any other goes on to its end, and the outcome of both is recorded."""
        return await self._take(principal, request, caller)

    async def look(
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None = None
    ) -> Outcome:
        """`execute` for a person who reads without an agent: only what reads, in a session of the person's own key.

        No agent's key enters such a session, so nothing of a conversation reaches it; it raises no conversation, since
        labels rise within the sessions of one key.
        """
        return await self._take(principal, request, caller, looking=True)

    async def refused_now(self, principal: Principal, session: Session) -> Mapping[str, tuple[Violation, ...]]:
        """The tools whose every call would be refused now in the session, because of what it has seen, without a
        person being asked: by name, with what each call violates."""
        await self._sessions.refresh(session)
        policy, found = self._policies.current, {}
        remembers = policy.remembers(principal.key_id, principal.name)
        for name, tool in policy.tools.items():
            if violations := await self._decision.refused_whatever(policy, tool, session, remembers):
                found[name] = violations
        return found

    async def refuse_body(self, principal: Principal, fault: str) -> NotCompleted:
        """Record and answer a call whose body could not be read."""
        call = Call(self._new_id(), principal.key_id, self._policies.current)
        return await self._endings.refuse_body(call, fault)

    async def _take(
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None, *, looking: bool = False
    ) -> Outcome:
        policy = self._policies.current
        call = Call(self._new_id(), principal.key_id, policy, request, policy.tool(request.tool_name), caller=caller)
        call.key_name = principal.name
        entered = await self._entrance.enter(call, principal, request, looking=looking)
        if not isinstance(entered, EnteredCall):
            return entered
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._decision.attempt(entered, request.args)
            except ContextMoved:
                await self._sessions.refresh(entered.session)
                if entered.session.closed:
                    return await self._endings.refuse(call, Reason.CONFLICT, CLOSED)
        return await self._endings.refuse(
            call, Reason.OVERLOADED, "The session's labels keep rising; try again in a moment."
        )


class AtYes:
    """Runs approved calls through `gate`; `live` gives the principal of a key that lives."""

    def __init__(self, gate: Gate, approvals: ApprovalStore, live: Callable[[str], Principal | None]) -> None:
        self._gate = gate
        self._approvals = approvals
        self._live = live

    async def run(self, approval: Approval) -> Approval:
        """The approval once its call has run, if it was approved and runs at the yes. Raises UnavailableError where
        nothing can be recorded."""
        if approval.state is not ApprovalState.APPROVED or not approval.question.runs_at_yes or approval.sent is None:
            return approval
        principal = self._live(approval.binding.key_id)
        if principal is None:  # its agent is gone, and nobody else may act for it
            return await self._approvals.keep(approval, YesOutcome("error", "", Reason.UNAUTHENTICATED.value), b"")
        sent: dict[str, Any] = dict(approval.sent)
        request = ExecuteRequest(
            approval.binding.session_id, approval.binding.tool, sent["args"], marks_quotes=sent["marks_quotes"]
        )
        outcome = await self._gate.execute(principal, request)
        return await self._approvals.keep(approval, _ran(outcome), outcome_kept(outcome))


def _ran(outcome: Outcome) -> YesOutcome:
    match outcome:
        case Completed(audit_id=audit_id):
            return YesOutcome("success", audit_id)
        case DeniedCall(deny=deny, audit_id=audit_id, approval_id=approval_id):
            return YesOutcome("denied", audit_id, deny.reason.value, approval_id or "")
        case NotCompleted(reason=reason, audit_id=audit_id):
            return YesOutcome("error", audit_id, reason.value)
        case _:
            assert_never(outcome)
