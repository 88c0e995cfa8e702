"""A fetched body as readable text: its character set, then what a person would see of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.tools.web.html_text import text_of_html

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
