"""The knowledge tool server: past incidents and playbooks, searched for the caller whom the gateway names."""

from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.server import create_app

__all__ = ["KnowledgeBase", "OpenedStore", "create_app"]
