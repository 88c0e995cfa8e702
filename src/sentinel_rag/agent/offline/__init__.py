"""The analyst without a model: slots by grammar, a plan by rules, an answer written from results."""

from sentinel_rag.agent.offline.analyst import ANSWERED_CALLS, OfflineAnalyst

__all__ = ["ANSWERED_CALLS", "OfflineAnalyst"]
