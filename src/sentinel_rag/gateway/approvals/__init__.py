"""Approvals: a call that a person has to allow waits here, bound to its exact content, and is allowed once.

The gate asks and uses (`ApprovalStore`, `Binding`, `ApprovalQuestion`); people decide over `approval_routes`.
"""

from sentinel_rag.gateway.approvals.approval import Approval as Approval
from sentinel_rag.gateway.approvals.approval import ApprovalSpent as ApprovalSpent
from sentinel_rag.gateway.approvals.approval import ApprovalState as ApprovalState
from sentinel_rag.gateway.approvals.approval import ApprovalVerdict as ApprovalVerdict
from sentinel_rag.gateway.approvals.approval import Decider as Decider
from sentinel_rag.gateway.approvals.approval import DecisionRefused as DecisionRefused
from sentinel_rag.gateway.approvals.approval import YesOutcome as YesOutcome
from sentinel_rag.gateway.approvals.approval import near_duplicate_sha256 as near_duplicate_sha256
from sentinel_rag.gateway.approvals.approval import question_about as question_about
from sentinel_rag.gateway.approvals.binding import ApprovalQuestion as ApprovalQuestion
from sentinel_rag.gateway.approvals.binding import Asker as Asker
from sentinel_rag.gateway.approvals.binding import Binding as Binding
from sentinel_rag.gateway.approvals.binding import CallSubject as CallSubject
from sentinel_rag.gateway.approvals.binding import DecidedBy as DecidedBy
from sentinel_rag.gateway.approvals.binding import EarlierRead as EarlierRead
from sentinel_rag.gateway.approvals.binding import FieldChange as FieldChange
from sentinel_rag.gateway.approvals.binding import Raised as Raised
from sentinel_rag.gateway.approvals.binding import said_in as said_in
from sentinel_rag.gateway.approvals.store import DEFAULT_TTL_S as DEFAULT_TTL_S
from sentinel_rag.gateway.approvals.store import ApprovalStore as ApprovalStore
from sentinel_rag.gateway.approvals.store import Bounds as Bounds
from sentinel_rag.gateway.approvals.store import DeniedBefore as DeniedBefore
from sentinel_rag.gateway.approvals.store import TurnedAway as TurnedAway
from sentinel_rag.gateway.approvals.store import Waiting as Waiting
