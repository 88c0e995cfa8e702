"""Text in a Markdown file that others will open with a viewer of theirs: every mark of Markdown and HTML is escaped.

A viewer may load images, run HTML and turn bare addresses into links, so none of them may come out of a text. The words
stay as they are to a reader of the file and of the page.
"""

from __future__ import annotations

import re

from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

_MARKS = re.compile(r"[\\`*\[\]|~$^]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)")
"""An underscore within a word is no mark, and log columns are full of them."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_ENTITY = re.compile("[&<>@]")
_ADDRESS = re.compile(r":(?=/|\\/)|(?<=\bwww)\.", re.IGNORECASE)
_LINE_START = re.compile(r"^([-+#=]|[0-9]{1,9}(?=[.)]))")
_BARE_SCHEME = re.compile(r"\b(javascript|data|vbscript|file|mailto|xmpp|ftp)(:)", re.IGNORECASE)


def markdown_line(text: object, *, begins: bool = True) -> str:
    """`text` on one line, for a list item or a table cell; without `begins`, it goes on with a line."""
    return _escaped(safe_cell(str(text)).strip(), begins=begins)


def markdown_lines(text: object) -> str:
    """`text` with its lines, each a line of one paragraph."""
    return "\\\n".join(_escaped(line.strip()) or "&nbsp;" for line in safe(str(text)).strip().split("\n"))


def _escaped(line: str, *, begins: bool = True) -> str:
    marked = _MARKS.sub(lambda found: "\\" + found.group(), _ENTITY.sub(lambda found: _ENTITIES[found.group()], line))
    marked = _BARE_SCHEME.sub(r"\1&#58;", marked)
    marked = _ADDRESS.sub(lambda found: "&#58;" if found.group() == ":" else "&#46;", marked)
    return marked if not begins else _LINE_START.sub(lambda found: _started(found.group()), marked)


def _started(mark: str) -> str:
    return "\\" + mark if mark in "-+#=" else mark[:-1] + f"&#{ord(mark[-1])};"
