"""The words with which people point at things, and the parts of a question that point at nothing: quotations and URLs.

Shared by the readers of this package. Positions in a masked text are positions in the question.
"""

from __future__ import annotations

import re

_KINDS = {
    "incident": "incident case ticket",
    "alert": "alert detection",
    "host": "host machine device server computer workstation endpoint laptop",
    "account": "account user identity person",
    "ip": r"ip\s+address|ip|address",
    "url": "url link",
    "file": "file",
    "filehash": r"file\s+hash|hash",
    "process": "process",
    "mailbox": "mailbox",
    "mailmessage": "email mail message",
    "dns": "domain",
    "malware": "malware",
    "cloud-application": "application app",
    "azure-resource": "resource",
    "section": "section",
    "row": "row",
}
_PLURALS = {
    "address": "addresses",
    "process": "processes",
    "hash": "hashes",
    "identity": "identities",
    "person": "people",
}
KIND_OF: dict[str, str] = {}
for _kind, _words in _KINDS.items():
    for _word in _words.split("|") if "|" in _words else _words.split():
        _single = _word.replace(r"\s+", " ")
        _last = _single.split()[-1]
        _plural = _single.removesuffix(_last) + _PLURALS.get(_last, _last + "s")
        KIND_OF[_single] = KIND_OF[_plural] = _kind
LINES = frozenset(
    {"entry", "item", "line", "result", "option", "row", "hit", "entries", "items", "lines", "results", "rows"}
)
"""Nouns that mean a numbered line, whatever it holds."""
ENTITY_NOUNS = frozenset(KIND_OF.values()) - {"incident", "alert", "section", "row"}

NOUN = "|".join(sorted((re.escape(word).replace(r"\ ", r"\s+") for word in KIND_OF), key=len, reverse=True))
LINE = "|".join(sorted(LINES, key=len, reverse=True))
ONE = r"ones?"

ORDINALS = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5,
    "sixth": 6, "6th": 6, "seventh": 7, "7th": 7, "eighth": 8, "8th": 8, "ninth": 9, "9th": 9, "tenth": 10,
    "10th": 10, "eleventh": 11, "11th": 11, "twelfth": 12, "12th": 12, "last": -1, "final": -1, "second to last": -2,
    "second last": -2, "next to last": -2, "penultimate": -2, "top": 1, "bottom": -1, "topmost": 1, "bottommost": -1,
}  # fmt: skip
ORDINAL = "|".join(sorted((word.replace(" ", r"[\s-]+") for word in ORDINALS), key=len, reverse=True))
NUMERALS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
NUMERAL = "|".join(NUMERALS)

INCIDENT_SAID = re.compile(
    r"(?:\b(?:incidents?|cases?|tickets?)[\s#:-]*|#\s?)(\d{1,9})\b(?![\w/-]|[.:]\d)", re.IGNORECASE
)
"""An incident that a question names by its number."""

ALONE = r"(?<![\w@\\/])(?<!\w[.-])", r"(?![\w@\\/]|[.-]\w)"
"""Before and behind a word that is no part of a name, as "it" is of `wks-it-01` and `it@contoso.example`."""
MASK = "\ufffc"
START, END = r"^[^\w\ufffc]*", r"[^\w\ufffc]*$"
"""Where a question begins and ends but for punctuation; a masked value is a word of it."""
_POINTS_AT_NOTHING = re.compile(
    r"\"[^\"\n]{1,2000}\"|“[^”\n]{1,2000}”|«[^»\n]{1,2000}»|```.*?```|`[^`\n]{1,2000}`|⟦[^⟦⟧]{0,1200}⟧"
    r"|(?<!\w)'[^'\n]{1,400}'(?!\w)|\b(?:https?|hxxps?|ftp)://\S+",
    re.IGNORECASE | re.DOTALL,
)


def mask(question: str) -> str:
    """`question` with quotations, code, placeholders and URLs masked, of the same length: their words are values."""
    return _POINTS_AT_NOTHING.sub(lambda match: MASK * len(match[0]), question)


def spoken(words: str) -> str:
    """`words` in one case with single spaces, as the tables of this module have them."""
    return re.sub(r"[\s-]+", " ", words.strip().lower())


def kind_of(noun: str) -> str:
    """The kind that a noun asks for; empty for "one" and for a line of a list."""
    return KIND_OF.get(re.sub(r"\s+", " ", noun.strip().lower()), "")


def is_plural(noun: str) -> bool:
    """True for "hosts" and "ones"."""
    word = noun.strip().lower()
    return (word.endswith("s") and word not in ("address", "process")) or word == "people"
