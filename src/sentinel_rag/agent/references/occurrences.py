"""Finds a name in a text where it stands for itself and is no part of a longer name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_GOES_ON = re.compile(r"[\w@]|[.-]\w")
_BEGAN = re.compile(r"[\w@.-]")


def occurrences(words: str, text: str) -> Iterator[int]:
    """Where `words` begin in `text`; both in one case. "web-3" is not found in "web-30" or in "web-3.example"."""
    begin = text.find(words) if words else -1
    while begin >= 0:
        end = begin + len(words)
        if not _BEGAN.match(text[max(begin - 1, 0) : begin]) and not _GOES_ON.match(text[end : end + 2]):
            yield begin
        begin = text.find(words, begin + 1)
