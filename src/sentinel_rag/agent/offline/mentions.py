"""References to incidents and to what was shown before: `#55`, `incident 55`, `[2]`, "the second one", "its alerts".

Reads only what the words say; `planner` decides with the conversation what they mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.offline.blanking import blank


@dataclass(frozen=True, slots=True)
class MentionReading:
    """`items` are places in the list on the screen (1 is the first, -1 the last). `ordinal_noun` is what stood behind
    an ordinal ("the first incident"), for which a list need not exist. `that` is the noun of "that incident"; "it" for
    a bare pronoun; "them" for a plural one."""

    rest: str
    incidents: tuple[str, ...] = ()
    items: tuple[int, ...] = ()
    ordinal_noun: str = ""
    that: str = ""
    defender: bool = False


_NUMBERED = re.compile(
    r"\b(?:incidents?|incs?|cases?|tickets?)[\s#:-]*(?:(?:no\.?|number|num|nr\.?|id)[\s#:]*)?"
    r"((?:\d{1,9})(?:\s*(?:,|and|&|or|vs\.?|with)\s*(?:incident\s*)?#?\d{1,9}\b)*)(?![\w/-]|[.:]\d|\s*(?:h|d|days?|hours?)\b)",
    re.IGNORECASE,
)
_HASHED = re.compile(r"(?<![\w&])#\s?(\d{1,9})\b")
_DEFENDER = re.compile(
    r"\b(?:defender|xdr|provider)(?:'s)?\s+(?:incident\s+)?(?:id|number|no\.?|#)?\s*#?(\d{1,9})\b", re.I
)
_ITEM = re.compile(r"\[\s*(\d{1,3})\s*\]")
_ORDINALS = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5,
    "sixth": 6, "6th": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "last": -1,
}  # fmt: skip
_ORDINAL = re.compile(
    rf"\b(?:the\s+)?({'|'.join(_ORDINALS)})\s+(ones?|incident|alert|entry|result|item|row|line|host|account|user|machine|"
    r"device|ip|address|of\s+(?:them|these|those))\b",
    re.IGNORECASE,
)
_ORDINAL_LAST = re.compile(rf"\bthe\s+({'|'.join(_ORDINALS)})\W*$", re.IGNORECASE)
_LIST_NUMBER = re.compile(r"\b(?:number|no\.?|item|entry|result|row|line|option|alert)\s+(\d{1,2})\b(?![\w.:/-])", re.I)
_THAT = re.compile(
    r"\b(?:that|this|the\s+same|the\s+said|same)\s+(incident|case|alert|host|machine|device|account|user|ip|address|one|file)\b",
    re.IGNORECASE,
)
_ITS = re.compile(r"\b(?:its|it|it's|his|her)\b", re.IGNORECASE)
_THEM = re.compile(r"\b(?:them|those|these|they)\b", re.IGNORECASE)


def read_mentions(text: str) -> MentionReading:
    """Every reference in `text`; each is blanked out of `rest`, nouns that carry sense stay."""
    incidents: list[str] = []
    items: list[int] = []
    ordinal_noun = that = ""
    defender = False
    for match in list(_ITEM.finditer(text)):
        items.append(int(match[1]))
        text = blank(text, match.start(), match.end())
    for match in list(_DEFENDER.finditer(text)):
        incidents.append(match[1])
        defender = True
        text = blank(text, match.start(), match.end())
    for match in list(_NUMBERED.finditer(text)):
        incidents += re.findall(r"\d+", match[1])
        text = text[: match.start(1)] + " " * len(match[1]) + text[match.end(1) :]
    text = re.sub(r"(?<= )['\u2019]s\b", "  ", text) if incidents else text
    for match in list(_HASHED.finditer(text)):
        incidents.append(match[1])
        text = blank(text, match.start(), match.end())
    for match in list(_ORDINAL.finditer(text)):
        items.append(_ORDINALS[match[1].lower()])
        ordinal_noun = match[2].lower()
        text = text[: match.start(1)] + " " * len(match[1]) + text[match.end(1) :]
    if match_last := _ORDINAL_LAST.search(text):
        items.append(_ORDINALS[match_last[1].lower()])
        ordinal_noun = ordinal_noun or "one"
        text = blank(text, match_last.start(), match_last.end())
    for match in list(_LIST_NUMBER.finditer(text)):
        items.append(int(match[1]))
        text = blank(text, match.start(), match.end())
    if match_that := _THAT.search(text):
        that = match_that[1].lower()
        text = blank(text, match_that.start(), match_that.end())
    elif match_its := _ITS.search(text):
        that = "it"
        text = blank(text, match_its.start(), match_its.end())
    elif _THEM.search(text):
        that = "them"
    unique = tuple(dict.fromkeys(number.lstrip("0") or "0" for number in incidents))
    return MentionReading(text, unique, tuple(dict.fromkeys(items)), ordinal_noun, that, defender)


_BARE_NUMBER = re.compile(r"(?<![\w.:/#\[+-])(\d{1,9})(?![\w.:/%\]-])")


def bare_numbers(text: str) -> tuple[str, ...]:
    """Numbers that nothing else claimed: "what severity is 18"."""
    return tuple(match[1] for match in _BARE_NUMBER.finditer(text))
