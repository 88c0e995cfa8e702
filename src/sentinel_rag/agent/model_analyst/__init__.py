"""The analyst that plans with a model, whatever the model: a loop that survives it, answers held against their rows.

Surfaces see `contracts.ports.Analyst`. Below lie `models` (the port), `history`, `references` and `answers` (check).
"""

from sentinel_rag.agent.model_analyst.analyst import ModelAnalyst
from sentinel_rag.agent.model_analyst.loop import TieredModels
from sentinel_rag.agent.model_analyst.turn import MAX_TOOL_ROUNDS, TurnLimits

__all__ = ["MAX_TOOL_ROUNDS", "ModelAnalyst", "TieredModels", "TurnLimits"]
