"""A call that runs at the moment in which a person approves it: the asker sees it happen, and the agent is told once it
sends the call again.

The call goes the whole way through the gate, as its agent's. Where anything that the approval is bound to has changed
since it was asked for, it does not run, and a person is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.approvals import Approval, ApprovalState, ApprovalStore, YesOutcome
from sentinel_rag.gateway.gate.gate import Gate
from sentinel_rag.gateway.outcomes import Completed, Denied, NotCompleted, Outcome, outcome_kept
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.store import Principal


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
        wish = ExecuteRequest(
            approval.binding.session_id, approval.binding.tool, sent["args"], marks_quotes=sent["marks_quotes"]
        )
        outcome = await self._gate.execute(principal, wish)
        return await self._approvals.keep(approval, _ran(outcome), outcome_kept(outcome))


def _ran(outcome: Outcome) -> YesOutcome:
    match outcome:
        case Completed(audit_id=audit_id):
            return YesOutcome("success", audit_id)
        case Denied(deny=deny, audit_id=audit_id, approval_id=approval_id):
            return YesOutcome("denied", audit_id, deny.reason.value, approval_id or "")
        case NotCompleted(reason=reason, audit_id=audit_id):
            return YesOutcome("error", audit_id, reason.value)
        case _:
            assert_never(outcome)
