"""Read the playbooks of a folder: each file becomes a document, or one line that says why not."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sentinel_rag.contracts.labels import Label, Sensitivity
from sentinel_rag.knowledge.documents.html import DECLARED, read_html
from sentinel_rag.knowledge.documents.markdown import heading_text, read_front_matter, read_markdown
from sentinel_rag.knowledge.documents.model import (
    EVERYONE,
    UNTRUSTED_KNOWLEDGE,
    Collection,
    Document,
    DocumentSection,
    Facets,
    FileFault,
    MissingReaderError,
)
from sentinel_rag.knowledge.documents.pdf import read_pdf

# A guess is told as a remark, since a wrong one garbles names; what is no text at all is refused. Nothing is replaced
# silently: U+FFFD never stands for a byte that was there.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 4096


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text with line feeds as line ends. `remark` is a sentence where the encoding had to be guessed."""

    text: str
    remark: str = ""


def decode(content: bytes, *, declared: str = "") -> Decoded:
    """The text of `content`. `declared` is the encoding that the file names itself, believed where it is one and fits.

    Raises FileFault for what is no text in any encoding that files are written in.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return Decoded(_lines(_strict(content, encoding)))
    wide = _wide_encoding(content[:_SAMPLE])
    if wide:
        return Decoded(_lines(_strict(content, wide)), f"Read as {wide.upper()}, which it does not say itself.")
    if b"\0" in content:
        raise FileFault("It is no text: it holds zero bytes.")
    for encoding in filter(None, ("utf-8", _known(declared))):
        try:
            return Decoded(_lines(content.decode(encoding)))
        except UnicodeDecodeError:
            continue
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise FileFault("It is no text: it is in no encoding that is known here.") from None
    return Decoded(_lines(text), "It is not UTF-8 and was read as Windows-1252; save it as UTF-8 to be sure.")


def _strict(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise FileFault(
            f"It is no text: it begins as {encoding.removesuffix('-sig').upper()} and then breaks it."
        ) from None


def _wide_encoding(sample: bytes) -> str:
    """UTF-16 without its mark: every second byte of Latin text is zero. Empty if it is not that."""
    if len(sample) < 4:
        return ""
    even, odd = sample[0::2].count(0) / len(sample[0::2]), sample[1::2].count(0) / len(sample[1::2])
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.1 else ""


def _known(name: str) -> str:
    """The codec of a declared name if it is one for text, else empty."""
    try:
        found = codecs.lookup(name) if name else None
    except (LookupError, ValueError):
        return ""
    return found.name if found is not None and found._is_text_encoding else ""


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


# Nothing that goes wrong with one file touches the next. Only regular files inside the folder are opened, so a pipe or
# a link that leads out of it is told and left alone.
LARGEST_FILE = 64 * 1024 * 1024
_EVERYONE = frozenset({EVERYONE})


class FileOutcome(StrEnum):
    """How reading one file ended. Only READ comes with a document."""

    READ = "read"
    EMPTY = "empty"
    NO_TEXT = "no_text"
    TOO_LARGE = "too_large"
    VANISHED = "vanished"
    UNREADABLE = "unreadable"
    BROKEN = "broken"
    NOT_KNOWN = "not_known"
    OUTSIDE = "outside"
    NOTHING_THERE = "nothing_there"


@dataclass(frozen=True, slots=True)
class FileReading:
    """One line of the report. `source` is the path within the folder, `.` for the folder itself. `said` is a sentence,
    empty for a file that was read without a remark."""

    source: str
    outcome: FileOutcome
    document: Document | None = None
    said: str = ""

    @property
    def line(self) -> str:
        """The report's line: what it is about, how it ended, and why."""
        name = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in self.source)
        return f"{name}: {self.outcome.value.replace('_', ' ')}" + (f". {self.said}" if self.said else "")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """`largest` is in bytes."""

    largest: int = LARGEST_FILE


