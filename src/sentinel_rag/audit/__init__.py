"""The journal: an intent and an outcome of each call, and each refusal, in a hash chain with signed checkpoints.

`Journal` writes (any number of gateways on one folder), `JournalReader` reads and verifies files that others may be
writing. `Database` is the group commit below both; the gateway's state shares it, so that a label is raised in the
same transaction as the record that says so.
"""

from sentinel_rag.audit.chain import (
    GENESIS,
    PUBLIC_FILE,
    ChainHead,
    Checkpoint,
    CheckpointFile,
    PublicKey,
    SigningKey,
    SigningKeyLost,
)
from sentinel_rag.audit.events import (
    AuditEvent,
    AuthenticationFailed,
    BackupRestored,
    CallIntended,
    CallOutcome,
    CallRefused,
    ContextRaised,
    HandlesResolved,
    KeyChanged,
    OutcomeStatus,
    RequestRefused,
    SessionChanged,
    StoreChanged,
    ValuesNamed,
)
from sentinel_rag.audit.export import Exported, export_records, verify_export
from sentinel_rag.audit.files import DamagedJournal
from sentinel_rag.audit.journal import Journal
from sentinel_rag.audit.reader import JournalEntry, JournalReader, RecordFilter
from sentinel_rag.audit.sealing import JournalCut, Sealing
from sentinel_rag.audit.verification import Verification
from sentinel_rag.storage.group_commit import Database, Durability
from sentinel_rag.storage.port import (
    JournalPlace,
    PostgresPlace,
    RecordConnection,
    StateAway,
    StateDatabase,
    Work,
    put,
)
from sentinel_rag.storage.sqlite import Instance

__all__ = [
    "GENESIS",
    "PUBLIC_FILE",
    "AuditEvent",
    "AuthenticationFailed",
    "BackupRestored",
    "CallIntended",
    "CallOutcome",
    "CallRefused",
    "ChainHead",
    "Checkpoint",
    "CheckpointFile",
    "ContextRaised",
    "DamagedJournal",
    "Database",
    "Durability",
    "Exported",
    "HandlesResolved",
    "Instance",
    "Journal",
    "JournalCut",
    "JournalEntry",
    "JournalPlace",
    "JournalReader",
    "KeyChanged",
    "OutcomeStatus",
    "PostgresPlace",
    "PublicKey",
    "RecordConnection",
    "RecordFilter",
    "RequestRefused",
    "Sealing",
    "SessionChanged",
    "SigningKey",
    "SigningKeyLost",
    "StateAway",
    "StateDatabase",
    "StoreChanged",
    "ValuesNamed",
    "Verification",
    "Work",
    "export_records",
    "put",
    "verify_export",
]
