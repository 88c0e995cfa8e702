"""The journal: an intent and an outcome of each call, and each refusal, in a hash chain with signed checkpoints.

`Journal` writes (any number of gateways on one folder), `JournalReader` reads and verifies files that others may be
writing. `Database` is the group commit below both; the gateway's state shares it, so that a label is raised in the
same transaction as the record that says so.
"""

from sentinel_rag.audit.chain import GENESIS as GENESIS
from sentinel_rag.audit.chain import PUBLIC_FILE as PUBLIC_FILE
from sentinel_rag.audit.chain import ChainHead as ChainHead
from sentinel_rag.audit.chain import Checkpoint as Checkpoint
from sentinel_rag.audit.chain import CheckpointFile as CheckpointFile
from sentinel_rag.audit.chain import PublicKey as PublicKey
from sentinel_rag.audit.chain import SigningKey as SigningKey
from sentinel_rag.audit.chain import SigningKeyLost as SigningKeyLost
from sentinel_rag.audit.events import AuditEvent as AuditEvent
from sentinel_rag.audit.events import AuthenticationFailed as AuthenticationFailed
from sentinel_rag.audit.events import BackupRestored as BackupRestored
from sentinel_rag.audit.events import CallIntended as CallIntended
from sentinel_rag.audit.events import CallOutcome as CallOutcome
from sentinel_rag.audit.events import CallRefused as CallRefused
from sentinel_rag.audit.events import ContextRaised as ContextRaised
from sentinel_rag.audit.events import HandlesResolved as HandlesResolved
from sentinel_rag.audit.events import KeyChanged as KeyChanged
from sentinel_rag.audit.events import OutcomeStatus as OutcomeStatus
from sentinel_rag.audit.events import RequestRefused as RequestRefused
from sentinel_rag.audit.events import SessionChanged as SessionChanged
from sentinel_rag.audit.events import StoreChanged as StoreChanged
from sentinel_rag.audit.events import ValuesNamed as ValuesNamed
from sentinel_rag.audit.files import DamagedJournal as DamagedJournal
from sentinel_rag.audit.journal import Journal as Journal
from sentinel_rag.audit.journal import JournalCut as JournalCut
from sentinel_rag.audit.journal import Sealing as Sealing
from sentinel_rag.audit.reader import JournalEntry as JournalEntry
from sentinel_rag.audit.reader import JournalReader as JournalReader
from sentinel_rag.audit.reader import RecordFilter as RecordFilter
from sentinel_rag.audit.verification import Exported as Exported
from sentinel_rag.audit.verification import Verification as Verification
from sentinel_rag.audit.verification import export_records as export_records
from sentinel_rag.audit.verification import verify_export as verify_export
from sentinel_rag.storage.group_commit import Database as Database
from sentinel_rag.storage.group_commit import Durability as Durability
from sentinel_rag.storage.port import JournalPlace as JournalPlace
from sentinel_rag.storage.port import PostgresPlace as PostgresPlace
from sentinel_rag.storage.port import RecordConnection as RecordConnection
from sentinel_rag.storage.port import StateAway as StateAway
from sentinel_rag.storage.port import StateDatabase as StateDatabase
from sentinel_rag.storage.port import Work as Work
from sentinel_rag.storage.port import put as put
from sentinel_rag.storage.sqlite import Instance as Instance
