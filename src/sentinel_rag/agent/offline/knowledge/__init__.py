"""Questions that playbooks and past incidents answer: searched, quoted with where it stands, and followed up."""

from sentinel_rag.agent.offline.knowledge.turns import answer_further, answer_wish, offer_steps, recall_incident

__all__ = ["answer_further", "answer_wish", "offer_steps", "recall_incident"]
