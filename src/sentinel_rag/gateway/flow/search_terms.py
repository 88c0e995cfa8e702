"""What a person asks to look up: "search the web for password spraying", "google log4shell", "what is a botnet?".

Above it `named_values` makes values of the kind `sought` of these; one clause gives two or three texts at most, so that
an agent has next to no choice. What is asked only in passing ("what is incident 207 about", "what is ws-fin-07") is no
wish to look something up outside: a definition is asked of words, and not of ids, addresses and machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_SOUGHT = 200
"""Characters of what may be looked up."""

_WEB = r"(?:the\s{1,3})?(?:web|internet|net)"
_WISHES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:search|check|browse|query|ask)\s{{1,3}}{_WEB}\s{{1,3}}(?:for|about|on)\s{{1,3}}(?P<wanted>\S.*)",
        r"\b(?:web|internet|online)\s{1,3}search\s{1,3}(?:(?:for|about|on)\s{1,3})?(?P<wanted>\S.*)",
        r"\b(?:search|look)\s{1,3}online\s{1,3}(?:for|about)\s{1,3}(?P<wanted>\S.*)",
        r"\bgoogle\s{1,3}(?:for\s{1,3})?(?P<wanted>\S.*)",
        rf"\b(?:search|look|find)(?:\s{{1,3}}for)?(?:\s{{1,3}}up)?\s{{1,3}}(?P<wanted>\S.{{0,200}}?)\s{{1,3}}(?:up\s{{1,3}})?"
        rf"(?:online|(?:on|in)\s{{1,3}}{_WEB})\b",
        rf"\bwhat\s{{1,3}}does\s{{1,3}}{_WEB}\s{{1,3}}say\s{{1,3}}about\s{{1,3}}(?P<wanted>\S.*)",
    )
)
_TERM = r"(?P<wanted>[^\W\d_][^\W\d_&'’-]*(?:[\s'’-]{1,2}[^\W\d_]+){0,6})"
"""Words of letters alone."""

_DEFINITIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bwhat(?:'s|\s{{1,3}}is|\s{{1,3}}are)\s{{1,3}}(?:exactly\s{{1,3}}|meant\s{{1,3}}by\s{{1,3}})?{_TERM}\W*\Z",
        rf"\bwhat\s{{1,3}}(?!does\b){_TERM}\s{{1,3}}(?:is|are|means?)\W*\Z",
        rf"\bwhat\s{{1,3}}does\s{{1,3}}{_TERM}\s{{1,3}}mean\W*\Z",
        rf"\b(?:define|explain|(?:meaning|definition)\s{{1,3}}of)\s{{1,3}}{_TERM}\W*\Z",
    )
)
_GOES_ON = re.compile(r"[,;]|\s(?:and|then)\s")
_AROUND = " \t.,;:!?\"'“”„«»`()"


def sought_in(clause: str) -> Iterator[str]:
    """What a clause asks to look up, as it is written: whole, to where the sentence may go on, and, where a definition
    is asked for, as a question."""
    for wish in _WISHES:
        for match in wish.finditer(clause):
            yield from _texts(match["wanted"])
            yield from _texts(_GOES_ON.split(match["wanted"])[0])
    for definition in _DEFINITIONS:
        for match in definition.finditer(clause):
            for text in _texts(match["wanted"]):
                yield text
                yield f"what is {text}"


def sought_as(text: str) -> str:
    """The text by which two wishes are compared: single blanks, nothing around it."""
    return " ".join(text.split()).strip(_AROUND)


def _texts(wanted: str) -> Iterator[str]:
    text = sought_as(wanted)
    if 1 < len(text) <= MAX_SOUGHT:
        yield text
