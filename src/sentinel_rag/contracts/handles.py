"""Handles as every zone sees them: `{"$ref": "r1#/rows/0/name"}` in a result stands for a value that the gateway
keeps, `{"$quote": "text"}` for a text of others that is shown.

An agent that writes texts puts a handle down as a placeholder, `⟦r1#/rows/0/name⟧`; the surface, which speaks for a
person, asks the gateway for the value and draws it in its place. The agent never has it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

REF_KEY = "$ref"
QUOTE_KEY = "$quote"

SAYS_NOTHING = re.compile(
    r"[0-9A-Fa-fTZ:.,+%/-]{0,64}"
    r"|(?=.{0,64}\Z)[!-@\[-`{-~]*(?:[A-Za-z]+(?:[!-@\[-`{-~]+[A-Za-z]+){0,4})?[!-@\[-`{-~]*"
)
"""A text of at most 64 characters without a blank: a time, an address, a GUID or a hash, or ASCII letters in at most
five groups, as in `srv-file-01.example.com`. A sentence that is joined by other signs has more of them."""

_PLACEHOLDER = re.compile(r"⟦(r[1-9][0-9]{0,8}#[^⟦⟧]{0,1024})⟧")
_WORD = re.compile(r"(?:⟦[^⟦⟧]*⟧|[^\s⟦⟧])+")
_POSSESSIVE = re.compile(r"⟧['’]s\b")


def placeholder(handle: str) -> str:
    """The text form of a handle."""
    return f"⟦{handle}⟧"


def says_nothing(value: Any) -> bool:
    """Whether a value is no text of others that a reader would have to be warned of."""
    return not isinstance(value, str) or (" " not in value and SAYS_NOTHING.fullmatch(value) is not None)


def handles_in(value: Any) -> tuple[str, ...]:
    """The handles whose placeholders stand in the texts of a JSON value as words of their own, each once."""
    found: dict[str, None] = {}

    def collect(text: str) -> str:
        found.update(dict.fromkeys(place[1] for place in _standing_alone(text)))
        return text

    _with_texts(value, collect)
    return tuple(found)


def fill_in(value: Any, values: Mapping[str, Any]) -> Any:
    """A JSON value with the placeholders of known values in its texts replaced; the others stay.

    One that is glued to letters or digits stays too: whoever wrote the text could else have a hidden value drawn into
    an address, a path or a command, and carried off by whoever follows it.
    """
    return _with_texts(value, lambda text: _filled(text, values)[0])


def fill_in_answer(answer: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """`fill_in` of an answer (`Answer.to_dict`), or of its `answer` and `sentences` alone: the places of its sentences
    and marks move with its text."""
    filled: dict[str, Any] = fill_in(dict(answer), values)
    text, moved = _filled(answer["answer"], values)

    def placed(part: Mapping[str, Any]) -> dict[str, Any]:
        return {**part, "start": moved(part["start"]), "end": moved(part["end"])}

    filled["sentences"] = [
        # Its text anew: cut out of the answer, a placeholder may have lost what it was glued to.
        {
            **(whole := placed(sentence)),
            "text": text[whole["start"] : whole["end"]],
            "marks": list(map(placed, sentence["marks"])),
            "citations": [{**each, "at": list(map(moved, each.get("at", ())))} for each in sentence["citations"]],
        }
        for sentence in filled.get("sentences", ())
    ]
    return filled


def _filled(text: str, values: Mapping[str, Any]) -> tuple[str, Callable[[int], int]]:
    """The text with the known values in it, and where a place of it lies then: within a placeholder, at its start."""
    written: list[str] = []
    edges: list[tuple[int, int, int, int]] = []  # a placeholder's start and end, and how far each of them moves
    at = shift = 0
    for place in _standing_alone(text):
        if (value := values.get(place[1])) is not None:
            written += (text[at : place.start()], str(value))
            at = place.end()
            edges.append((place.start(), at, shift, shift := shift + len(str(value)) - len(place[0])))
    written.append(text[at:])

    def moved(place: int) -> int:
        number = bisect_right(edges, place, key=lambda edge: edge[0])
        if not number:
            return place
        start, end, before, behind = edges[number - 1]
        return place + behind if place >= end else start + before

    return "".join(written), moved


def _standing_alone(text: str) -> Iterator[re.Match[str]]:
    """The placeholders that are words of their own."""
    for word in _WORD.finditer(text) if "⟦" in text else ():
        beside = _PLACEHOLDER.sub("", _POSSESSIVE.sub("⟧", word[0]))
        if not any(character.isalnum() for character in beside):
            yield from _PLACEHOLDER.finditer(text, word.start(), word.end())


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(part, change) for part in value]
    return value


def as_text(value: Any) -> Any:
    """A result for an agent that works on plain values: quotes unwrapped, handles as placeholders."""
    if isinstance(value, dict):
        if value.keys() == {REF_KEY}:
            return placeholder(str(value[REF_KEY]))
        if value.keys() == {QUOTE_KEY}:
            return value[QUOTE_KEY]
        return {key: as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_text(part) for part in value]
    return value


def quoted_in(value: Any, pointer: str = "") -> tuple[str, ...]:
    """JSON pointers (RFC 6901) of the quotes in a result as the gateway sends it; `as_text` leaves each in its
    place."""
    if isinstance(value, dict):
        if value.keys() == {QUOTE_KEY}:
            return (pointer,)
        parts = [(f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", part) for key, part in value.items()]
    elif isinstance(value, list):
        parts = [(f"{pointer}/{place}", part) for place, part in enumerate(value)]
    else:
        return ()
    return tuple(found for place, part in parts for found in quoted_in(part, place))


def as_handles(value: Any) -> Any:
    """Arguments with each text that is nothing but a placeholder turned back into its handle."""
    if isinstance(value, str):
        match = _PLACEHOLDER.fullmatch(value)
        return value if match is None else {REF_KEY: match[1]}
    if isinstance(value, dict):
        return {key: as_handles(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_handles(part) for part in value]
    return value
