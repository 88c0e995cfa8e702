"""Markdown read and written: of an answer as HTML with the check's marks, and texts of others as escaped Markdown.

The parser (markdown-it-py) has HTML off, and its tokens are read by an emitter that knows no element which loads, runs
or opens anything. A parser says of an inline token which lines it stands on, and no place in them: its text is looked
for there, and a mark of what is not found is missing, a character never.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from sentinel_rag.surfaces.rendering.visible import Marked, Note, html_text, opened_host, safe_cell

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token


_MARKS = re.compile(r"[\\`*\[\]|~$^]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)")
"""An underscore within a word is no mark, and log columns are full of them."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_ENTITY = re.compile("[&<>@]")
_ADDRESS = re.compile(r":(?=/|\\/)|(?<=\bwww)\.", re.IGNORECASE)
_LINE_START = re.compile(r"^([-+#=]|[0-9]{1,9}(?=[.)]))")
_BARE_SCHEME = re.compile(r"\b(javascript|data|vbscript|file|mailto|xmpp|ftp)(:)", re.IGNORECASE)


def markdown_line(text: object, *, begins: bool = True) -> str:
    """`text` on one line, for a list item or a table cell; without `begins`, it goes on with a line."""
    line = safe_cell(str(text)).strip()
    marked = _MARKS.sub(lambda found: "\\" + found.group(), _ENTITY.sub(lambda found: _ENTITIES[found.group()], line))
    marked = _BARE_SCHEME.sub(r"\1&#58;", marked)
    marked = _ADDRESS.sub(lambda found: "&#58;" if found.group() == ":" else "&#46;", marked)
    return marked if not begins else _LINE_START.sub(lambda found: _started(found.group()), marked)


def _started(mark: str) -> str:
    return "\\" + mark if mark in "-+#=" else mark[:-1] + f"&#{ord(mark[-1])};"


SEEN = "seen"
"""Key of a token's `meta`: the text is a literal that stands so to what is cited."""
NOTE = "note"
"""Type of a token that is a note, and the key of its `meta` that holds it."""
IN_ROW, BELOW = "in_row", "below"
"""Keys of a note's `meta`: its reason does not fit there, or it stands there alone, below the table."""

