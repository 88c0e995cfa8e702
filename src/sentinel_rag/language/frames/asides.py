"""What a sentence says beside its question: a wish for the web or a file, the workspace or the time zone that it names.

`asides.toml` holds the phrases of a language, this module the shapes of what is taken out of them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from sentinel_rag.language.text import toml_beside

_SHAPES = {
    "wanted": r".+?",
    "path": r"\"[^\"]+\"|“[^”]+”|`[^`]+`|\S+?",
    "name": r"['\"“”`]?(?P<bare>[A-Za-z0-9][A-Za-z0-9_-]{0,39})['\"“”`]?",
    "title": r"[^\W_][\w-]*(?:\s+[^\W_][\w-]*){0,3}?",
    "iana": r"(?-i:[A-Z][A-Za-z_]+(?:/[A-Z][\w+-]+){1,2})(?!/)",
    "city": r"(?:[^\W\d_][\w.'’-]*\s+){0,2}[^\W\d_][\w.'’-]*",
    "unknown": r"(?-i:[A-Z][a-z]+(?:\s+[A-Z][a-z]+)?)",
}
_TOKEN = re.compile(r"\{(\w+)\}|(\.\.\.)|(\(|\||\)\*?)|( )|([^{}()| ]+|.)")
_END = r"[\s.?!]*$"


def _sections() -> Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]:
    return toml_beside(__package__, "asides.toml")


@cache
def said_words(section: str, name: str) -> frozenset[str]:
    """The words or phrases of a list, in every language."""
    return frozenset(
        each
        for told in _sections().values()
        for phrase in told.get(section, {}).get(name, ())
        for each in (phrase.split() if section == "workspace" else [phrase])
    )


@cache
def technique_called(words: str) -> str | None:
    """The technique of that name, as people say it; in one word or two ("bruteforce") is the same."""
    said = _joined(words)
    for told in _sections().values():
        for technique, phrases in told.get("technique", {}).items():
            if said in map(_joined, phrases):
                return technique
    return None


def _joined(words: str) -> str:
    return words.lower().replace(" ", "").replace("-", "")


def asides(text: str, section: str, name: str, *, whole: bool = False, leads: bool = False) -> Iterator[re.Match[str]]:
    """Where the phrases of a list stand in a text, phrase by phrase; `whole` if one has to be all that it says, `leads`
    if it has to stand at the beginning."""
    for pattern in _patterns(section, name, _END if whole else "" if leads else None):
        match = pattern.match(text) if whole or leads else None
        yield from pattern.finditer(text) if not (whole or leads) else () if match is None else (match,)


@cache
def _patterns(section: str, name: str, end: str | None) -> tuple[re.Pattern[str], ...]:
    """The phrases of a list; with an `end` they begin the text, whatever is said politely before."""
    made = []
    for told in _sections().values():
        polite, tail = ("|".join(_pattern(phrase, {}) for phrase in told["lead"][side]) for side in ("polite", "tail"))
        closes = rf"(?:[\s,]+(?:{tail}))*{end}" if end else ""
        for phrase in told.get(section, {}).get(name, ()):
            pattern = _pattern(phrase, told[section])
            begun = rf"^\W*(?:(?:{polite})[\s,:]+)*{pattern}{closes}"
            made.append(rf"\b{pattern}(?!\w)" if end is None else begun)
    return tuple(re.compile(each, re.IGNORECASE) for each in made)


def _pattern(phrase: str, keys: Mapping[str, Sequence[str]]) -> str:
    """The regular expression of a phrase."""

    def part(match: re.Match[str]) -> str:
        slot, some, group, blank, word = match.groups()
        if slot:
            own = "|".join(each if ".+" in each else _pattern(each, {}) for each in keys.get(slot, ()))
            return rf"(?P<{slot}>{_SHAPES.get(slot) or own})"
        if group:
            return "(?:" if group == "(" else group
        return r"\b[^.?!]*\b" if some else r"\s+" if blank else re.escape(word)

    return _TOKEN.sub(part, phrase)
