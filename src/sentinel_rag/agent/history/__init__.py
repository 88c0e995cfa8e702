"""What a conversation remembers, bounded: its turns for a model, and its stored form.

The loop above keeps one `History` for each conversation and sends what `fitted` gives. `ConversationStore` keeps turns,
references and preferences of every conversation in a file; `RememberingAnalyst` puts it around any analyst.
"""

from sentinel_rag.agent.history.budget import WARNING, Budget
from sentinel_rag.agent.history.fitting import Fitted
from sentinel_rag.agent.history.history import History
from sentinel_rag.agent.history.result_cut import CutResult, cut_result, cut_text

__all__ = [
    "WARNING",
    "Budget",
    "CutResult",
    "Fitted",
    "History",
    "cut_result",
    "cut_text",
]
