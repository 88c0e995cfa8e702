"""One-word answers to a question about a state: "No.", "still open". They hold no value, and claim one all the same.

Grounding sees atoms, and such an answer has none, so it is told by the question that it answers. Pure.
"""

from __future__ import annotations

import re

_ASKS = re.compile(
    r"^\W*(?:(?:and|so|then|but|ok(?:ay)?|now|please|tell\s+me(?:\s+(?:if|whether))?|do\s+you\s+know\s+(?:if|whether))[\s,]+)*"
    r"(?:is|are|was|were|has|have|had|does|do|did|will|any|still|isn['’]t|aren['’]t|wasn['’]t|hasn['’]t|"
    r"(?:the|this|that|it|they|incident|alert)\b)",
    re.IGNORECASE,
)
_OF_THE_DATA = re.compile(
    r"\b(?:incidents?|cases?|tickets?|alerts?|detections?|hosts?|machines?|devices?|servers?|accounts?|users?|ip|addresses|"
    r"sign-?ins?|log-?ons?|events?|rows?|it|its|they|them|their|this|that|these|those|he|she|one|there|any|anything|anybody|"
    r"anyone|open|closed?|active|new|assigned|owner|resolved|severity|status)\b|#\d|\[\d",
    re.IGNORECASE,
)
_OF_THE_ASSISTANT = re.compile(r"\b(?:you|your|yourself)\b(?!\s+know\b)", re.IGNORECASE)
_VERDICT = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|no|nope|nah|correct|right|true|false|indeed|exactly|affirmative|negative|certainly|definitely|"
    r"absolutely|not\s+(?:yet|any\s?more|really|at\s+all|that\s+i\s+know)|still\b|unchanged|no\s+change|"
    r"(?:it(?:['’]s|\s+is)\s+|they(?:['’]re|\s+are)\s+)?(?:still\s+)?(?:the\s+)?same|"
    r"(?:it|that|this|they|he|she)\s+(?:is|was|are|were|has|have|did|does|do|isn['’]t|wasn['’]t|hasn['’]t|didn['’]t)(?:\s+not)?(?=\W*$)|"
    r"nothing(?:\s+has)?\s+changed|none|nobody|never|always|all\s+of\s+them|both|neither)\b",
    re.IGNORECASE,
)


def answers_a_state(question: str, text: str) -> bool:
    """True if `text` begins as the answer yes, no or unchanged to a question about the data; not to one about the
    assistant, or about the world ("is phishing a crime?")."""
    if _ASKS.match(question) is None or _OF_THE_ASSISTANT.search(question):
        return False
    return _OF_THE_DATA.search(question) is not None and _VERDICT.match(text) is not None
