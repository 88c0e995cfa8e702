"""Markdown into sections: CommonMark's own blocks, so that a `#` in a code block is no heading.

The parser works on blocks and their lines only; each block keeps its Markdown as it was written. HTML comments are left
out, since they are text that a person never sees and a machine would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sentinel_rag.knowledge.documents.model import BlockKind, DocumentBlock, DocumentSection
from sentinel_rag.knowledge.documents.sectioning import Heading, sections_of

if TYPE_CHECKING:
    from markdown_it.token import Token

_KINDS = {
    "paragraph_open": BlockKind.PARAGRAPH,
    "blockquote_open": BlockKind.PARAGRAPH,
    "html_block": BlockKind.PARAGRAPH,
    "table_open": BlockKind.TABLE,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "list_item_open": BlockKind.LIST_ITEM,
}
_LISTS = ("bullet_list_open", "ordered_list_open")
_HEADING_MARKS = re.compile(r"`|\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}\)")


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """Its sections, and the text of its first level-1 heading (empty if there is none)."""

    title: str
    sections: tuple[DocumentSection, ...]


def read_markdown(text: str, *, first_line: int = 1) -> MarkdownText:
    """The sections of Markdown with line feeds as line ends. Any text is Markdown. `first_line` is where it begins in
    its file, after front matter."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parts = list(_parts(parser.parse(text), text.split("\n"), first_line))
    title = next((part.text for part in parts if isinstance(part, Heading) and part.level == 1), "")
    return MarkdownText(title, sections_of(parts))


def _parts(tokens: Sequence[Token], lines: list[str], first_line: int) -> Iterator[Heading | DocumentBlock]:
    """Headings and blocks in order. Lists are opened up to their items; all else inside a block belongs to it."""
    for place, token in enumerate(tokens):
        in_list = token.type == "list_item_open" and token.level == 1
        if token.map is None or (token.level and not in_list) or token.type in _LISTS:
            continue
        start, end = token.map
        if token.type == "heading_open":
            yield Heading(int(token.tag[1]), heading_text(tokens[place + 1].content), first_line + start)
            continue
        kind = _KINDS.get(token.type)
        if kind is None:  # a thematic break
            continue
        written = "\n".join(lines[start:end]).rstrip()
        if kind is not BlockKind.CODE and "<!--" in written:
            written = without_comments(written).strip("\n")
        if written.strip():
            yield DocumentBlock(kind, written, first_line + start, _holds_whole(tokens, place))


def _holds_whole(tokens: Sequence[Token], place: int) -> bool:
    """Whether a table or code stands inside the block that opens at `place` (of a quote, an item of a list)."""
    opened = tokens[place]
    if opened.nesting != 1:
        return False
    for inner in range(place + 1, len(tokens)):
        token = tokens[inner]
        if token.level == opened.level and token.nesting == -1:
            return False
        if token.type in ("fence", "code_block", "table_open"):
            return True
    return False


def heading_text(markdown: str) -> str:
    """A heading as it is read aloud: no marks of emphasis, code or links."""
    return " ".join(_HEADING_MARKS.sub("", _LINK.sub(r"\1", markdown)).split())


def without_comments(text: str) -> str:
    """`text` less its HTML comments; an unclosed one takes the rest, as in a browser."""
    kept: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0:
        kept.append(text[place:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(kept)
        place = end + 3
    return "".join((*kept, text[place:]))
