"""Words that agree or decline, and a question that waits for one missing value."""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.vocabulary import is_known

_YES = re.compile(
    r"^\W*(?:yes|yep|yeah|yup|y|sure|ok(?:ay)?|please(?:\s+do)?|do\s+(?:it|that|so)|go\s+ahead|of\s+course|show\s+(?:me\s+)?(?:those|them|that|it)|"
    r"show\s+(?:me\s+)?the\s+(?:others|rest)|yes,?\s+please|widen(?:\s+(?:it|the\s+window))?)\W*$",
    re.IGNORECASE,
)
_NO = re.compile(r"^\W*(?:no|nope|nah|never\s*mind|no\s+thanks?)\W*$", re.IGNORECASE)


def agrees(question: str) -> bool:
    """True for "yes" and the like."""
    return _YES.match(question) is not None


def completed(question: str, conversation: Conversation) -> str:
    """The question that `question` stands for: a pending one with its missing value, else itself."""
    text = question.strip()
    words = re.findall(r"[^\W\d_][\w'’-]*", text)
    is_question = len(words) > 1 and all(map(is_known, words))  # "incidents by owner" is a wish, no value
    short = len(text.split()) <= 3 and not is_question
    if conversation.pending and short and not _YES.match(text) and not _NO.match(text):
        value = text.strip(" .?!\"'")
        return f'{conversation.pending} "{value}"' if value else question
    return question
