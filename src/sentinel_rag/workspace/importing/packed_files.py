"""Files inside files: a gzip, a zip, the sheets of an Excel workbook, each written out to be imported like any other.

What comes out is bounded, whatever the archive says of itself, and no name from inside it becomes a path.
"""

from __future__ import annotations

import csv
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.workspace.importing.source_files import PACKED, SUFFIXES, UnreadableFileError

MOST_BYTES = 4 << 30
"""What may come out of one archive."""
MOST_FILES = 1_000
_CHUNK = 1 << 20
_FAULTS = (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError)
"""What the readers raise for an archive that is broken, cut, encrypted or packed in a way they do not know."""


def is_packed(path: Path) -> bool:
    """Whether the file's name says that others are inside it."""
    return path.is_file() and path.suffix.lower() in PACKED


def unpacked(path: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Each file inside, written into `folder`, with its name for a person. Raises UnreadableFileError."""
    kind = path.suffix.lower()
    found = {".gz": _gzip, ".zip": _zip, ".xlsx": _workbook}[kind](path, folder)
    any_found = False
    try:
        for each in found:
            any_found = True
            yield each
    except _FAULTS as error:
        raise UnreadableFileError(
            f"{path} cannot be unpacked: {error}.",
            next_step="Unpack it yourself, or export it again without a password.",
        ) from error
    if not any_found:
        raise UnreadableFileError(
            f"{path} holds no file to import.", next_step=f"Files end in {', '.join(sorted(SUFFIXES))}."
        )


def _gzip(path: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    with gzip.open(path) as source:
        yield _written(source, folder, path.stem, path), path.stem


def _zip(path: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    with zipfile.ZipFile(path) as archive:
        inside = [each for each in archive.infolist() if PurePosixPath(each.filename).suffix.lower() in SUFFIXES]
        for number, member in enumerate(inside[:MOST_FILES]):
            place = folder / str(number)
            place.mkdir()
            with archive.open(member) as source:
                yield _written(source, place, PurePosixPath(member.filename).name, path), member.filename


def _written(source: IO[bytes] | gzip.GzipFile, folder: Path, name: str, path: Path) -> Path:
    """The content under the last part of its name, which may choose its table."""
    target = folder / (Path(name.replace("\\", "/")).name or "file")
    size = 0
    with target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                raise UnreadableFileError(
                    f"{path} unpacks to more than {MOST_BYTES >> 30} GiB.", next_step="Import its parts one by one."
                )
            out.write(chunk)
    return target


def _workbook(path: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Each sheet with rows as CSV; times as they are in the sheet, which names no zone."""
    try:
        import openpyxl
    except ImportError:
        raise UnavailableError(
            "What reads Excel workbooks is not installed.",
            next_step="Run: pip install 'sentinel-rag[documents]'; or save the sheet as CSV.",
        ) from None
    with zipfile.ZipFile(path) as archive:
        if sum(each.file_size for each in archive.infolist()) > MOST_BYTES:
            raise UnreadableFileError(f"{path} is too large.", next_step="Save its sheets as CSV.")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (ValueError, TypeError, OSError, SyntaxError) as error:
        raise UnreadableFileError(
            f"{path} is no workbook that can be read: {error}.", next_step="Save it as CSV."
        ) from error
    several = len(book.worksheets) > 1
    for number, sheet in enumerate(book.worksheets):
        place = folder / str(number)
        place.mkdir()
        target = place / f"{sheet.title.replace('/', '_') if several else path.stem}.csv"
        with target.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            rows = [writer.writerow(map(_cell, row)) for row in sheet.iter_rows(values_only=True) if any(row)]
        if rows:
            yield target, sheet.title
    book.close()


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat() if value.tzinfo is None else value.isoformat()
    return "" if value is None else value
