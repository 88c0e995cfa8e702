"""Questions that playbooks and past incidents answer: read, searched, quoted with where it stands, and followed up."""

from __future__ import annotations

from sentinel_rag.agent.offline.knowledge.asking import answer_knowledge, offer_steps, recall_incident
from sentinel_rag.agent.offline.knowledge.turns import answer_wish
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish, Sought, asks_how

__all__ = ["KnowledgeWish", "Sought", "answer_knowledge", "answer_wish", "asks_how", "offer_steps", "recall_incident"]
