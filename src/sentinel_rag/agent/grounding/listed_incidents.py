"""Bare numbers that are incidents because of where they stand: in a list behind "incidents ...:", first in a row.

Only numbers of incidents that results tell of are read so; a count that equals one has a noun or stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Set

from sentinel_rag.agent.grounding.markdown_text import Layout, Piece
from sentinel_rag.agent.grounding.number_atoms import nouns_in

_ANNOUNCED = re.compile(
    r"\b(?:incidents|cases|ones|them|those|these)\b[^.;:|?!\d]{0,60}(?::|[–—-]\s)\s*|"
    r"(?:^|[;|\n])[\s*_`-]*(?:high|medium|low|informational|open|closed|new|active|resolved|in progress|"
    r"unassigned|assigned)(?:\s+(?:severity|priority))?[*_`]*\s*(?::|[–—-]\s)[*_`]*\s*|"
    r"\b(?:incidents|cases)\b[^.;:|?!\d]{0,40}\b(?:are|include|includes|were|namely|like|such as)\s+(?=[*_`#]*\d)",
    re.IGNORECASE,
)
_ELEMENT = re.compile(
    r"(?:\[\d{1,3}\]\s*)?[*_`#]*(?P<number>\d{1,9})[*_`]*(?![\w%.:/-]*\w)"
    r"(?!\s+(?:alerts?|incidents?|of|high|medium|low|informational|new|active|closed|open|hours?|days?|minutes?)\b)"
    r"(?P<remark>\s*\([^()]*\)|\s+(?:is|was|with|which|–|—|-)[^,;.]*|\s*[“\"][^“”\"]*[”\"])?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s*(?:,\s*(?:and|or|then)?|;|and|or|&|/|then|plus)\s*", re.IGNORECASE)
_COUNTED = re.compile(
    r"(?:\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|both|these|those|the following)\b"
    r"[^.;:|?!]{0,40})$",
    re.IGNORECASE,
)
_FEWEST_IN_A_LIST = 2
_COUNT_HEADER = re.compile(
    r"\b(?:count|total|hits?|number of|how many|sum|share|percent\w*|rank|row|step)\b", re.IGNORECASE
)


def numbers_of_a_list(text: str, known: Set[str]) -> frozenset[int]:
    """The places of the numbers of incidents that a text lists ("Two incidents are open: 108 and 124")."""
    found: set[int] = set()
    for match in _ANNOUNCED.finditer(text):
        places: list[int] = []
        at = match.end()
        while (element := _ELEMENT.match(text, at)) is not None and element["number"] in known:
            places.append(element.start("number"))
            between = _BETWEEN.match(text, element.end())
            if between is None:
                break
            at = between.end()
        if len(places) >= _FEWEST_IN_A_LIST or (places and _COUNTED.search(text[: match.start()])):
            found.update(places)
    return frozenset(found)


def begins_row_of_incident(text: str, piece: Piece, known: Set[str]) -> bool:
    """True for the first cell of a row that is an incident's number, unless its column counts something."""
    if piece.layout is not Layout.CELL or piece.column != 0:
        return False
    number = re.fullmatch(r"[*_`#\s]*(\d{1,9})[*_`\s]*", text)
    if number is None or number[1] not in known or _COUNT_HEADER.search(piece.header):
        return False
    return not any(noun != "incident" for noun in nouns_in(piece.header))
