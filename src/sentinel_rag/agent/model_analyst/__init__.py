"""The analyst that plans with a model, whatever the model: a loop that survives it, and answers that code has checked.

Surfaces see `contracts.ports.Analyst`. Below lie `models` (the port), `history`, `references` and `grounding`.
"""

from sentinel_rag.agent.model_analyst.analyst import ModelAnalyst
from sentinel_rag.agent.model_analyst.limits import MAX_TOOL_ROUNDS, TurnLimits
from sentinel_rag.agent.model_analyst.requests import TieredModels

__all__ = ["MAX_TOOL_ROUNDS", "ModelAnalyst", "TieredModels", "TurnLimits"]
