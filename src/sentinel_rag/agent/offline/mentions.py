"""Incidents by their number (`#55`, `incident 55`, a Defender id), and the pronouns that stand for no single thing.

What `[2]`, "the second one" or "its" mean is resolved before a question is read, see `agent.references`; a pronoun that
is left here stands for the last query ("list them") or for nothing ("how is it going").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.references.wording import ALONE
from sentinel_rag.language.text import blank


@dataclass(frozen=True, slots=True)
class MentionReading:
    """`that` is "it" or "them" for a pronoun; `defender` if a number is called a Defender id."""

    rest: str
    incidents: tuple[str, ...] = ()
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
_ITS = re.compile(rf"{ALONE[0]}(?:its|it|it's|his|her){ALONE[1]}", re.IGNORECASE)
_THEM = re.compile(rf"{ALONE[0]}(?:them|those|these|they){ALONE[1]}", re.IGNORECASE)


def read_mentions(text: str) -> MentionReading:
    """Every incident number in `text`; each is blanked out of `rest`, nouns that carry sense stay."""
    incidents: list[str] = []
    that = ""
    defender = False
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
    if match_its := _ITS.search(text):
        that = "it"
        text = blank(text, match_its.start(), match_its.end())
    elif _THEM.search(text):
        that = "them"
    unique = tuple(dict.fromkeys(number.lstrip("0") or "0" for number in incidents))
    return MentionReading(text, unique, that, defender)


_BARE_NUMBER = re.compile(r"(?<![\w.:/#\[+-])(\d{1,9})(?![\w.:/%\]-])")


def bare_numbers(text: str) -> tuple[str, ...]:
    """Numbers that nothing else claimed: "what severity is 18"."""
    return tuple(match[1] for match in _BARE_NUMBER.finditer(text))
