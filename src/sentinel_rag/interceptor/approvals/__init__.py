"""Approvals: a call that a person has to allow waits here, bound to its exact content, and is allowed once.

The gate asks and uses (`ApprovalStore`, `Binding`, `Question`); people decide through the routes and the webhook.
"""

from sentinel_rag.interceptor.approvals.approval import (
    Approval,
    ApprovalSpent,
    ApprovalState,
    Decider,
    DecisionRefused,
    Verdict,
)
from sentinel_rag.interceptor.approvals.binding import Binding, Question, Raise, Violation
from sentinel_rag.interceptor.approvals.bounds import Bounds, TurnedAway
from sentinel_rag.interceptor.approvals.store import ApprovalStore, Waiting

__all__ = [
    "Approval",
    "ApprovalSpent",
    "ApprovalState",
    "ApprovalStore",
    "Binding",
    "Bounds",
    "Decider",
    "DecisionRefused",
    "Question",
    "Raise",
    "TurnedAway",
    "Verdict",
    "Violation",
    "Waiting",
]
