"""What the gateway remembers: keys (hashed), sessions with their key and context label, the values behind handles,
the labels of what was written.

Keys lie in a file of their own, so that an administrator's command and a running gateway can share it; sessions
share the journal's file and transactions, so that a label and the record of its rise are one write.
"""

from sentinel_rag.gateway.store.handles import HandleStore as HandleStore
from sentinel_rag.gateway.store.handles import next_result as next_result
from sentinel_rag.gateway.store.keys import KeyInfo as KeyInfo
from sentinel_rag.gateway.store.keys import KeyRing as KeyRing
from sentinel_rag.gateway.store.keys import KeyState as KeyState
from sentinel_rag.gateway.store.keys import KeyStore as KeyStore
from sentinel_rag.gateway.store.keys import Principal as Principal
from sentinel_rag.gateway.store.keys import RefusedKey as RefusedKey
from sentinel_rag.gateway.store.keys import RunKeys as RunKeys
from sentinel_rag.gateway.store.keys import Scope as Scope
from sentinel_rag.gateway.store.keys import run_principal as run_principal
from sentinel_rag.gateway.store.sessions import ContextMoved as ContextMoved
from sentinel_rag.gateway.store.sessions import PersistentSessions as PersistentSessions
from sentinel_rag.gateway.store.sessions import PlanRefused as PlanRefused
from sentinel_rag.gateway.store.sessions import ResourceLabels as ResourceLabels
from sentinel_rag.gateway.store.sessions import Session as Session
from sentinel_rag.gateway.store.sessions import SessionClosed as SessionClosed
from sentinel_rag.gateway.store.sessions import SessionStore as SessionStore
from sentinel_rag.gateway.store.sessions import TooManySessions as TooManySessions
from sentinel_rag.gateway.store.sessions import named_in_file as named_in_file
from sentinel_rag.gateway.store.sessions import resources_of as resources_of
from sentinel_rag.gateway.store.state import KeyJournal as KeyJournal
from sentinel_rag.gateway.store.state import State as State
from sentinel_rag.gateway.store.state import new_audit_id as new_audit_id
from sentinel_rag.gateway.store.state import open_state as open_state
