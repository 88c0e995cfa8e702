"""Playbooks of a folder, file by file: each ends as a document or as one clear line that says why not.

Nothing that goes wrong with one file touches the next. Only regular files inside the folder are opened, so a pipe or a
link that leads out of it is told and left alone. Ingestion iterates over this; nothing is kept in memory but the file
at hand.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sentinel_rag.contracts.labels import Label
from sentinel_rag.knowledge.documents.faults import FileFault, MissingReaderError
from sentinel_rag.knowledge.documents.formats import FORMATS
from sentinel_rag.knowledge.documents.model import EVERYONE, UNTRUSTED_KNOWLEDGE, Collection, Document

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
