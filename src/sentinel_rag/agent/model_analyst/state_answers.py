"""Answers that state something with no value in them: "No." to "is incident 12 closed?".

Grounding looks for values and finds none in such a word; what it states is in the question. Pure.
"""

from __future__ import annotations

import re

_OF_STATE = re.compile(
    r"^\W*(?:(?:and|so|ok|okay|then|but|please|tell me|check)[\s,]+)*(?:whether\s+|if\s+)?"
    r"(?:is|are|was|were|has|have|had|did|does|do|isn['’]?t|aren['’]?t|wasn['’]?t|any|still)\b(?!\s+(?:you|we|i)\b)",
    re.IGNORECASE,
)
_ABOUT_DATA = re.compile(
    r"\d|\b(?:incidents?|alerts?|hosts?|accounts?|users?|devices?|owners?|owned|assigned|closed|open|opened|reopened|"
    r"active|new|severity|status|high|medium|low|attack\w*|compromis\w+|involv\w+|it|its|they|them|that|this|these|"
    r"those|he|she|one|both|anyone|anybody|anything|nobody)\b",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|no|nope|none|nobody|nothing|never|still|unchanged|correct|right|indeed|true|false|"
    r"affirmative|negative|not\b|the same|same|it (?:is|was|has|does|did)|they (?:are|were|have|do|did)|neither|both|"
    r"certainly|definitely|apparently)\b",
    re.IGNORECASE,
)
_NOT_KNOWING = re.compile(
    r"\b(?:(?:do|did|could|can|would)\s?(?:not|n['’]t)|cannot|unable|not sure|not known|no way to|need to)\b[^.]{0,40}"
    r"\b(?:know|tell|say|check|look|see|ask|answer|help|do that|access)\b",
    re.IGNORECASE,
)


def answers_state(question: str, text: str) -> bool:
    """True if `text` says yes or no, or "still the same", to a question about the state of something in the data."""
    return bool(
        _OF_STATE.match(question)
        and _ABOUT_DATA.search(question)
        and _STATES.match(text)
        and not _NOT_KNOWING.search(text)
    )
