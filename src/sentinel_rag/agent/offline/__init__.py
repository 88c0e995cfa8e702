"""The analyst without a model: the planner decides from frames, calls are made, an answer is written from results."""

from sentinel_rag.agent.offline.analyst import ANSWERED_CALLS, OfflineAnalyst

__all__ = ["ANSWERED_CALLS", "OfflineAnalyst"]
