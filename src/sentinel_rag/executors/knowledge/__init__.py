"""The knowledge executor: past incidents and playbooks, searched for the caller whom the gateway names."""

from sentinel_rag.executors.knowledge.knowledge_base import KnowledgeBase, Opened
from sentinel_rag.executors.knowledge.server import create_app

__all__ = ["KnowledgeBase", "Opened", "create_app"]
