"""Handles as every zone sees them: `{"$ref": "r1#/rows/0/name"}` in a result stands for a value that the Interceptor
keeps, `{"$quote": "text"}` for a text of others that is shown.

An agent that writes texts puts a handle down as a placeholder, `⟦r1#/rows/0/name⟧`; the surface, which speaks for a
person, asks the Interceptor for the value and draws it in its place. The agent never has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

REF_KEY = "$ref"
QUOTE_KEY = "$quote"

_PLACEHOLDER = re.compile(r"⟦(r[1-9][0-9]{0,8}#[^⟦⟧]{0,1024})⟧")
_WORD = re.compile(r"(?:⟦[^⟦⟧]*⟧|[^\s⟦⟧])+")
_POSSESSIVE = re.compile(r"⟧['’]s\b")


def placeholder(handle: str) -> str:
    """The text form of a handle."""
    return f"⟦{handle}⟧"


def handles_in(value: Any) -> tuple[str, ...]:
    """The handles whose placeholders stand in the texts of a JSON value as words of their own, each once."""
    found: dict[str, None] = {}

    def collect(handle: str) -> None:
        found[handle] = None

    _with_texts(value, lambda text: _each_placeholder(text, collect))
    return tuple(found)


def fill_in(value: Any, values: Mapping[str, Any]) -> Any:
    """A JSON value with the placeholders of known values in its texts replaced; the others stay.

    One that is glued to letters or digits stays too: whoever wrote the text could else have a hidden value drawn into
    an address, a path or a command, and carried off by whoever follows it.
    """
    return _with_texts(value, lambda text: _each_placeholder(text, lambda handle: values.get(handle)))


def _each_placeholder(text: str, put: Callable[[str], Any]) -> str:
    """The text with what `put` gives for each handle that stands by itself; None leaves its placeholder."""

    def in_word(word: re.Match[str]) -> str:
        beside = _PLACEHOLDER.sub("", _POSSESSIVE.sub("⟧", word[0]))
        if any(character.isalnum() for character in beside):
            return word[0]
        return _PLACEHOLDER.sub(lambda match: match[0] if (put_in := put(match[1])) is None else str(put_in), word[0])

    return _WORD.sub(in_word, text) if "⟦" in text else text


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
    """JSON pointers (RFC 6901) of the quotes in a result as the Interceptor sends it; `as_text` leaves each in its
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
