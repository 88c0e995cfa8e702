"""The text of a model as an answer may hold it: Markdown that loads nothing, links nowhere and steers no terminal.

A model repeats what it read, so its text is as untrusted as a row. Link targets become code spans: a person still sees
where they would have led. Surfaces sanitise again.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.row_text import plain

MAX_CHARACTERS = 60_000
_LONGEST_LINE = 8_000
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\(\s*<?([^\s()<>]{0,2000})>?[^()\n]{0,300}\)")
_REFERENCE = re.compile(r"^(\s{0,3}\[[^\[\]\n]{1,100}\]:)[ \t]*(\S.*)$", re.MULTILINE)
_REFERENCE_IMAGE = re.compile(r"!(?=\[)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])[^<>\n]{0,2000}>?")
_URL = re.compile(r"(?<![\w`])(?:[a-z][a-z0-9+.-]{1,20}://|www\.)[^\s`<>\"'()\[\]]+", re.IGNORECASE)


def shown(text: str) -> str:
    """`text` in the form in which an answer may hold it, at most MAX_CHARACTERS long. Idempotent."""
    text = "\n".join(_line(line) for line in text[:MAX_CHARACTERS].splitlines())
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [_without_markup(text[end : found.start()]), found[0]]
        end = found.end()
    parts.append(_without_markup(text[end:]))
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()


def _line(line: str) -> str:
    """The line without controls; its indentation stays, since Markdown reads it."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * min(indent, 12) + plain(line, limit=_LONGEST_LINE)


def _without_markup(text: str) -> str:
    text = _LINK.sub(_unlinked, text)
    text = _REFERENCE.sub(lambda found: f"{found[1]} {_span(found[2])}", text)
    text = _REFERENCE_IMAGE.sub("", text)
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):  # what was made code above stays as it is
        parts += [_in_spans(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, _in_spans(text[end:])])


def _in_spans(text: str) -> str:
    """Tags and bare addresses as code spans. One pattern after the other would put spans into spans."""
    return re.sub(f"{_TAG.pattern}|{_URL.pattern}", lambda found: _span(found[0]), text, flags=re.IGNORECASE)


def _unlinked(found: re.Match[str]) -> str:
    text, target = found[1].strip(), found[2]
    if not target or target == text:
        return _span(target) if target else text
    return f"{text} ({_span(target)})" if text else _span(target)


def _span(text: str) -> str:
    text = text.replace("`", "ˋ").strip()
    return f"`{text}`" if text else ""
