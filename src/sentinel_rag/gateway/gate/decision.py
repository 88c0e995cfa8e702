"""Deciding one call: handles become values, arguments their canonical form, labels a judgement, and that is followed.

The judgement itself is a pure function (`flow.judging`); this module gathers what it needs and asks a person where the
rule lets it. `running` does what was decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from sentinel_rag.contracts.decisions import Allow, Deny, Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Label, join_all
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.gateway.approvals import (
    ApprovalQuestion,
    ApprovalSpent,
    Asker,
    DecidedBy,
    TurnedAway,
    question_about,
    said_in,
)
from sentinel_rag.gateway.arguments import ArgumentFault, CanonicalArguments, fit
from sentinel_rag.gateway.flow import Facts, NoSuchHandle, Reference, find_references, judge, put_values
from sentinel_rag.gateway.flow.judging import Violation, refused_whatever
from sentinel_rag.gateway.flow.record import flow_record
from sentinel_rag.gateway.gate.call import DecidedCall, EnteredCall
from sentinel_rag.gateway.gate.endings import Endings
from sentinel_rag.gateway.gate.preview import Previews
from sentinel_rag.gateway.gate.running import Running
from sentinel_rag.gateway.gate.stores import Stores
from sentinel_rag.gateway.outcomes import Completed, Denied, Outcome, outcome_told
from sentinel_rag.gateway.policy import Policy, Remembers, Rule, ToolPolicy, Volume
from sentinel_rag.gateway.store import ContextMoved, Session, resources_of
from sentinel_rag.gateway.store.volumes import VolumeExceeded

MAY_BE_GRANTED = (Reason.APPROVAL_REQUIRED, Reason.SINK_LABEL)
"""What a person's approval can make up for, where the rule lets one be asked."""


class Decision:
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

    async def _resolve(self, entered: EnteredCall) -> Mapping[Reference, JsonValue]:
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
        facts = Facts(session.context, call.handle_labels, session.named, stored, counted)
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
        facts = Facts(session.context, named=session.named, memory=memory)
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

    async def _run_if_approved(self, wanted: DecidedCall, rule: Rule, deny: Deny) -> Outcome:
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
        answer = await approvals.answered_already(binding)
        if answer is None:
            question = await self._question(wanted, rule, deny.reason)
            sent: JsonObject | None = None
            if rule.runs_at_yes and call.wish is not None:
                sent = {"args": dict(call.wish.args), "marks_quotes": call.wish.marks_quotes}
            answer = await approvals.request(binding, question, sent)
        required = replace(deny, reason=Reason.APPROVAL_REQUIRED)
        if isinstance(answer, TurnedAway):
            denied = await self._endings.deny(call, required)
            return replace(denied, note=answer.sentence, retry_after_s=answer.retry_after_s)
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
        answer = await self._stores.approvals.request(
            read.binding(), replace(question, why=volume.sentence(), decided_by=DecidedBy.OTHER)
        )
        deny = Deny(Reason.APPROVAL_REQUIRED, read.judgement.revealed, read.rule_id)
        if isinstance(answer, TurnedAway):
            return Denied(deny, call.audit_id, note=answer.sentence, retry_after_s=answer.retry_after_s)
        return Denied(deny, call.audit_id, answer.approval_id)

    async def _question(self, wanted: DecidedCall, rule: Rule, reason: Reason) -> ApprovalQuestion:
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