_WRITTEN = ("text", "code_inline", "text_special")
_BREAKS = ("softbreak", "hardbreak")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A block of text: where it begins, and of each child of an inline token its place, None if it is not known."""

    start: int
    places: Sequence[int | None] = ()


def with_marks(tokens: Sequence[Token], marked: Marked) -> list[Token]:
    """The tokens of `marked.text` with its literals as texts of their own and its notes in their places."""
    return list(_Setting(marked, _placed(tokens, marked.text)).tokens(tokens))


class _Setting:
    def __init__(self, marked: Marked, placed: dict[int, _Placed]) -> None:
        self._marked = marked
        self._placed = placed
        starts = [each.start for each in placed.values()]
        # Behind the last word of a block stands what comes before the next one begins.
        self._following = dict(zip(placed, (*starts[1:], len(marked.text)), strict=False))
        self._notes = list(marked.notes)
        self._told = 0
        self._of_rows: list[Note] = []

    def tokens(self, tokens: Sequence[Token]) -> Iterator[Token]:
        in_table = False
        for number, token in enumerate(tokens):
            in_table = in_table or token.type == "table_open"
            if token.type == "inline":
                yield token.copy(children=[*self._children(number, token, in_table)])
            else:
                yield token
            if number in self._placed and token.type != "inline":
                yield from _paragraph([_note(note) for note in self._due(self._following[number])])
            if token.type == "table_close":
                in_table = False
                yield from _paragraph([_note(note, BELOW) for note in self._of_rows])
                self._of_rows = []
        yield from _paragraph([_note(note) for note in self._due(len(self._marked.text))])

    def _children(self, number: int, token: Token, in_table: bool) -> Iterator[Token]:
        placed = self._placed[number]
        for child, place in zip(token.children or (), placed.places, strict=True):
            if place is None:
                yield child
                continue
            yield from self._due_here(place, in_table)
            if child.type in _BREAKS:
                yield child
                continue
            end = place + len(_written(child))
            if child.type == "text_special":
                [(_, seen), *_] = self._marked.pieces(place, end)
                yield child.copy(type="text", meta={SEEN: seen} if seen else {})
                continue
            while place < end:
                until = self._notes[self._told].at if self._told < len(self._notes) else end
                until = until if place < until < end else end
                for text, seen in self._marked.pieces(place, until):
                    yield child.copy(content=text, meta={SEEN: seen} if seen else {})
                place = until
                if place < end:
                    yield from self._due_here(place, in_table)
        yield from self._due_here(self._following[number], in_table)

    def _due_here(self, until: int, in_table: bool) -> Iterator[Token]:
        for note in self._due(until):
            yield _note(note, *(IN_ROW,) * in_table)
            if in_table and note.sign:
                self._of_rows.append(note)

    def _due(self, until: int) -> list[Note]:
        begun = self._told
        while self._told < len(self._notes) and self._notes[self._told].at <= until:
            self._told += 1
        return self._notes[begun : self._told]


def _placed(tokens: Sequence[Token], text: str) -> dict[int, _Placed]:
    """By its number, each token that shows text itself."""
    lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    placed: dict[int, _Placed] = {}
    at = 0
    for number, token in enumerate(tokens):
        if token.type not in ("inline", "fence", "code_block"):
            continue
        first, last = token.map or (0, len(lines) - 1)
        at = max(at, lines[min(first, len(lines) - 1)])
        limit = lines[min(last, len(lines) - 1)]
        if token.type == "inline":
            said = token.content.split("\n")
            at = max(at, text.find(said[0], at, limit))
            places = list(_places(token.children or (), said[1:], text, at, limit))
            placed[number] = _Placed(at, places)
            pairs = zip(token.children or (), places, strict=True)
            at = max((at, *(place + len(_written(child)) for child, place in pairs if place is not None)))
        else:
            placed[number] = _Placed(at)
            at = max(at, limit)
    return placed


def _places(children: Sequence[Token], lines: list[str], text: str, at: int, limit: int) -> Iterator[int | None]:
    for child in children:
        place = text.find(_written(child), at, limit) if child.type in _WRITTEN else -1
        if place >= 0:
            at = place + len(_written(child))
        elif child.type in _BREAKS and (place := text.find("\n", at, limit)) >= 0:
            at = max(place + 1, text.find(lines.pop(0), place, limit) if lines else 0)
        yield place if place >= 0 else None


def _written(child: Token) -> str:
    return child.markup if child.type == "text_special" else child.content


def _note(note: Note, *where: str) -> Token:
    from markdown_it.token import Token

    meta: dict[str, Any] = {NOTE: note, **dict.fromkeys(where, True)}
    return Token(NOTE, "", 0, meta=meta)


def _paragraph(notes: list[Token]) -> Iterator[Token]:
    """The notes as a paragraph, each on a line; nothing where there are none."""
    from markdown_it.token import Token

    if notes:
        lines = [token for note in notes for token in (Token("hardbreak", "br", 0), note)]
        yield Token("paragraph_open", "p", 1, block=True)
        yield Token("inline", "", 0, children=lines[1:], block=True)
        yield Token("paragraph_close", "p", -1, block=True)


_BLOCKS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "em": "em",
    "strong": "strong",
    "s": "s",
}
_HEADING = "h4"
"""Of every level: an answer stands below the headings of its page, and cannot outrank them."""


_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_BORDER = re.compile(r"(?<!\\)\|")


def parsed_answer(text: str) -> list[Token]:
    """The blocks of an answer: no HTML, no entity, and no reference whose address would stand elsewhere, unseen."""
    return _parser(tables_are_whole(text), links=True).parse(text)


def parsed_without_links(text: str) -> list[Token]:
    """The same, with links, images and addresses left as they are written, for a surface that shows no links."""
    return _parser(tables_are_whole(text), links=False).parse(text)


def tables_are_whole(text: str) -> bool:
    """False if a row of a table has more cells than its head: a reader of Markdown drops them, and whoever wrote a bar
    into a title would hide what stands behind it. Such a text is shown without tables."""
    most = 0
    for line in text.split("\n"):
        row = line.strip()
        cells = len(_BORDER.split(row.strip("|")))
        if most and not row:
            most = 0
        elif "|" in row and _RULE.fullmatch(row):
            most = most or cells
        elif most and cells > most:
            return False
    return True


_NEVER = ("reference", "text_join", "entity")
"""The second rule would join what stood behind a backslash with the text around it, whose place is then not found."""


_LINKS = ("link", "image", "autolink", "html_block", "html_inline")


@cache
def _parser(tables: bool, *, links: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", *(["table"] * tables)])
    return _each_line_for_itself(parser.disable([*_NEVER, *(() if links else _LINKS)]))


def _each_line_for_itself(parser: MarkdownIt) -> MarkdownIt:
    """End a quote before a line without its mark, and an item before a line at its left.

    Markdown lets such a line go on with the paragraph above ("lazy continuation"): the answer's own words would stand
    as those of somebody who is quoted.
    """

    def ends_quote(state: StateBlock, _: int, __: int, silent: bool) -> bool:
        return silent and state.parentType == "blockquote"  # rows of a table ask the same rules

    def ends_item(state: StateBlock, line: int, _: int, silent: bool) -> bool:
        return silent and state.sCount[line] < state.blkIndent

    parser.block.ruler.before("paragraph", "ends_quote", ends_quote, {"alt": ["blockquote"]})
    parser.block.ruler.before("paragraph", "ends_item", ends_item, {"alt": ["paragraph"]})
    return parser


def marked_html(marked: Marked, put: Callable[[Note, bool], str]) -> str:
    """An answer with its marks as HTML. Every new line of it stays a line, and no link of it opens. `put` gives that of
    a note, and of one alone where the reason of a row stands below its table."""
    tokens = with_marks(parsed_answer(marked.text), marked)
    return "".join(_element(token, put) for token in tokens)


def _element(token: Token, put: Callable[[Note, bool], str]) -> str:
    if token.type == "inline":
        return _inline(token.children or (), put)
    if token.type in ("fence", "code_block"):
        told = f"{token.info.strip()}\n" if token.info.strip() else ""
        return f"<pre><code>{html_text(told + token.content.rstrip())}</code></pre>\n"
    if token.type == "hr":
        return "<hr>\n"
    kind = token.type.removesuffix("_open").removesuffix("_close")
    name = _HEADING if kind == "heading" else _BLOCKS.get(kind)
    if name is None:
        return html_text(token.content)
    if token.hidden:
        return "<br>\n" if token.nesting < 0 else ""
    if name == "li" and token.info.isdecimal():  # the number as it was written: a viewer would count anew
        return f'<li value="{int(token.info)}">' if token.nesting > 0 else "</li>\n"
    return f"</{name}>\n" if token.nesting < 0 else f"<{name}>"


def _inline(tokens: Sequence[Token], put: Callable[[Note, bool], str]) -> str:
    written: list[str] = []
    targets: list[tuple[str, str]] = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            written.append("<br>\n")
        elif token.type == NOTE:
            note = token.meta[NOTE]
            written.append(put(replace(note, reason="") if token.meta.get(IN_ROW) else note, BELOW in token.meta))
        elif token.type in ("text", "text_special", "code_inline"):
            said = html_text(token.content)
            said = f"<code>{said}</code>" if token.type == "code_inline" else said
            seen = token.meta.get(SEEN)
            written.append(f'<u class="{seen}">{said}</u>' if seen else said)
        elif token.type == "image":
            leads = " ".join(_target(token, "src")).strip()
            written.append(f"[image, not loaded: {html_text(token.content)} ({html_text(leads)})]")
        elif token.type == "link_open":
            targets.append(_target(token, "href"))
        elif token.type == "link_close":
            written.append(_leads_to(*targets.pop()))
        elif token.type in ("em_open", "em_close", "strong_open", "strong_close", "s_open", "s_close"):
            written.append(f"<{'/' if token.nesting < 0 else ''}{_BLOCKS[token.type.partition('_')[0]]}>")
        else:
            written.append(html_text(token.content))
    return "".join(written)


def _target(token: Token, name: str) -> tuple[str, str]:
    """The address, and the title that would else stand in a tooltip alone."""
    return str(token.attrGet(name) or ""), str(token.attrGet("title") or "")


def _leads_to(target: str, title: str) -> str:
    """Where a link would lead, behind its words."""
    host = opened_host(target)
    said = html_text(f"{target} {title}".strip())
    return f" [not a link: {said}]" if host is None else f" [{html_text(host)}: {said}]"
