"""How a call ends for which no tool runs: one record, and then the answer.

Such an answer tells something too. Where it may hang on values that the session has not seen, `reveal` raises the
context before it is given.
"""

from __future__ import annotations

from sentinel_rag.audit import ContextRaised, Journal
from sentinel_rag.contracts.decisions import Deny, Reason
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.arguments import ArgumentFault
from sentinel_rag.gateway.gate.call import Call, EnteredCall
from sentinel_rag.gateway.outcomes import Denied, NotCompleted
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.request_body import IF_EFFECT

CLOSED = "This session is closed."


class Endings:
    """Each method but `reveal` records the end of a call and gives its answer. All raise UnavailableError where the
    record cannot be written."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    async def deny(self, call: Call, deny: Deny) -> Denied:
        """The policy says no, or the state of the tool does."""
        await self._journal.append(call.refusal(deny.reason, deny))
        return Denied(deny, call.audit_id, call.approval_id)

    async def refuse(self, call: Call, reason: Reason, detail: str, error: QueryError | None = None) -> NotCompleted:
        """The call cannot be taken; `detail` is for people, `error` for an agent that could do better."""
        await self._journal.append(call.refusal(reason))
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
        raising = session.raise_to(label, audit_id=call.audit_id, tool=entered.tool.name, now=self._clock())
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
