"""From a sentence to calls without a model: a frame, then one table. Pure; it makes no call."""

from sentinel_rag.agent.planner.conversation import Talk, frame_of, offer
from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Option, Unclear, View
from sentinel_rag.agent.planner.explanation import as_dict, as_lines
from sentinel_rag.agent.planner.planner import Planner
from sentinel_rag.agent.planner.stored import StoredQueries

__all__ = [
    "Call",
    "Decision",
    "DecisionKind",
    "Option",
    "Planner",
    "StoredQueries",
    "Talk",
    "Unclear",
    "View",
    "as_dict",
    "as_lines",
    "frame_of",
    "offer",
]
