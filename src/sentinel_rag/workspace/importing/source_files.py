"""Files to import: found, opened, unpacked within bounds."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import IO

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError

SAMPLE_BYTES = 1 << 18
_PREAMBLE = re.compile(r'(?:"?sep=.{1,2}|#TYPE \S+)\r?\n', re.IGNORECASE)
_CHUNK = 1 << 20
SUFFIXES = {".csv", ".tsv", ".txt", ".psv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq"}
PACKED = {".gz", ".zip", ".xlsx"}
"""Endings of files that hold others."""


class Format(StrEnum):
    """How rows are written in a file."""

    DELIMITED = "csv"
    JSON_LINES = "json lines"
    JSON = "json"
    PARQUET = "parquet"


class UnreadableFileError(UsageError):
    """A file that cannot be imported at all; a faulty row is no reason for it."""

    code = "import"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One readable file. `encoding` is a Python codec name; `says_null` tells that the text `null` occurs in it.
    `preamble` is a line before the header, for Excel or by PowerShell, which is no row."""

    path: Path
    format: Format
    encoding: str
    sha256: str
    sample: str
    size: int
    says_null: bool
    preamble: str = ""


def files_under(path: Path) -> list[Path]:
    """The file itself, or the importable files of a folder in the order of their names. Raises UnreadableFileError."""
    if not path.exists():
        raise UnreadableFileError(f"There is no file {path}.", next_step="Check the path.")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.suffix.lower() in SUFFIXES | PACKED)
    if not files:
        raise UnreadableFileError(
            f"The folder {path} holds no file to import.", next_step=f"Files end in {', '.join(sorted(SUFFIXES))}."
        )
    return files


def left_out(folder: Path) -> list[str]:
    """Names of the files of a folder that `files_under` passes over, hidden ones aside."""
    others = (file for file in folder.rglob("*") if file.is_file() and file.suffix.lower() not in SUFFIXES | PACKED)
    return sorted(file.name for file in others if not file.name.startswith("."))


def inspect(path: Path) -> SourceFile:
    """Read `path` once and say what it is. Raises UnreadableFileError for what holds no rows."""
    if not path.is_file():
        raise UnreadableFileError(f"{path} is not a regular file.", next_step="Give the path of a file or a folder.")
    try:
        return _inspect(path)
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be read: {error.strerror}.", next_step="Check its permissions."
        ) from error


def _inspect(path: Path) -> SourceFile:
    digest = hashlib.sha256()
    utf8 = _Utf8Check()
    head = b""
    says_null, size = False, 0
    for chunk in _chunks(path):
        digest.update(chunk)
        utf8.feed(chunk)
        if len(head) < SAMPLE_BYTES:
            head = (head + chunk)[:SAMPLE_BYTES]
            if _is_binary(head):  # whatever comes after it, and that may be terabytes
                raise _no_text(path)
        size += len(chunk)
        says_null = says_null or b"null" in chunk
    if not head.strip():
        raise UnreadableFileError(f"{path} is empty.", next_step="Export it again.")
    if head[:4] == b"PAR1":
        return SourceFile(path, Format.PARQUET, "binary", digest.hexdigest(), "", size, says_null=False)
    encoding = _encoding(head, is_utf8=utf8.holds())
    if encoding is None:
        raise _no_text(path)
    sample = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head).lstrip("\ufeff")
    if sample.startswith(("#separator", "#fields")):
        raise UnreadableFileError(
            f"{path} is a Zeek log with a header of its own, which is not read.",
            next_step="Have Zeek write JSON (LogAscii::use_json=T), or convert it; JSON lines are imported.",
        )
    named = _PREAMBLE.match(sample)
    preamble = named[0] if named else ""
    sample = sample.removeprefix(preamble)
    return SourceFile(path, _text_format(sample), encoding, digest.hexdigest(), sample, size, says_null, preamble)


