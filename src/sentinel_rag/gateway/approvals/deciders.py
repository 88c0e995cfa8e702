"""Who may decide an approval, and what they are told who may not; pure functions of how it stands."""

from __future__ import annotations

import hmac

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.approvals.approval import ELICITED, WEBHOOK, ApprovalState, Decider, DecisionRefused
from sentinel_rag.gateway.approvals.binding import DecidedBy
from sentinel_rag.gateway.approvals.table import ApprovalStanding


def check_decider(stands: ApprovalStanding, decider: Decider, token: str | None, *, person: str | None) -> None:
    """Raises DecisionRefused unless `decider` may decide this one at all. `token` is what the webhook's receiver
    showed, `person` the key of whoever the agent asks for, None if it asks for nobody."""
    if decider.via == WEBHOOK and stands.state is ApprovalState.PENDING:
        given = (token or "").encode("utf-8", "surrogateescape")
        if not stands.token or not hmac.compare_digest(stands.token.encode(), given):
            raise DecisionRefused(Reason.UNAUTHENTICATED, "This is not the token of that approval.")
    if stands.decided_by is DecidedBy.ASKER and person is not None and decider.key_id == person:
        return
    # The key is the agent's, the answer its person's: whoever asks so has looked whether the policy attests that.
    by_client = decider.via == ELICITED and decider.key_id == stands.key_id
    if stands.decided_by is DecidedBy.ASKER and person is None and by_client:
        return
    if decider.key_id == stands.key_id:
        raise DecisionRefused(
            Reason.OWN_APPROVAL,
            "The key that asked cannot decide, whatever its scopes.",
            next_step="Let another key with the scope approve decide.",
        )
    if person is not None and decider.key_id == person:
        raise DecisionRefused(
            Reason.OWN_APPROVAL,
            "The agent asked this for you, so another person decides it.",
            next_step="Let another key with the scope approve decide.",
        )
    if not decider.is_one_of(stands.approvers):
        raise DecisionRefused(
            Reason.NOT_AN_APPROVER,
            "The policy names who may decide this call, and this key is not among them.",
            next_step=f"It may be decided by: {', '.join(stands.approvers)}.",
        )


def too_late(state: ApprovalState) -> DecisionRefused:
    """The refusal of a verdict on an approval that has left PENDING for `state`."""
    if state is ApprovalState.EXPIRED:
        return DecisionRefused(
            Reason.APPROVAL_EXPIRED, "This approval has expired.", next_step="If the call comes again, it asks anew."
        )
    return DecisionRefused(Reason.APPROVAL_DECIDED, f"This approval is decided already: it is {state.value}.")
