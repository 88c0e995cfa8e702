"""What the caller is told of a tool's reply: without what the policy hides, and not before it is on record.

Above it lies `running`, which has the reply; the view of a result and the labels of its rows are `gateway.flow`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from sentinel_rag.audit import RecordConnection, ValuesNamed, Work
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.gateway.flow import ResultView, view_of
from sentinel_rag.gateway.flow.endorsement import endorsed_values
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, chosen
from sentinel_rag.gateway.flow.view import row_labels_of
from sentinel_rag.gateway.gate.call import CLOSED, DecidedCall, Endings, Stores, all_of
from sentinel_rag.gateway.outcomes import Completed, Outcome, outcome_of
from sentinel_rag.gateway.store import ContextMoved, Session, named_in_file
from sentinel_rag.gateway.store.session_tables import VolumeExceeded, count, counted_as, tables_of
from sentinel_rag.gateway.upstream import Returned, ToolFailed, Unanswered, UpstreamReply

_ATTEMPTS = 10
"""How often values are derived again because another process named some meanwhile."""

_VOLUME = "The result is withheld: a person has to let so many rows be read."

_WITHHELD = "The tool failed; its message is withheld, because the policy hides parts of its results."


class ResultRecorder:
    """Records replies and makes them outcomes."""

    def __init__(self, stores: Stores, endings: Endings, clock: Clock) -> None:
        self._stores = stores
        self._endings = endings
        self._clock = clock

    async def tell(self, decided: DecidedCall, reply: UpstreamReply, duration_ms: float) -> Outcome:
        """Take out what the agent may not see, and write the outcome with it. Raises UnavailableError if that cannot be
        written, and VolumeExceeded, with the outcome on record, where a person has to let it be told; then nothing is
        told."""
        if isinstance(reply, Returned):
            try:
                return await self._tell_value(decided, reply, duration_ms)
            except VolumeExceeded:
                withheld = QueryError(code=QueryErrorCode.CONFLICT, message=_VOLUME)
                await self._record(decided, Unanswered(Reason.APPROVAL_REQUIRED, withheld, False), duration_ms)
                raise
        if isinstance(reply, ToolFailed) and decided.tool.fields.hides:
            # Its text may quote what the policy hides.
            reply = ToolFailed(QueryError(code=reply.error.code, message=_WITHHELD))
        return await self._record(decided, reply, duration_ms)

    async def _tell_value(self, decided: DecidedCall, reply: Returned, duration_ms: float) -> Outcome:
        call, tool, session, judgement = decided.call, decided.tool, decided.session, decided.judgement
        rows = row_labels_of(tool.row_labels, reply.value, reply.row_labels)
        marks = call.request is None or call.request.marks_quotes
        view = view_of(reply.value, reply.encoded, tool.fields, judgement.base, call.result, rows, marks=marks)
        named = _chosen(decided, reply.value, view)
        if not await self._reveal_rows(decided, view.rows):
            closed = Unanswered(Reason.CONFLICT, QueryError(code=QueryErrorCode.CONFLICT, message=CLOSED), True)
            return await self._record(decided, closed, duration_ms)
        works = await self._counting(decided, reply)
        if view.hidden:
            works.append(self._stores.handles.keep(session.session_id, view.hidden))
        hidden = all_of(works) if works else None
        seen = reply if view.encoded is reply.encoded else replace(reply, encoded=view.encoded)
        outcome = await self._record(decided, seen, duration_ms, alongside=hidden)
        if isinstance(outcome, Completed):
            label = judgement.revealed.join(view.rows)
            outcome = replace(outcome, label=label, context=session.context, exposures=tool.fields.exposures)
        await self._name(decided, named)
        if reply.value is not None and any(rule.tool == tool.name for rule in call.policy.endorsements):
            await self._endorse(decided, reply.value)
        return outcome

    async def _counting(self, decided: DecidedCall, reply: Returned) -> list[Work[object]]:
        """The writes that count what a volume counts, and spend the approval by which more of it may be told."""
        call, session = decided.call, decided.session
        if not call.policy.volumes or decided.tool.server not in OWN_SERVERS or not reply.rows:
            return []
        tables = tables_of(reply.value)
        counted = [volume for volume in call.policy.volumes if not volume.tables.isdisjoint(tables)]
        if not counted:
            return []
        whose, now = session.user_key_id or session.key_id, self._clock()
        binding = decided.at_present().binding()
        approval_id = None if decided.approval_id else await self._stores.approvals.approved(binding)
        free = decided.approval_id is not None or approval_id is not None
        works = [count(whose, counted_as(tables, counted), reply.rows, now, () if free else counted)]
        if approval_id is not None:
            works.append(self._stores.approvals.consume(approval_id, binding))
        return works

    async def _endorse(self, decided: DecidedCall, value: JsonValue) -> None:
        """Name what the policy's endorsements derive from a result. Which record answered first, and how many values
        a rule gave, another process may have written meanwhile: so both are asked of the file, and once more in the
        transaction that names. Where they keep changing, nothing is named."""
        call, session = decided.call, decided.session

        def derived(said: Mapping[NamedValue, str]) -> Mapping[str, frozenset[NamedValue]]:
            return endorsed_values(call.policy, decided.tool, decided.judgement, value, said, decided.memory)

        for _ in range(_ATTEMPTS):
            await self._stores.sessions.refresh(session)
            # Not before the last pause: of two calls at once the second has to see what the first one named.
            with suppress(ContextMoved):
                await self._name(decided, derived(session.named), derived)
                return

    async def _reveal_rows(self, decided: DecidedCall, label: Label) -> bool:
        """Raise the context by what the rows of a result carry beyond what the policy foresaw, before any of it is
        told; False if the session was closed meanwhile, and nothing may be told."""
        if label.flows_to(decided.judgement.revealed):
            return True
        while not decided.session.closed:
            try:
                await self._endings.reveal(decided.entered, label)
            except ContextMoved:
                await self._stores.sessions.refresh(decided.session)
            else:
                return True
        return False

    async def _record(
        self, decided: DecidedCall, reply: UpstreamReply, duration_ms: float, *, alongside: Work[object] | None = None
    ) -> Outcome:
        outcome, record = outcome_of(reply, decided.tool, decided.call.audit_id, duration_ms)
        await self._stores.journal.append(record, alongside=alongside)
        return outcome

    async def _name(
        self,
        decided: DecidedCall,
        named: Mapping[str, frozenset[NamedValue]],
        derived: Callable[[Mapping[NamedValue, str]], Mapping[str, frozenset[NamedValue]]] | None = None,
    ) -> None:
        """Let later calls of the session name these values, by source; what is new is on record. Raises ContextMoved
        where they are not what is `derived` from what the file says is named."""
        call, session = decided.call, decided.session
        # All of them before the first pause.
        writes = [(source, *session.name(values, source)) for source, values in named.items()]
        for place, (source, fresh, write) in enumerate(writes):
            if not fresh:
                continue
            event = ValuesNamed(
                audit_id=call.audit_id,
                key_id=call.key_id,
                session_id=session.session_id,
                source=source,
                values=tuple((str(value.kind), value.text) for value in fresh),
            )
            try:
                if derived is not None:
                    write = _if_still(session, derived, source, named[source], write)
                await self._stores.journal.append(event, alongside=write)
            except BaseException:
                for _, values, _ in writes[place:]:
                    session.unname(values)
                raise


def _if_still(
    session: Session,
    derived: Callable[[Mapping[NamedValue, str]], Mapping[str, frozenset[NamedValue]]],
    source: str,
    values: frozenset[NamedValue],
    write: Work[object],
) -> Work[object]:
    """The write, where what the file names still gives the same values. Raises ContextMoved."""

    def checked(connection: RecordConnection) -> None:
        if derived(named_in_file(connection, session.session_id)).get(source) != values:
            raise ContextMoved
        write(connection)

    return checked


def _chosen(decided: DecidedCall, value: JsonValue, view: ResultView) -> dict[str, frozenset[NamedValue]]:
    """What the person's plan takes from the result of its step, where the agent may see it."""
    step, session = decided.judgement.step, decided.session
    if step is None:
        return {}
    hidden = [each.reference.path for each in view.hidden]
    return {PLAN: chosen(step, value, session.named, hidden, decided.call.policy.kinds)}
