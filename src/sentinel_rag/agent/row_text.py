"""Text that an attacker may have written, made safe to stand in an answer.

Titles, command lines and names come from logs. Here they lose whatever steers a terminal or a browser (escape
sequences, control and direction characters, invisible characters) and are quoted so that Markdown renders them
literally. Surfaces sanitise again; this is the agent's one place.
"""

from __future__ import annotations

import re
import unicodedata

MAX_CHARACTERS = 300

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and friends up to their end
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[@-Z\\-_]?",
    re.DOTALL,
)
_SPACES = re.compile(r"\s+")
_MARKDOWN = re.compile(r"[\[\]<>*_#|!~\\&`{}]|https?:|://|www\.", re.IGNORECASE)
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """One line without controls, escapes, invisible or direction characters; cut to `limit` characters with `…`.

    Safe as a table cell (cells are not Markdown). Visible characters of every script stay as they are.
    """
    text = _SPACES.sub(" ", _ESCAPES.sub("", text))
    text = "".join(
        character
        for character in text
        if character == " " or unicodedata.category(character) not in _DROPPED_CATEGORIES
    )
    text = _SPACES.sub(" ", text).strip()
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
