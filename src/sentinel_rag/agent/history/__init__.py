"""What a model is told of a conversation: its turns, bounded in tokens.

The loop above keeps one `History` for each conversation and sends what `fitted` gives. It is memory of one process;
`agent.remembering` stores what its `last_turn` gives, and hands it back to `recall`.
"""

from sentinel_rag.agent.history.budget import WARNING, Budget
from sentinel_rag.agent.history.fitting import Fitted, cut_lines, cut_text
from sentinel_rag.agent.history.history import History

__all__ = [
    "WARNING",
    "Budget",
    "Fitted",
    "History",
    "cut_lines",
    "cut_text",
]
