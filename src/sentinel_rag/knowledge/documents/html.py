"""Read an HTML page into sections, as a browser must read it; bound first what it may cost the parser."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.knowledge.documents.model import (
    BlockKind,
    DocumentBlock,
    DocumentSection,
    FileFault,
    Heading,
    sections_of,
)

# A scan in the spirit of the HTML standard's tokenizer that only moves forward. It knows comments, quoted values and
# elements whose content is no markup, so that neither hides a tag from it, nor shows it one that is none.
DEEPEST = 512
"""Elements inside one another; browsers stop there too."""
MOST_ATTRIBUTES = 1_000
"""Of one tag."""

_MARKUP = re.compile(r"<(?:!--|[!?]|/?[a-zA-Z])")
_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+))?""")
_END = re.compile(r"[\s/]*+>")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_SELF_ENDING = frozenset({"p", "li", "dt", "dd", "tr", "td", "th", "tbody", "thead", "tfoot", "option", "body", "html"})
"""Elements that the next of their kind ends, so people leave their ends out."""


def check_limits(page: str) -> None:
    """Raises FileFault for a page that is nested too deeply, or has a tag with too many attributes."""
    depth: Counter[str] = Counter()
    total = place = 0
    while (found := _MARKUP.search(page, place)) is not None:
        start = found.start()
        if found[0] == "<!--":
            end = page.find("-->", start + 4)
            place = end + 3 if end >= 0 else len(page)
            continue
        if found[0] in ("<!", "<?"):
            end = page.find(">", start)
            place = end + 1 if end >= 0 else len(page)
            continue
        name = _NAME.match(page, start)
        assert name is not None, "markup that is no comment and no declaration begins a tag"
        place = _after_tag(page, name.end())
        tag = name[1].lower()
        closes = page[start + 1] == "/"
        if not closes and tag in _RAW:
            closing = _RAW_ENDS[tag].search(page, place)
            place = closing.start() if closing else len(page)
        elif tag not in _VOID and tag not in _SELF_ENDING and tag not in _RAW:
            if not closes:
                depth[tag] += 1
                total += 1
            elif depth[tag]:  # an end without its beginning ends nothing
                depth[tag] -= 1
                total -= 1
            if total > DEEPEST:
                raise FileFault(f"Its elements are nested more than {DEEPEST} deep.")


def _after_tag(page: str, place: int) -> int:
    """Where the tag whose name ends at `place` ends itself."""
    for _ in range(MOST_ATTRIBUTES):
        if (end := _END.match(page, place)) is not None:
            return end.end()
        attribute = _ATTRIBUTE.match(page, place)
        if attribute is None:
            return len(page)
        place = attribute.end()
    raise FileFault(f"A tag has more than {MOST_ATTRIBUTES:,} attributes.")


