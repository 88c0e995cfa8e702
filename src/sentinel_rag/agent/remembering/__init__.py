"""Conversations that outlive the process: a store of turns and memories, and the analyst around which it is put.

Assembly wires it; surfaces see `contracts.ports.Chat`. It knows no model and no grammar: what an analyst remembers is
the analyst's own, and is handed back to it as it was.
"""

from sentinel_rag.agent.remembering.analyst import RememberingAnalyst
from sentinel_rag.agent.remembering.store import ConversationStore
from sentinel_rag.agent.remembering.stored import STOPPED, ConversationEntry, StoredConversation, StoredTurn

__all__ = [
    "STOPPED",
    "ConversationEntry",
    "ConversationStore",
    "RememberingAnalyst",
    "StoredConversation",
    "StoredTurn",
]
