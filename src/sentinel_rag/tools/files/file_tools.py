"""`file_read` and `file_list` over a `FileRoot`. Results are documented in `contracts.file_tools`."""

from __future__ import annotations

import base64
import codecs
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
import msgspec

from sentinel_rag.contracts.file_tools import (
    BUNDLED_SAMPLE,
    DEFAULT_CHARACTERS,
    DEFAULT_ENTRIES,
    FILE_TOOLS,
    MAX_CHARACTERS,
    MAX_ENTRIES,
    MAX_PATH_CHARACTERS,
)
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError, format_time, invalid_argument
from sentinel_rag.tools.mcp_frame import ToolAnswer, answer_of, failed, read_arguments

# Nothing is guessed that could be guessed wrong: a text is UTF-8, or says by its byte order mark that it is UTF-16 or
# UTF-32; everything else is called by its kind and left to the caller.
_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Office document or an Outlook message"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ElfFile\x00", "a Windows event log"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\x1b")


@dataclass(frozen=True, slots=True)
class Text:
    """A decoded text without its byte order mark; `encoding` says how it was stored."""

    text: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Not a text; `kind` completes "the file is ..."."""

    kind: str


def text_form(raw: bytes) -> Text | Binary:
    """What `raw`, a whole file, is."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                text = raw[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return Binary(f"damaged {encoding.upper()} text")
            return Text(text, "utf-8 with BOM" if encoding == "utf-8" else encoding)
    for magic, kind in _MAGIC:
        # A text may well begin with MZ or PK: short marks count only where bytes follow that no text holds.
        if raw.startswith(magic) and (len(magic) > 2 or b"\x00" in raw):
            return Binary(kind)
    if _holds_controls(raw):
        return Binary("binary data")
    try:
        return Text(raw.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return Binary("text in an encoding that is not UTF-8 and not told by a byte order mark")


def _holds_controls(raw: bytes) -> bool:
    """True if a byte is one that text does not hold; NUL most of all."""
    return any(byte < 32 and byte not in _TEXT_CONTROLS for byte in set(raw))


# The folder whose files may be read, and the only way into it: component by component, by open directories. Each step
# opens one name relative to the directory before it and follows no link (openat with O_NOFOLLOW), so whatever an
# attacker swaps in the meantime, the walk stays below the root. What was opened is compared with what was looked at,
# and only plain files and directories are opened at all: opening a FIFO would wait, opening a device could act. A hard
# link is a file of this folder like any other and cannot be told from one; mount points below the root are the
# operator's doing and are entered.
_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FileRoot:
    """`folder` is the operator's word and may itself be reached over links. `between` is called between looking at a
    name and opening it; tests swap files there."""

    def __init__(self, folder: Path, *, between: Callable[[], None] | None = None) -> None:
        self._folder = folder
        self._between = between or (lambda: None)

    @contextmanager
    def file(self, field: str, parts: Sequence[str]) -> Iterator[tuple[int, os.stat_result]]:
        """An open descriptor of a plain file and its status. Raises QueryFailedError for the argument `field`."""
        with self.directory(field, parts[:-1]) as parent:
            descriptor = self._open(field, parent, parts[-1], directory=False)
            try:
                yield descriptor, os.fstat(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def directory(self, field: str, parts: Sequence[str]) -> Iterator[int]:
        """An open descriptor of a directory. Raises QueryFailedError for the argument `field`."""
        try:
            descriptor = os.open(self._folder, _ROOT)
        except OSError:
            raise failed(
                QueryErrorCode.UNAVAILABLE,
                "The files folder cannot be opened.",
                "Check SENTINEL_FILES_ROOT; sentinel doctor shows it.",
            ) from None
        try:
            for part in parts:
                inner = self._open(field, descriptor, part, directory=True)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, field: str, parent: int, name: str, *, directory: bool) -> int:
        seen = self._look(field, parent, name, directory=directory)
        self._between()
        try:
            descriptor = os.open(name, _SAFE | (os.O_DIRECTORY if directory else 0), dir_fd=parent)
        except PermissionError:
            raise _not_permitted(field) from None
        except OSError:
            raise _changed() from None  # it was there a moment ago: removed, or replaced by something else
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != (seen.st_dev, seen.st_ino):
            os.close(descriptor)
            raise _changed()
        return descriptor

    @staticmethod
    def _look(field: str, parent: int, name: str, *, directory: bool) -> os.stat_result:
        """The status of what has exactly this name, if it may be opened."""
        try:
            seen = os.stat(name, dir_fd=parent, follow_symlinks=False)
            # A store that ignores case or composition finds a file by names that rules do not know: only the name
            # that the directory itself gives is taken.
            spelled = name in os.listdir(parent)
        except FileNotFoundError:
            raise _missing(field, directory) from None
        except PermissionError:
            raise _not_permitted(field) from None
        except OSError:
            raise _missing(field, directory) from None
        if not spelled:
            raise _missing(field, directory)
        if stat.S_ISLNK(seen.st_mode):
            raise invalid_argument(
                field, f"{field} leads over a link, and links are not followed.", "Name the file itself."
            )
        if directory and not stat.S_ISDIR(seen.st_mode):
            raise invalid_argument(
                field, f"{field} takes a file for a directory.", "Read it with file_read, or name its directory."
            )
        if not directory and stat.S_ISDIR(seen.st_mode):
            raise invalid_argument(field, f"{field} is a directory.", "List it with file_list.")
        if not directory and not stat.S_ISREG(seen.st_mode):
            raise invalid_argument(
                field, f"{field} is no plain file but a device, a pipe or a socket.", "Name a plain file."
            )
        return seen


def _missing(field: str, directory: bool) -> QueryFailedError:
    what = "directory" if directory else "file"
    return invalid_argument(
        field, f"There is no such {what} in the files folder.", "List the directory with file_list; case matters."
    )


def _not_permitted(field: str) -> QueryFailedError:
    return failed(
        QueryErrorCode.ACCESS_DENIED,
        f"The files server has no right to open what {field} names.",
        "Ask the operator to let the server's account read it.",
    )


def _changed() -> QueryFailedError:
    return failed(
        QueryErrorCode.UNAVAILABLE, "The file changed while it was opened.", "Call again; it is not read half-changed."
    )


MAX_TEXT_BYTES = 8 * 1024 * 1024
"""The largest file that is read as text: its end must be known before its beginning is called text."""

READERS = 8
"""Files read at once; a slow disk holds up further reads and nothing else."""

Offset = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
FilePath = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATH_CHARACTERS)]
DirectoryPath = Annotated[str, msgspec.Meta(max_length=MAX_PATH_CHARACTERS)]


