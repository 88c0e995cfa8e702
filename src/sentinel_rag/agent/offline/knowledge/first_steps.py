"""Questions for where to begin with a kind of attack: "where do I start with ransomware", "what do I check first for".

Without an attack they ask which incident comes first, which is a question to the workspace.
"""

from __future__ import annotations

import re

_WITH = r"(?:for|with|in|on|at|about|against|during|when|if|after|to|into)"
_QUEUE = (
    r"(?!\s+(?:(?:the|my|this|our|your|that|a|all|of)\s+)*(?:morning|shift|night|day|evening|week|today|now|list|queue|"
    r"table|them|these|those|it|this|that|here|incidents?|cases?|tickets?|alerts?|order|sentinel)\b)"
)
"""Of a list or a shift people ask what comes first in it."""
_BEGINS = re.compile(
    rf"\b(?:where|how)\s+(?:(?:do|should|shall|would|can|must)\s+(?:i|we|one|you)|to)\s+(?:best\s+)?(?:start|begin)\s+(?:\w+ing\s+)?{_WITH}\b{_QUEUE}|"
    rf"\bwhat\s+(?:(?:do|should|shall|must|would)\s+(?:i|we|one|you)|to)\s+(?:check|verify|examine|inspect|ask|secure|do|look\s+(?:at|for))\s+first\s+{_WITH}\b{_QUEUE}|"
    rf"\bfirst\s+(?:steps?|response|actions?|measures?|checks?|things?(?:\s+to\s+\w+)?)\s+{_WITH}\b{_QUEUE}",
    re.IGNORECASE,
)
_ASKING = frozenset(("start", "begin", "check", "verify", "examine", "inspect", "secure", "starting", "investigating"))


def asks_where_to_begin(text: str) -> bool:
    """True if the words ask for the first steps with something."""
    return _BEGINS.search(text) is not None


def without_asking(topic: str) -> str:
    """The topic of such a question without the words that only ask for the beginning."""
    return " ".join(word for word in topic.split() if word.lower() not in _ASKING)
