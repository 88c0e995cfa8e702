"""Approvals: a call that a person has to allow waits here, bound to its exact content, and is allowed once.

The gate asks and uses (`ApprovalStore`, `Binding`, `ApprovalQuestion`); people decide over `approval_routes`.
"""

from sentinel_rag.gateway.approvals.approval import (
    Approval,
    ApprovalSpent,
    ApprovalState,
    Decider,
    DecisionRefused,
    Verdict,
    YesOutcome,
)
from sentinel_rag.gateway.approvals.binding import (
    ApprovalQuestion,
    Asker,
    Binding,
    DecidedBy,
    Raise,
    RememberedApproval,
    Violation,
)
from sentinel_rag.gateway.approvals.bounds import Bounds, TurnedAway
from sentinel_rag.gateway.approvals.questions import question_about
from sentinel_rag.gateway.approvals.store import DEFAULT_TTL_S, ApprovalStore, Waiting
from sentinel_rag.gateway.approvals.subject import CallSubject, EarlierRead, FieldChange, said_in

__all__ = [
    "DEFAULT_TTL_S",
    "Approval",
    "ApprovalQuestion",
    "ApprovalSpent",
    "ApprovalState",
    "ApprovalStore",
    "Asker",
    "Binding",
    "Bounds",
    "CallSubject",
    "DecidedBy",
    "Decider",
    "DecisionRefused",
    "EarlierRead",
    "FieldChange",
    "Raise",
    "RememberedApproval",
    "TurnedAway",
    "Verdict",
    "Violation",
    "Waiting",
    "YesOutcome",
    "question_about",
    "said_in",
]