class FileRead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of file_read."""

    file_path: FilePath
    offset: Offset = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHARACTERS)] = DEFAULT_CHARACTERS
    read_as: Literal["text", "base64"] = "text"


class FileList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of file_list."""

    directory: DirectoryPath = ""
    offset: Offset = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_ENTRIES)] = DEFAULT_ENTRIES


class FileTools:
    """Answers the tools of `contracts.FILE_TOOLS`. `bundled` marks every result as the product's own sample."""

    def __init__(self, root: FileRoot, *, bundled: bool = False) -> None:
        self._root = root
        self._mark: JsonObject = {"source": BUNDLED_SAMPLE} if bundled else {}
        self._readers = anyio.CapacityLimiter(READERS)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool by its name. Never raises for a bad argument or a file that cannot be read."""
        run = partial(anyio.to_thread.run_sync, self._run, name, arguments, limiter=self._readers)
        return await answer_of(name, FILE_TOOLS, run)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        if name == "file_read":
            return self._read(read_arguments(FileRead, name, arguments))
        return self._list(read_arguments(FileList, name, arguments))

    def _read(self, asked: FileRead) -> ToolAnswer:
        with self._root.file("file_path", parts_of("file_path", asked.file_path)) as (descriptor, status):
            if asked.read_as == "base64":
                raw = os.pread(descriptor, asked.limit, asked.offset)
                content, encoding, unit = base64.b64encode(raw).decode("ascii"), "base64", "bytes"
                total, returned = status.st_size, len(raw)
            else:
                text, encoding = _text(descriptor, status.st_size)
                content, unit = text[asked.offset : asked.offset + asked.limit], "characters"
                total, returned = len(text), len(content)
        _within(asked.offset, total, unit)
        page = _page(asked.offset, returned, total)
        return ToolAnswer(
            {
                "file_path": asked.file_path,
                "content": content,
                "encoding": encoding,
                "size_bytes": status.st_size,
                "modified": _time(status),
                "unit": unit,
                **page,
                **self._mark,
            },
            f"{returned} of {total} {unit}.",
        )

    def _list(self, asked: FileList) -> ToolAnswer:
        parts = parts_of("directory", asked.directory, directory=True)
        with self._root.directory("directory", parts) as descriptor:
            names = os.listdir(descriptor)
            usable = sorted(name for name in names if not name_fault(name))
            entries = [
                entry
                for name in usable[asked.offset : asked.offset + asked.limit]
                for entry in _entry(descriptor, parts, name)
            ]
        _within(asked.offset, len(usable), "entries")
        shown = len(usable[asked.offset : asked.offset + asked.limit])
        page = {**_page(asked.offset, shown, len(usable)), "returned": len(entries)}
        omitted = len(names) - len(usable)
        return ToolAnswer(
            {"directory": "/".join(parts), "entries": entries, **page, "omitted": omitted, **self._mark},
            f"{len(entries)} of {len(usable)} entries.",
        )


def _text(descriptor: int, size: int) -> tuple[str, str]:
    if size > MAX_TEXT_BYTES:
        raise _too_large(size)
    chunks: list[bytes] = []
    length = 0
    while chunk := os.read(descriptor, 1 << 20):  # the size told before may be old, or 0 on special file systems
        chunks.append(chunk)
        length += len(chunk)
        if length > MAX_TEXT_BYTES:
            raise _too_large(length)
    match text_form(b"".join(chunks)):
        case Binary(kind=kind):
            raise invalid_argument(
                "read_as",
                f"The file is {kind} ({length} bytes) and not a text that can be shown.",
                'Ask with read_as "base64" for its bytes.',
                allowed=("base64",),
            )
        case form:
            return form.text, form.encoding


def _too_large(size: int) -> QueryFailedError:
    return invalid_argument(
        "file_path",
        f"The file has {size} bytes or more; files over {MAX_TEXT_BYTES} bytes are not read as text.",
        'Ask with read_as "base64", offset and limit for a part of its bytes.',
    )


def _within(offset: int, total: int, unit: str) -> None:
    if offset > total:
        raise invalid_argument(
            "offset", f"offset {offset} lies behind the end: there are {total} {unit}.", "Start at 0."
        )


def _page(offset: int, returned: int, total: int) -> dict[str, int | None]:
    end = offset + returned
    return {"offset": offset, "returned": returned, "total": total, "next_offset": end if end < total else None}


def _entry(directory: int, parts: tuple[str, ...], name: str) -> list[JsonObject]:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return []  # removed since the directory was read
    mode = status.st_mode
    kind = (
        "file"
        if stat.S_ISREG(mode)
        else "directory"
        if stat.S_ISDIR(mode)
        else "link"
        if stat.S_ISLNK(mode)
        else "other"
    )
    return [
        {
            "name": name,
            "path": "/".join((*parts, name)),
            "type": kind,
            "size_bytes": status.st_size if kind == "file" else None,
            "modified": _time(status),
        }
    ]


def _time(status: os.stat_result) -> str:
    try:
        return format_time(datetime.fromtimestamp(int(status.st_mtime), UTC))
    except (OverflowError, ValueError, OSError):
        return ""  # a time outside the calendar


# The one spelling of a path that this tool server takes: relative, `/` between parts, each part a plain name.
#
# The gateway forwards paths in this form; whatever else arrives did not pass its rules, so it is refused and not
# mended.


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MAX_NAME_BYTES = 255


def parts_of(field: str, path: str, *, directory: bool = False) -> tuple[str, ...]:
    """The names that lead to `path` from the root; a directory may end in `/`, and the root is empty. Raises
    QueryFailedError for the argument `field`."""
    if directory and path in ("", "/", ".", "./"):
        return ()
    parts = tuple((path[:-1] if directory and path.endswith("/") else path).split("/"))
    for part in parts:
        fault = name_fault(part)
        if fault:
            raise _refused(field, fault)
    return parts


def name_fault(name: str) -> str:
    """Why `name` cannot be a part of a path; empty if it can."""
    if name == "":
        return "it is absolute, or two slashes follow each other"
    if name in (".", ".."):
        return "it holds a part . or .."
    if "\\" in name:
        return "it holds a backslash"
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        return "it holds a control, invisible or undefined character"
    if unicodedata.normalize("NFKC", name) != name:
        return "it holds look-alike or decomposed letters"
    if name != name.strip() or name.endswith("."):
        return "a part begins or ends with a blank, or ends in a dot"
    if len(name.encode()) > MAX_NAME_BYTES:
        return "a part is longer than a file name can be"
    return ""


def _refused(field: str, fault: str) -> QueryFailedError:
    return invalid_argument(
        field,
        f"{field} is not a path below the files folder: {fault}.",
        "Write it relative to the root with / between its parts, such as public/handbook.md.",
    )
