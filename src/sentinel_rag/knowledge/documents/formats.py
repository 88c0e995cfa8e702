"""The file formats of playbooks: bytes of a file to title, sections and facets, one function for each ending."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.knowledge.documents.decoding import decode
from sentinel_rag.knowledge.documents.faults import MissingReaderError
from sentinel_rag.knowledge.documents.front_matter import read_front_matter
from sentinel_rag.knowledge.documents.html import DECLARED, read_html
from sentinel_rag.knowledge.documents.markdown import heading_text, read_markdown
from sentinel_rag.knowledge.documents.model import DocumentSection, Facets
from sentinel_rag.knowledge.documents.pdf import read_pdf

_NO_TEXT = "It holds no text."
_SCANNED = "It holds pictures of pages and no text; run character recognition over it first (for instance ocrmypdf)."
_EXTRA = "Install what reads it: pip install 'sentinel-rag[knowledge]'."


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What a file holds. `readers` is None where it names none, `sensitivity` LOW where it says nothing. `without_text`
    says why there may be no sections."""

    title: str
    sections: tuple[DocumentSection, ...]
    facets: Facets = field(default_factory=Facets)
    readers: frozenset[str] | None = None
    sensitivity: Sensitivity = Sensitivity.LOW
    remarks: tuple[str, ...] = ()
    without_text: str = _NO_TEXT


def _markdown(content: bytes, stem: str) -> ReadFile:
    decoded = decode(content)
    front, text = read_front_matter(decoded.text)
    found = read_markdown(text, first_line=front.lines + 1)
    title = front.title or found.title or _spoken(stem)
    remarks = tuple(filter(None, (decoded.remark, *front.remarks)))
    sensitivity = front.sensitivity or Sensitivity.LOW
    return ReadFile(heading_text(title), found.sections, front.facets, front.readers, sensitivity, remarks)


def _html(content: bytes, stem: str) -> ReadFile:
    named = DECLARED.search(content[:1024])
    decoded = decode(content, declared=named[1].decode("ascii", "replace") if named else "")
    try:
        page = read_html(decoded.text)
    except ImportError:
        raise MissingReaderError(_EXTRA) from None
    return ReadFile(page.title[:300] or _spoken(stem), page.sections, remarks=tuple(filter(None, (decoded.remark,))))


def _pdf(content: bytes, stem: str) -> ReadFile:
    try:
        found = read_pdf(content)
    except ImportError:
        raise MissingReaderError(_EXTRA) from None
    remarks = list(found.remarks)
    if found.sections and found.pages_without_text:
        remarks.append(f"{found.pages_without_text:,} of its {found.pages:,} pages hold no text (scanned?).")
    return ReadFile(found.title[:300] or _spoken(stem), found.sections, remarks=tuple(remarks), without_text=_SCANNED)


def _spoken(stem: str) -> str:
    """A title made of a file's name."""
    return " ".join(re.sub(r"[_-]+", " ", stem).split())[:300]


FORMATS: Mapping[str, Callable[[bytes, str], ReadFile]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _markdown,
    ".html": _html,
    ".htm": _html,
    ".pdf": _pdf,
}
"""By the file's ending in lower case: content and stem to what it holds. Each may raise FileFault or
MissingReaderError."""
