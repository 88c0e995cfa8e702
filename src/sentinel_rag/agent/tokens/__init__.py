"""How many tokens a text, a message or a tool's schema takes of a model's context.

The history above imports from here. `load_counter` gives exact counts of o200k_base (gpt-4o, gpt-4.1, gpt-5) where the
extra that speaks to models is installed, and an estimate that rather counts too much elsewhere. Nothing is fetched.
"""

from sentinel_rag.agent.tokens.counting import (
    EstimatingCounter,
    ExactCounter,
    TokenCounter,
    count_message,
    count_tool,
)
from sentinel_rag.agent.tokens.vocabulary import counts_exactly, load_counter, ready_counter

__all__ = [
    "EstimatingCounter",
    "ExactCounter",
    "TokenCounter",
    "count_message",
    "count_tool",
    "counts_exactly",
    "load_counter",
    "ready_counter",
]
