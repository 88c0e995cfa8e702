"""Text that an attacker may have written, made safe to stand in an answer.

Titles, command lines and names come from logs. What would steer a terminal or a browser in them, or would not be seen
(escape sequences, control, direction and invisible characters), is shown as a visible escape, since it is evidence too;
and they are quoted so that Markdown renders them literally. Surfaces sanitise again; this is the agent's one place.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

from sentinel_rag.contracts.visible_text import visible

MAX_CHARACTERS = 300

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and friends up to their end
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[@-Z\\-_]?",
    re.DOTALL,
)
_SPACES = re.compile(r"\s+")
_BLANKS = re.compile(r"(?:\r\n|[^\S\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029])+")
"""Blank space and ends of lines, but none of the controls and separators among it, which are shown."""
_LONGEST_RUN = 8
_SHOWN_OF_RUN = 4
_MARKDOWN = re.compile(r"[\[\]<>*_#|!~\\&`{}]|https?:|://|www\.", re.IGNORECASE)
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """One line in which controls, escapes, invisible and direction characters are written out; cut to `limit`
    characters with `…`.

    Safe as a table cell (cells are not Markdown). Visible characters of every script stay as they are.
    """
    return _cut(visible(_without_floods(_BLANKS.sub(" ", text))).strip(), limit)


def _without_floods(text: str) -> str:
    """The text with long runs of characters that are not seen by themselves cut to their first ones and a count: all of
    them, written out, would push the words behind them out of every table."""
    if text.isascii() and text.isprintable():
        return text
    parts: list[str] = []
    for hidden, run in groupby(text, key=_is_hidden):
        part = "".join(run)
        most = hidden and len(part) > _LONGEST_RUN
        parts.append(f"{part[:_SHOWN_OF_RUN]}(+{len(part) - _SHOWN_OF_RUN} hidden)" if most else part)
    return "".join(parts)


def _is_hidden(character: str) -> bool:
    return visible(character) != character or unicodedata.category(character)[0] == "M"


def read_plainly(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """One line as a reader takes it in, without what is not seen: for reading what a text says, not for showing it."""
    text = _SPACES.sub(" ", _ESCAPES.sub("", text))
    text = "".join(
        character
        for character in text
        if character == " " or unicodedata.category(character) not in _DROPPED_CATEGORIES
    )
    return _cut(_SPACES.sub(" ", text).strip(), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def quoted(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text in quotation marks, or in a code span where a Markdown reader could see markup in it."""
    text = plain(text, limit=limit)
    if _MARKDOWN.search(text):
        return code(text, limit=limit)
    return f"“{text}”"


def code(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text as a code span: exact, and never a link, an image or HTML. A backtick becomes `ˋ`."""
    text = plain(text, limit=limit).replace("`", "ˋ")
    return f"`{text}`"


def data_line(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text as it is for a line that is quoted already, in a code span where a Markdown reader could see markup
    in it."""
    text = plain(text, limit=limit)
    return code(text, limit=limit) if _MARKDOWN.search(text) else text
