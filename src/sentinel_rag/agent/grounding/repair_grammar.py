"""Whether a right value can stand in the place of a wrong one and the sentence still be one.

"has been closed" is no place for "New", and "only one alert concerns" none for 4; such a sentence is left out instead.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.number_atoms import NOUNS, Quantity

_VERB_BEFORE = re.compile(
    r"\b(?:been|being|got|gets|getting|just|then|never|ever|later|promptly|i|we|you|they|he|she|who|team|"
    r"[’'](?:ve|d)|have|had)[\s*_`]*$",
    re.IGNORECASE,
)
_VERB_AFTER = re.compile(
    r"^[\s*_`]*(?:on|at|by|for|as|within|after|before|because|since|without|yesterday|today|earlier|again|"
    r"(?:the|this|that|incident|it|them)\b(?!\s+(?:is|was)\b))(?=\W|$)",
    re.IGNORECASE,
)
_PARTICIPLES = frozenset({"closed", "resolved", "dismissed", "reopened"})


def can_stand(right: str, atom: Atom, text: str) -> bool:
    """True if `right` in the place of `atom` leaves a sentence."""
    if atom.kind is Kind.STATUS and atom.text.lower() in _PARTICIPLES and right.lower() not in _PARTICIPLES:
        return not _VERB_BEFORE.search(text[: atom.start]) and not _VERB_AFTER.match(text[atom.end :])
    if atom.kind is Kind.COUNT and isinstance(atom.value, Quantity) and atom.value.noun in NOUNS.values():
        return (atom.value.value == 1) is (right == "1")
    return True