class _Utf8Check:
    """Whether bytes fed piece by piece are UTF-8; pieces of plain ASCII cost nothing."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()

    def feed(self, chunk: bytes) -> None:
        if self._decoder is None or (chunk.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            self._decoder.decode(chunk)
        except UnicodeDecodeError:
            self._decoder = None

    def holds(self) -> bool:
        """True if all was UTF-8 and the last character is whole."""
        return self._decoder is not None and not self._decoder.getstate()[0]


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _is_binary(head: bytes) -> bool:
    """True for zero bytes without a mark that explains them."""
    explained = (b"PAR1", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return b"\0" in head and not head.startswith(explained)


def _no_text(path: Path) -> UnreadableFileError:
    return UnreadableFileError(
        f"{path} is a binary file, not an export of rows.",
        next_step="Importable are CSV (any separator), JSON, JSON lines, Parquet, and these in .zip, .gz and .xlsx.",
    )


def _encoding(head: bytes, *, is_utf8: bool) -> str | None:
    """The codec, or None for bytes that are no text. Without a mark and not UTF-8, a Windows code page is assumed."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig" if is_utf8 else "cp1252"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if is_utf8:
        return "utf-8"
    control = sum(byte < 9 or 13 < byte < 32 for byte in head)
    return "cp1252" if control * 100 < len(head) else None


def _text_format(sample: str) -> Format:
    text = sample.lstrip()
    if text.startswith("["):
        return Format.JSON if text[1:].lstrip()[:1] in tuple('{[]"-0123456789') else Format.DELIMITED
    if not text.startswith("{"):
        return Format.DELIMITED
    first = text.split("\n", 1)[0].strip()
    return Format.JSON_LINES if first.endswith("}") and "\n" in text.rstrip("\n") else Format.JSON


# What comes out is bounded, whatever the archive says of itself, and no name from inside it becomes a path.
MOST_BYTES = 4 << 30
"""What may come out of one archive."""
MOST_FILES = 1_000
MOST_WORKBOOK_BYTES = 512 << 20
"""What may come out of a workbook, much of which its reader holds in memory."""
MOST_ROWS = 1_048_576
"""Rows that a sheet can have; a file may number one row as it likes, and all before it are counted through."""


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
    except SentinelError:
        raise
    except Exception as error:  # what reads archives lets errors of many kinds through on damaged ones
        raise UnreadableFileError(
            f"{path} cannot be unpacked: {error}.",
            next_step="Unpack it yourself or save it as CSV, or export it again without a password.",
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
        _check_sizes(path, inside, MOST_BYTES)
        for number, member in enumerate(inside):
            place = folder / str(number)
            place.mkdir()
            with archive.open(member) as source:
                yield _written(source, place, PurePosixPath(member.filename).name, path), member.filename


def _check_sizes(path: Path, inside: Sequence[zipfile.ZipInfo], most: int) -> None:
    """Raise UnreadableFileError for more than `most` bytes in all; of a member no more is read than it says it has."""
    if len(inside) > MOST_FILES:
        raise UnreadableFileError(
            f"{path} holds more than {MOST_FILES:,} files.", next_step="Unpack it, and import its folder."
        )
    if sum(each.file_size for each in inside) > most:
        raise _too_much(path, most)


def _too_much(path: Path, most: int) -> UnreadableFileError:
    return UnreadableFileError(
        f"{path} unpacks to more than {most >> 20:,} MiB.", next_step="Import its parts one by one, as CSV."
    )


def _written(source: IO[bytes] | gzip.GzipFile, folder: Path, name: str, path: Path) -> Path:
    """The content under the last part of its name, which may choose its table."""
    target = folder / (Path(name.replace("\\", "/")).name or "file")
    size = 0
    with target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                raise _too_much(path, MOST_BYTES)
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
        _check_sizes(path, archive.infolist(), MOST_WORKBOOK_BYTES)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    several = len(book.worksheets) > 1
    for number, sheet in enumerate(book.worksheets):
        place = folder / str(number)
        place.mkdir()
        target = place / f"{sheet.title.replace('/', '_') if several else path.stem}.csv"
        with target.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            size = 0
            for row in sheet.iter_rows(max_row=MOST_ROWS, values_only=True):
                size += writer.writerow(map(_cell, row)) if any(row) else 0
                if size > MOST_BYTES:
                    raise _too_much(path, MOST_BYTES)
        if size:
            yield target, sheet.title
    book.close()


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat() if value.tzinfo is None else value.isoformat()
    return "" if value is None else value
