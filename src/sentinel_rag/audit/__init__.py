"""The journal: an intent and an outcome of each call, and each refusal, in a hash chain.

`Journal` writes (one owner: the Interceptor), `JournalReader` reads and verifies a file that another process may be
writing. `Database` is the single writer thread below both; the Interceptor's state shares it, so that a label is
raised in the same transaction as the record that says so.
"""

from sentinel_rag.audit.chain import GENESIS, Head
from sentinel_rag.audit.database import Database, Durability
from sentinel_rag.audit.events import (
    AuditEvent,
    AuthenticationFailed,
    CallIntended,
    CallOutcome,
    CallRefused,
    OutcomeStatus,
    SessionChanged,
)
from sentinel_rag.audit.flow_events import ContextRaised, HandlesResolved, ValuesNamed
from sentinel_rag.audit.journal import Journal
from sentinel_rag.audit.key_events import KeyChanged, RequestRefused
from sentinel_rag.audit.reader import DamagedJournal, Entry, JournalReader, Verification

__all__ = [
    "GENESIS",
    "AuditEvent",
    "AuthenticationFailed",
    "CallIntended",
    "CallOutcome",
    "CallRefused",
    "ContextRaised",
    "DamagedJournal",
    "Database",
    "Durability",
    "Entry",
    "HandlesResolved",
    "Head",
    "Journal",
    "JournalReader",
    "KeyChanged",
    "OutcomeStatus",
    "RequestRefused",
    "SessionChanged",
    "ValuesNamed",
    "Verification",
]
