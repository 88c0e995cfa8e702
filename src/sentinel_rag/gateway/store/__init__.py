"""What the gateway remembers: keys (hashed), sessions with their key and context label, the values behind handles,
the labels of what was written.

Keys lie in a file of their own, so that an administrator's command and a running gateway can share it; sessions
share the journal's file and transactions, so that a label and the record of its rise are one write.
"""

from sentinel_rag.gateway.store.handles import HandleStore, next_result
from sentinel_rag.gateway.store.key_journal import KeyJournal
from sentinel_rag.gateway.store.keys import KeyInfo, KeyStore
from sentinel_rag.gateway.store.persistent_sessions import PersistentSessions
from sentinel_rag.gateway.store.principals import KeyRing, KeyState, Principal, Refused, Scope
from sentinel_rag.gateway.store.resources import ResourceLabels, resources_of
from sentinel_rag.gateway.store.run_keys import RunKeys, run_principal
from sentinel_rag.gateway.store.sessions import (
    ContextMoved,
    PlanRefused,
    Raised,
    Session,
    SessionClosed,
    SessionStore,
    TooManySessions,
    named_in_file,
)
from sentinel_rag.gateway.store.state import State, new_audit_id, open_state

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
    "Raised",
    "Refused",
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
