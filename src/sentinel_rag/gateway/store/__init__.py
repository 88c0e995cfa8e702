"""What the gateway remembers: keys (hashed), sessions with their key and context label, the values behind handles,
the labels of what was written.

Keys lie in a file of their own, so that an administrator's command and a running gateway can share it; sessions
share the journal's file and transactions, so that a label and the record of its rise are one write.
"""

from sentinel_rag.gateway.store.handles import HandleStore, next_result
from sentinel_rag.gateway.store.keys import (
    KeyInfo,
    KeyRing,
    KeyState,
    KeyStore,
    Principal,
    RefusedKey,
    RunKeys,
    Scope,
    run_principal,
)
from sentinel_rag.gateway.store.persistent_sessions import PersistentSessions, ResourceLabels, resources_of
from sentinel_rag.gateway.store.sessions import (
    ContextMoved,
    PlanRefused,
    Session,
    SessionClosed,
    SessionStore,
    TooManySessions,
    named_in_file,
)
from sentinel_rag.gateway.store.state import KeyJournal, State, new_audit_id, open_state

__all__ = [
    "ContextMoved",
    "HandleStore",
    "KeyInfo",
    "KeyJournal",
    "KeyRing",
    "KeyState",
    "KeyStore",
    "PersistentSessions",
    "PlanRefused",
    "Principal",
    "RefusedKey",
    "ResourceLabels",
    "RunKeys",
    "Scope",
    "Session",
    "SessionClosed",
    "SessionStore",
    "State",
    "TooManySessions",
    "named_in_file",
    "new_audit_id",
    "next_result",
    "open_state",
    "resources_of",
    "run_principal",
]
