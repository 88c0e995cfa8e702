"""A fetched body as readable text: its character set, then what a person would see of it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field


# A scanner of our own in the spirit of the HTML standard's tokenizer, because Python's `html.parser` takes quadratic
# time on unclosed comments and tags, and a page's author chooses the bytes. Each step here moves forward and never
# looks at a character twice, so 4 MB of anything take well under a few seconds. Scripts, styles and what is hidden from
# view are left out: hidden text is how a page talks to a machine behind a person's back.
def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MARKUP = re.compile(r"<(?=[!?a-zA-Z]|/[a-zA-Z])")
"""Where markup begins; any other `<` is text."""
_TAG_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+)))?""")
_TAG_END = re.compile(r"[\s/]*+>")
_HIDDEN_STYLE = re.compile(r"display\s{0,5}:\s{0,5}none|visibility\s{0,5}:\s{0,5}hidden", re.IGNORECASE)

_RAW = frozenset({"script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript", "template", "svg"})
"""Elements whose content is no text of the page; it ends at the first end tag of that name, whatever lies between."""
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in (*_RAW, "title")}
_VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements that hold nothing, so nothing below them can be hidden."""
_BLOCKS = _names(
    "address article aside blockquote body br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 "
    "h5 h6 header hr html legend li main nav ol option p pre section select summary table tbody td tfoot th thead tr "
    "ul"
)
_MARKS = {"li": "- ", "td": " ", "th": " "}
_MAX_DEPTH = 500


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    opens: bool
    hidden: bool


@dataclass(slots=True)
class _Collected:
    """What was seen so far. `main` is the part inside <main> or <article>, if the page has one."""

    title: str = ""
    everything: list[str] = field(default_factory=list)
    main: list[str] = field(default_factory=list)
    in_main: int = 0
    hidden_in: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if self.hidden_in:
            return
        self.everything.append(text)
        if self.in_main:
            self.main.append(text)


def text_of_html(page: str) -> tuple[str, str]:
    """(title, text). The text of <main> or <article> where there is some, else of the whole page. Total: any text is a
    page."""
    seen = _Collected()
    for part in _tokens(page):
        match part:
            case ("title", str(title)):
                seen.title = seen.title or html.unescape(title)
            case ("text", str(text)):
                seen.add(_flowing(html.unescape(text)))
            case _Tag() as tag:
                _take(tag, seen)
    main = "".join(seen.main)
    return seen.title, main if main.strip() else "".join(seen.everything)


def _flowing(text: str) -> str:
    """The text with every run of white space as one blank, at its edges too: words of neighbours must not meet."""
    before, after = (" " if edge.isspace() else "" for edge in (text[:1], text[-1:]))
    return f"{before}{' '.join(text.split())}{after}" if text.strip() else before


def _take(tag: _Tag, seen: _Collected) -> None:
    if seen.hidden_in:
        # Inside a hidden element only its own end counts; elements of the same name nest.
        if tag.name == seen.hidden_in[-1]:
            if not tag.opens:
                seen.hidden_in.pop()
            elif len(seen.hidden_in) < _MAX_DEPTH:
                seen.hidden_in.append(tag.name)
        return
    if tag.name in _BLOCKS:
        seen.add("" if tag.name in ("td", "th") else "\n")
        if tag.opens:
            seen.add(_MARKS.get(tag.name, ""))
        elif tag.name in ("p", "table", "ul", "ol") or re.fullmatch(r"h[1-6]", tag.name):
            seen.add("\n")
    if tag.name in ("main", "article"):
        seen.in_main = seen.in_main + 1 if tag.opens else max(0, seen.in_main - 1)
    if tag.opens and tag.hidden and tag.name not in _VOID:
        seen.hidden_in.append(tag.name)


def _tokens(page: str) -> Iterator[_Tag | tuple[str, str]]:
    """Tags, texts and the title, in order. An unclosed comment, tag or script takes the rest of the page with it, as in
    a browser."""
    place = 0
    while place < len(page):
        found = _MARKUP.search(page, place)
        if found is None:
            yield ("text", page[place:])
            return
        start = found.start()
        if start > place:
            yield ("text", page[place:start])
        if page.startswith("<!--", start):
            end = page.find("-->", start + 4)
            place = end + 3 if end >= 0 else len(page)
        elif page.startswith(("<!", "<?"), start):
            end = page.find(">", start)
            place = end + 1 if end >= 0 else len(page)
        else:
            name = _TAG_NAME.match(page, start)
            assert name is not None, "markup that is no comment and no declaration begins a tag"
            tag, place = _tag(page, name)
            if tag is None:
                return
            yield tag
            if tag.opens and tag.name in _RAW_ENDS:
                end_tag = _RAW_ENDS[tag.name].search(page, place)
                if tag.name == "title":
                    yield ("title", page[place : end_tag.start() if end_tag else len(page)])
                if end_tag is None:
                    return
                place = end_tag.start()


def _tag(page: str, name: re.Match[str]) -> tuple[_Tag | None, int]:
    """The tag that begins at `name` and where it ends; None if the page ends first."""
    place = name.end()
    hidden = False
    while (end := _TAG_END.match(page, place)) is None:
        attribute = _ATTRIBUTE.match(page, place)
        if attribute is None:
            return None, len(page)
        key = attribute[1].lower()
        value = attribute[2] or attribute[3] or attribute[4] or ""
        hidden = hidden or _hides(key, value)
        place = attribute.end()
    tag = name[1].lower()
    return _Tag(tag, not name[0].startswith("</"), hidden), end.end()


def _hides(key: str, value: str) -> bool:
    match key:
        case "hidden":
            return value.lower() != "until-found"
        case "aria-hidden":
            return value.lower() == "true"
        case "style":
            return _HIDDEN_STYLE.search(value) is not None
        case _:
            return False


HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = frozenset({"text/plain", "application/json", "text/xml", "application/xml"})
_SUFFIXES = ("+json", "+xml")

_CHARSETS = {
    **{name: name for name in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "shift_jis", "euc-jp", "gb18030", "gbk")},
    **{name: name for name in ("big5", "euc-kr", "koi8-r", "koi8-u", "iso-2022-jp", "macintosh")},
    **{f"iso-8859-{number}": f"iso-8859-{number}" for number in (*range(2, 12), 13, 14, 15, 16)},
    **{f"windows-125{number}": f"cp125{number}" for number in range(9)},
    # As browsers do: pages that claim these are really written in Windows' superset.
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"), "cp1252"),
    "utf8": "utf-8",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "gb2312": "gb18030",
    "x-sjis": "shift_jis",
}
_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([A-Za-z0-9_-]{2,20})", re.IGNORECASE)
_DECLARATION = re.compile(
    rb"\s{0,20}<\?xml[^>]{0,200}?encoding\s{0,5}=\s{0,5}[\"']([A-Za-z0-9_-]{2,20})", re.IGNORECASE
)
_META_BYTES = 1_024
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BLANKS = re.compile(r"[ \t\xa0]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class PageText:
    """`title` is empty where the page has none."""

    title: str
    text: str


def is_readable(content_type: str) -> bool:
    """True for the media types that are read: HTML, plain text, JSON, XML."""
    return content_type in HTML or content_type in _PLAIN or content_type.endswith(_SUFFIXES)


def page_text(body: bytes, content_type: str, charset: str | None) -> PageText:
    """The text of a body of a readable type; `charset` is what the response's header claims."""
    text = _decoded(body, charset)
    if content_type in HTML:
        title, text = text_of_html(text)
        lines = (_BLANKS.sub(" ", line).strip() for line in _CONTROLS.sub("", text).split("\n"))
        title = " ".join(_CONTROLS.sub("", title).split())
        return PageText(title, _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip())
    return PageText("", _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def _decoded(body: bytes, charset: str | None) -> str:
    """Never fails: what cannot be decoded becomes U+FFFD. Only known character sets are used, for Python's codecs hold
    compressors and slow ones too."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    told = _META.search(body, 0, _META_BYTES) or _DECLARATION.match(body, 0, _META_BYTES)
    claims = (charset or "", told[1].decode("ascii") if told else "")
    for claim in claims:
        known = _CHARSETS.get(claim.strip().strip("\"'").lower())
        if known is not None:
            return body.decode(known, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")
