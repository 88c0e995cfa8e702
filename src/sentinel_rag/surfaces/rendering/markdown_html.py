"""Markdown of an answer as HTML, by a list of what may come out: a few elements, written here, without attributes.

The parser (markdown-it-py) has HTML off, and its tokens are read by the emitter below, which knows no element that
loads, runs or opens anything. An image is shown as words. A link shows where it would lead, with its host as DNS is
asked for it, and is clickable only where the caller's page asks before it opens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from sentinel_rag.surfaces.rendering.html_text import html_text
from sentinel_rag.surfaces.rendering.links import opened_host
from sentinel_rag.surfaces.rendering.marked_markdown import BELOW, IN_ROW, NOTE, SEEN, with_marks
from sentinel_rag.surfaces.rendering.marks import Marked, Note

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

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
_ALONE = 'rel="noopener noreferrer nofollow" target="_blank" referrerpolicy="no-referrer"'
_HEADING = "h4"
"""Of every level: an answer stands below the headings of its page, and cannot outrank them."""


_RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_BORDER = re.compile(r"(?<!\\)\|")


def parsed_answer(text: str) -> list[Token]:
    """The blocks of an answer: no HTML, no entity, and no reference whose address would stand elsewhere, unseen."""
    return _answer_parser(tables_are_whole(text)).parse(text)


def parsed_without_links(text: str) -> list[Token]:
    """The same, with links, images and addresses left as they are written, for a surface that shows no links."""
    return _spelled_out_parser(tables_are_whole(text)).parse(text)


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


_NEVER = ("reference", "text_join")
"""The second would join what stood behind a backslash with the text around it, whose place is then not found again."""


@cache
def _answer_parser(tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable([*_NEVER, "entity"])
    return parser.enable("table") if tables else parser


@cache
def _spelled_out_parser(tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    parser = parser.enable("table") if tables else parser
    return parser.disable([*_NEVER, "link", "image", "autolink", "html_block", "html_inline", "entity"])


def markdown_html(text: str, *, clickable: bool = False) -> str:
    """`text` as HTML. Every new line of it stays a line. With `clickable` http and https links become `<a>` elements
    that open in a page of their own, without a referrer."""
    return "".join(_element(token, clickable) for token in parsed_answer(text))


def marked_html(marked: Marked, put: Callable[[Note, bool], str]) -> str:
    """An answer with its marks as HTML. `put` gives that of a note, and of one alone where the reason of a row stands
    below its table."""
    tokens = with_marks(parsed_answer(marked.text), marked)
    return "".join(_element(token, False, put) for token in tokens)


def _element(token: Token, clickable: bool, put: Callable[[Note, bool], str] = lambda _, __: "") -> str:
    if token.type == "inline":
        return _inline(token.children or (), clickable, put)
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


def _inline(tokens: Sequence[Token], clickable: bool, put: Callable[[Note, bool], str]) -> str:
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
            written.append(_link_open(targets[-1][0], clickable))
        elif token.type == "link_close":
            written.append(_link_close(*targets.pop(), clickable))
        elif token.type in ("em_open", "em_close", "strong_open", "strong_close", "s_open", "s_close"):
            written.append(f"<{'/' if token.nesting < 0 else ''}{_BLOCKS[token.type.partition('_')[0]]}>")
        else:
            written.append(html_text(token.content))
    return "".join(written)


def _target(token: Token, name: str) -> tuple[str, str]:
    """The address, and the title that would else stand in a tooltip alone."""
    return str(token.attrGet(name) or ""), str(token.attrGet("title") or "")


def _link_open(target: str, clickable: bool) -> str:
    if not clickable or opened_host(target) is None:
        return ""
    return f'<a href="{html_text(target)}" {_ALONE}>'


def _link_close(target: str, title: str, clickable: bool) -> str:
    host = opened_host(target)
    said = html_text(f"{target} {title}".strip())
    if host is None:
        return f" [not a link: {said}]"
    return f"{'</a>' if clickable else ''} [{html_text(host)}: {said}]"
