"""What is on record before a tool runs: the intent, and in the same transaction every label that the call may raise.

Labels rise in this process before the first pause, so no other call can be decided between the decision and the rise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sentinel_rag.audit import CallIntended, Journal, RecordConnection, Work
from sentinel_rag.contracts.labels import BOTTOM, join_all
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.gateway.flow.judging import PASSED, LabelledArgument, Source
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, used
from sentinel_rag.gateway.gate.call import Call, DecidedCall
from sentinel_rag.gateway.gate.stores import Stores
from sentinel_rag.gateway.store import ContextMoved, Session, next_result, resources_of


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
            session.raise_to(judgement.revealed, audit_id=call.audit_id, tool=tool.name, now=self._clock())
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
    return argument.source is Source.LITERAL or not argument.is_whole


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
            requested_tool=call.wish.tool_name if call.wish else tool.name,
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
