"""The text of a model as an answer may hold it: Markdown that loads nothing, links nowhere and steers no terminal.

A model repeats what it read, so its text is as untrusted as a row. Link targets become code spans: a person still sees
where they would have led. Surfaces sanitise again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sentinel_rag.agent.row_text import plain

MAX_CHARACTERS = 60_000
_LONGEST_LINE = 8_000
_CODE = re.compile(r"(?<!`)(?:```(?!`)[^`]*```|`[^`\n]+`)(?!`)")
_OPENS_CODE = re.compile(r"(?<!`)```(?!`)")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^\S\n]*<?([^\s()<>]{0,2000})>?[^()\n]{0,300}\)")
_CITATION = r"\[{1,2}c\d{1,6}[^\[\]\n]{0,200}\]{1,2}"
_CELL = re.compile(r"c\d{1,6}\.\d{1,6}\.\w{1,80}")
"""The target of a pointer at a cell, which the check resolves."""
_STILL_A_LINK = re.compile(rf"({_CITATION}:)|!(?=\[)|(?<=\])(?=:|\((?!{_CELL.pattern}\)))")
"""What a Markdown reader could still take for a link. A citation before a colon is none: the check takes it out."""
_TAG_OR_URL = re.compile(
    r"<(?=[A-Za-z/!?])[^<>\n]{0,2000}>?|(?:[a-z][a-z0-9+.-]{0,30}://|(?<![a-z0-9])www\.)[^\s<>\"'()\[\]]*",
    re.IGNORECASE,
)


def shown(text: str) -> str:
    """`text` in the form in which an answer may hold it, at most MAX_CHARACTERS long. Idempotent."""
    text = _outside_code(_lines(text[:MAX_CHARACTERS]), lambda part: _without_markup(part.replace("`", "ˋ")))
    return re.sub(r"\n{3,}", "\n\n", _lines(text)).strip()


def code_in(text: str) -> list[tuple[int, int]]:
    """The places of code in the beginning `text` of a text. A block that has not ended yet goes on to its end."""
    found = [match.span() for match in _CODE.finditer(text)]
    for match in _OPENS_CODE.finditer(text):
        outside = not any(start <= match.start() < end for start, end in found)
        if outside and "`" not in text[match.end() :].rstrip("`"):
            return [*found, (match.start(), len(text))]
    return found


def _lines(text: str) -> str:
    """The lines without controls. Their indentation stays, since Markdown reads it."""
    return "\n".join(
        " " * min(len(line) - len(line.lstrip(" ")), 12) + plain(line, limit=_LONGEST_LINE)
        for line in text.splitlines()
    )


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def _without_markup(text: str) -> str:
    text = _LINK.sub(_unlinked, text)
    return _outside_code(text, lambda part: _TAG_OR_URL.sub(lambda found: _span(found[0]), _no_link(part)))


def _no_link(text: str) -> str:
    return _STILL_A_LINK.sub(lambda found: found[1] or ("" if found[0] else " "), text)


def _unlinked(found: re.Match[str]) -> str:
    text, target = found[1].strip(), found[2]
    if _CELL.fullmatch(target):
        return f"[{text}]({target})"
    if text.isdigit():  # the number of a line, as in "[1](High)"
        text = f"[{text}]"
    elif not target or target == text:
        return _span(target)
    return f"{text} ({_span(target)})"


def _span(text: str) -> str:
    """A code span with a space on both sides: two that touch would be none."""
    text = text.replace("`", "ˋ").strip()
    return f" `{text}` " if text else ""
