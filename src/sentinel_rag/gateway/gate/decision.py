"""Deciding one call: handles become values, arguments their canonical form, labels a judgement, and that is followed.

The judgement itself is a pure function (`flow.judging`); this module gathers what it needs and asks a person where the
rule lets it. What a person is shown of what the call would change is read by the gateway itself, on record before it is
read; it changes nothing and reaches nobody but whoever decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, assert_never

from sentinel_rag.audit import Journal, JournalEntry, OutcomeStatus, RecordFilter
from sentinel_rag.audit.approval_events import PreviewRead
from sentinel_rag.contracts.decisions import Allow, Deny, Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Label, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.approvals import (
    ApprovalQuestion,
    ApprovalSpent,
    Asker,
    Binding,
    CallSubject,
    DecidedBy,
    DeniedBefore,
    EarlierRead,
    FieldChange,
    TurnedAway,
    Waiting,
    question_about,
    said_in,
)
from sentinel_rag.gateway.arguments import ArgumentFault, CanonicalArguments, fit
from sentinel_rag.gateway.flow import CallFacts, HandleReference, NoSuchHandle, find_references, judge, put_values
from sentinel_rag.gateway.flow.judging import Violation, flow_record, refused_whatever
from sentinel_rag.gateway.flow.view import step_into
from sentinel_rag.gateway.gate.call import Call, DecidedCall, Endings, EnteredCall, Stores
from sentinel_rag.gateway.gate.running import Running
from sentinel_rag.gateway.limits import GatewayLimits
from sentinel_rag.gateway.outcomes import Completed, DeniedCall, Outcome, outcome_told
from sentinel_rag.gateway.policy import Effect, Policy, Preview, Remembers, TaintRule, ToolPolicy, Volume
from sentinel_rag.gateway.policy.fields import Path
from sentinel_rag.gateway.store import ContextMoved, Session, resources_of
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