# selectolax reads it as the HTML standard says a browser must, so broken markup is a page like any other. Scripts,
# styles, navigation and whatever is hidden from view are left out. The walk has no recursion: a page's author chooses
# its depth.
DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}["']?([\w.:-]{1,40})""", re.IGNORECASE)
"""Where a page names its encoding, within its first 1,024 bytes."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LEFT_OUT = _names(
    "script style noscript template svg math iframe object embed canvas head nav footer select button dialog"
)
_BLOCKS = _names(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure form header "
    "hr html legend main menu ol p search section summary ul br"
)
_WIDEST = 64
"""Columns to which rows are filled up: a page of many rows and one endless one must not become their product."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN_STYLE = re.compile(r"display\s{0,5}:\s{0,5}none|visibility\s{0,5}:\s{0,5}hidden", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """Its title (`<title>`, else its first `<h1>`, else empty) and its sections. Places count blocks from 1: broken
    markup has no lines to speak of."""

    title: str
    sections: tuple[DocumentSection, ...]


@dataclass(slots=True)
class _Walk:
    parts: list[Heading | DocumentBlock] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    kind: BlockKind = BlockKind.PARAGRAPH

    def end_line(self) -> None:
        """What was gathered of running text becomes a block."""
        text = " ".join("".join(self.line).split())
        self.line.clear()
        if text:
            self.add(self.kind, f"- {text}" if self.kind is BlockKind.LIST_ITEM else text)

    def add(self, kind: BlockKind, text: str) -> None:
        if text.strip():
            self.parts.append(DocumentBlock(kind, text, len(self.parts) + 1))


def read_html(page: str) -> HtmlPage:
    """The sections of a page; of a page with `<main>` only that is read. Any text is a page; one that would
    cost its parser too much raises FileFault."""
    check_limits(page)
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(page)
    root = tree.css_first("main") or tree.body
    walk = _Walk()
    if root is not None:
        for node, opens in _events(root):
            _take(node, opens, walk)
    walk.end_line()
    titled = tree.css_first("title")
    title = "" if titled is None else " ".join(titled.text().split())
    title = title or next((part.text for part in walk.parts if isinstance(part, Heading) and part.level == 1), "")
    return HtmlPage(title, sections_of(walk.parts))


def _events(root: Any) -> Iterator[tuple[Any, bool]]:
    """Each node on entering (True) and leaving (False), without what is left out, tables, code and headings open up
    only once: they are told on entering and their inside is skipped."""
    pending: list[tuple[Any, bool]] = [(root, True)]
    while pending:
        node, opens = pending.pop()
        tag = node.tag
        if opens and (tag in _LEFT_OUT or _is_hidden(node)):
            continue
        yield node, opens
        if not opens or tag in ("table", "pre", "-text") or tag in _HEADINGS:
            continue
        pending.append((node, False))
        pending += [(child, True) for child in reversed(list(node.iter(include_text=True)))]


def _take(node: Any, opens: bool, walk: _Walk) -> None:
    tag = node.tag
    if tag == "-text":
        walk.line.append(node.text_content or "")
    elif tag in _HEADINGS:
        walk.end_line()
        text = " ".join(_visible(node).split())
        if text:
            walk.parts.append(Heading(_HEADINGS[tag], text, len(walk.parts) + 1))
    elif tag == "pre":
        walk.end_line()
        code = _visible(node, as_written=True).strip("\n")
        fence = "```" if "```" not in code else "~~~~"
        walk.add(BlockKind.CODE, f"{fence}\n{code}\n{fence}" if code.strip() else "")
    elif tag == "table":
        walk.end_line()
        walk.add(BlockKind.TABLE, _table(node))
    elif tag == "li":
        walk.end_line()
        walk.kind = BlockKind.LIST_ITEM if opens else BlockKind.PARAGRAPH
    elif tag in _BLOCKS:
        walk.end_line()


def _table(table: Any) -> str:
    """The table in Markdown's form: the first row heads it, and each row is as wide as the widest, up to `_WIDEST`."""
    rows: list[list[str]] = []
    for node, opens in _table_events(table):
        if opens and node.tag == "tr":
            rows.append([])
        elif opens and node.tag in ("td", "th") and rows:
            rows[-1].append(" ".join(_visible(node).split()).replace("|", "\\|"))
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    width = min(_WIDEST, max(map(len, rows)))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join((lines[0], "|" + " --- |" * width, *lines[1:]))


def _table_events(table: Any) -> Iterator[tuple[Any, bool]]:
    """Nodes of a table down to its cells; a table inside a cell is that cell's text."""
    pending = list(reversed(list(table.iter())))
    while pending:
        node = pending.pop()
        if node.tag in _LEFT_OUT or _is_hidden(node):
            continue
        yield node, True
        if node.tag not in ("td", "th"):
            pending += reversed(list(node.iter()))


def _visible(root: Any, *, as_written: bool = False) -> str:
    """The text inside a node that a person sees; blocks and line breaks part words."""
    texts: list[str] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.tag == "-text":
            texts.append(node.text_content or "")
            continue
        if node is not root and (node.tag in _LEFT_OUT or _is_hidden(node)):
            continue
        if node.tag in _BLOCKS or node.tag in ("li", "td", "th", "tr"):
            texts.append("\n" if as_written else " ")
        pending += reversed(list(node.iter(include_text=True)))
    return "".join(texts)


def _is_hidden(node: Any) -> bool:
    attributes = node.attributes if node.tag != "-text" else {}
    return (
        ("hidden" in attributes and (attributes["hidden"] or "").casefold() != "until-found")
        or (attributes.get("aria-hidden") or "").casefold() == "true"
        or _HIDDEN_STYLE.search(attributes.get("style") or "") is not None
    )