def read_folder(
    folder: Path,
    *,
    label: Label = UNTRUSTED_KNOWLEDGE,
    readers: frozenset[str] = _EVERYONE,
    limits: FileLimits | None = None,
) -> Iterator[FileReading]:
    """Every playbook under `folder` in the order of its path. A document gets `label`, or a more secret one that its
    front matter asks for, and `readers` or those of them whom its front matter names: whoever wrote the file may close
    it further and never open it.

    Never raises for what lies in the folder; an absent or empty folder is one reading too."""
    limits = limits or FileLimits()
    try:
        root = folder.resolve(strict=True)
        if not root.is_dir():
            yield FileReading(".", FileOutcome.UNREADABLE, said="It is no folder.")
            return
    except (OSError, RuntimeError):
        yield FileReading(".", FileOutcome.NOTHING_THERE, said="There is no such folder.")
        return
    any_file = False
    for path, trouble in _files(root):
        any_file = True
        source = path.relative_to(root).as_posix().encode("utf-8", "backslashreplace").decode()
        if trouble:
            yield FileReading(source, FileOutcome.UNREADABLE, said=trouble)
        else:
            yield _read(root, path, source, label, readers, limits)
    if not any_file:
        yield FileReading(".", FileOutcome.NOTHING_THERE, said=f"The folder holds no file. Known: {_endings()}.")


def _endings() -> str:
    return ", ".join(sorted(FORMATS))


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """Files below `root` in order, and folders that cannot be listed with the reason. Hidden ones are an editor's or
    git's; linked folders are not gone into, so a circle cannot be walked."""
    troubles: list[tuple[Path, str]] = []

    def told(error: OSError) -> None:
        troubles.append((Path(error.filename or root), f"The folder cannot be listed: {error.strerror or error}."))

    for name, folders, names in os.walk(root, onerror=told):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for each in sorted(names):
            if not each.startswith("."):
                yield Path(name) / each, ""
    yield from troubles


def _read(
    root: Path, path: Path, source: str, label: Label, readers: frozenset[str], limits: FileLimits
) -> FileReading:
    def ended(outcome: FileOutcome, said: str) -> FileReading:
        return FileReading(source, outcome, said=said)

    known = FORMATS.get(path.suffix.casefold())
    if known is None:
        return ended(FileOutcome.NOT_KNOWN, f"Files that are read end in {_endings()}.")
    try:
        if not path.resolve(strict=True).is_relative_to(root):
            return ended(FileOutcome.OUTSIDE, "It is a link that leads out of the folder.")
        content = _content(path, limits.largest)
    except FileNotFoundError:
        return ended(FileOutcome.VANISHED, "It was listed and is gone.")
    except (OSError, RuntimeError) as error:
        return ended(FileOutcome.UNREADABLE, f"{getattr(error, 'strerror', None) or 'It cannot be opened'}.")
    if isinstance(content, str):
        return ended(FileOutcome.TOO_LARGE if content else FileOutcome.UNREADABLE, content or "It is no regular file.")
    if not content.strip():
        return ended(FileOutcome.EMPTY, "It holds nothing.")
    try:
        found = known(content, path.stem)
    except FileFault as error:
        return ended(FileOutcome.BROKEN, str(error))
    except MissingReaderError as error:
        return ended(FileOutcome.UNREADABLE, str(error))
    if not found.sections:
        return ended(FileOutcome.NO_TEXT, " ".join((found.without_text, *found.remarks)))
    document = Document(
        id=source,
        collection=Collection.PLAYBOOKS,
        title=found.title,
        source=source,
        sections=found.sections,
        facets=found.facets,
        label=label.join(Label(found.sensitivity)),
        readers=_narrowed(readers, found.readers),
    )
    return FileReading(source, FileOutcome.READ, document, " ".join(found.remarks))


def _narrowed(readers: frozenset[str], own: frozenset[str] | None) -> frozenset[str]:
    if own is None or EVERYONE in own:
        return readers
    return own if EVERYONE in readers else readers & own


def _content(path: Path, largest: int) -> bytes | str:
    """The bytes of a regular file; else a sentence about its size, empty if it is no regular file. Raises OSError."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would never end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return ""
        content = file.read(largest + 1)
    if len(content) > largest:
        return f"It has {max(status.st_size, len(content)):,} bytes; at most {largest:,} are read."
    return content
