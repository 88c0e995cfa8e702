"""What the gate keeps, handed to it ready."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.audit import Journal
from sentinel_rag.gateway.approvals import ApprovalStore
from sentinel_rag.gateway.store import HandleStore, ResourceLabels, SessionStore


@dataclass(frozen=True, slots=True)
class Stores:
    """Sessions with their labels, hidden values, labels of resources, approvals, the journal. They share one database,
    so that what belongs together is one transaction of the journal's."""

    sessions: SessionStore
    handles: HandleStore
    resources: ResourceLabels
    approvals: ApprovalStore
    journal: Journal
