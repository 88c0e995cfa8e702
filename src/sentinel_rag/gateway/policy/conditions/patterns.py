"""Regular expressions of conditions, by RE2: the time of a search is linear in the text, whatever the pattern.

RE2 gives up nothing when its memory is used up but speed: it then walks its automaton state by state, so an answer is
always right. What cannot be linear (backreferences, look-around) it refuses to compile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

MAX_PATTERN = 512
MAX_MEMORY = 2**18
"""Bytes that one compiled pattern may take, its cache included."""

MAX_JOINED_MEMORY = 2**21


class Regex(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> Any: ...


class BadPattern(ValueError):
    """RE2 does not take the pattern; the message says which part."""


def compile_pattern(pattern: str) -> Regex:
    """Raises BadPattern."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"the regular expression has more than {MAX_PATTERN} characters")
    if not pattern:
        raise BadPattern("the regular expression is empty and would match every text")
    return _compiled(pattern, MAX_MEMORY)


def join_patterns(patterns: Iterable[str]) -> Regex | None:
    """One pattern that is found where any of `patterns` is; None if together they are too large."""
    try:
        return _compiled("|".join(f"(?:{pattern})" for pattern in patterns), MAX_JOINED_MEMORY)
    except BadPattern:
        return None


def found(regex: Regex, text: str) -> bool:
    return regex.search(text) is not None


def escaped(text: str) -> str:
    """The pattern of exactly `text`."""
    import re2

    return str(re2.escape(text))


def _compiled(pattern: str, memory: int) -> Regex:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.never_capture = True
    try:
        compiled: Regex = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(f"not a regular expression: {text}") from None
    return compiled
