"""The words of an OData expression, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<time>\d{4}-\d{2}-\d{2}T[0-9:.]+(?:Z|[+-]\d{2}:\d{2}))"
    r"|(?P<number>-?\d{1,18}(?![\w.]))|(?P<word>[A-Za-z_][\w/]*)|(?P<sign>[(),]))"
)


class ODataError(Exception):
    """The expression is not one that is understood; `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class ODataToken:
    """A word; `kind` is text, time, number, word, sign, or end behind the last one."""

    kind: str
    text: str
    position: int


def tokens_of(text: str) -> list[ODataToken]:
    """The words of `text`. Raises ODataError for what is none."""
    tokens: list[ODataToken] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ODataError(f"unexpected {text[start : start + 20]!r}", start)
        tokens.append(ODataToken(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    return tokens


def unquoted(text: str) -> str:
    """The value of a text in quotes; a quote in it is written twice."""
    return text[1:-1].replace("''", "'")


def moment_of(token: ODataToken) -> datetime:
    """A time in UTC without zone, as the store keeps it; a seventh fraction digit is cut."""
    text = unquoted(token.text) if token.kind == "text" else token.text
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ODataError("a time needs a zone: write Z", token.position)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ODataError(f"{text[:40]!r} is not a time such as 2026-11-01T00:00:00Z", token.position) from None
