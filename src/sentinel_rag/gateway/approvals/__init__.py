"""Approvals: a call that a person has to allow waits here, bound to its exact content, and is allowed once.

The gate asks and uses (`ApprovalStore`, `Binding`, `ApprovalQuestion`); people decide over `approval_routes`.
"""

from sentinel_rag.gateway.approvals.approval import (
    Approval,
    ApprovalSpent,
    ApprovalState,
    ApprovalVerdict,
    Decider,
    DecisionRefused,
    YesOutcome,
    question_about,
)
from sentinel_rag.gateway.approvals.binding import (
    ApprovalQuestion,
    Asker,
    Binding,
    CallSubject,
    DecidedBy,
    EarlierRead,
    FieldChange,
    Raised,
    said_in,
)
from sentinel_rag.gateway.approvals.near_duplicates import near_duplicate_sha256
from sentinel_rag.gateway.approvals.store import (
    DEFAULT_TTL_S,
    ApprovalStore,
    Bounds,
    DeniedBefore,
    TurnedAway,
    Waiting,
)

__all__ = [
    "DEFAULT_TTL_S",
    "Approval",
    "ApprovalQuestion",
    "ApprovalSpent",
    "ApprovalState",
    "ApprovalStore",
    "ApprovalVerdict",
    "Asker",
    "Binding",
    "Bounds",
    "CallSubject",
    "DecidedBy",
    "Decider",
    "DecisionRefused",
    "DeniedBefore",
    "EarlierRead",
    "FieldChange",
    "Raised",
    "TurnedAway",
    "Waiting",
    "YesOutcome",
    "near_duplicate_sha256",
    "question_about",
    "said_in",
]
