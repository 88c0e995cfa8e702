"""`file_read` and `file_list` over a `FileRoot`. Results are documented in `contracts.file_tools`."""

from __future__ import annotations

import base64
import os
import stat
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
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
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.tools.files.file_root import FileRoot
from sentinel_rag.tools.files.text_form import Binary, text_form
from sentinel_rag.tools.tool_answer import ToolAnswer, ToolFault, error_answer, our_fault, wrong_argument
from sentinel_rag.tools.typed_arguments import read_arguments

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
        try:
            return await anyio.to_thread.run_sync(self._run, name, arguments, limiter=self._readers)
        except ToolFault as fault:
            return error_answer(fault.error)
        except Exception:  # one tool's fault must not end the server or reach the caller as a traceback
            return our_fault(name)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        match name:
            case "file_read":
                return self._read(read_arguments(FileRead, name, arguments))
            case "file_list":
                return self._list(read_arguments(FileList, name, arguments))
            case _:
                known = tuple(tool.name for tool in FILE_TOOLS)
                raise wrong_argument(
                    "tool_name", "There is no such tool.", f"Use one of: {', '.join(known)}.", allowed=known
                )

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
            raise wrong_argument(
                "read_as",
                f"The file is {kind} ({length} bytes) and not a text that can be shown.",
                'Ask with read_as "base64" for its bytes.',
                allowed=("base64",),
            )
        case form:
            return form.text, form.encoding


def _too_large(size: int) -> ToolFault:
    return wrong_argument(
        "file_path",
        f"The file has {size} bytes or more; files over {MAX_TEXT_BYTES} bytes are not read as text.",
        'Ask with read_as "base64", offset and limit for a part of its bytes.',
    )


def _within(offset: int, total: int, unit: str) -> None:
    if offset > total:
        raise wrong_argument("offset", f"offset {offset} lies behind the end: there are {total} {unit}.", "Start at 0.")


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
    """The names that lead to `path` from the root; a directory may end in `/`, and the root is empty. Raises ToolFault
    for the argument `field`."""
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


def _refused(field: str, fault: str) -> ToolFault:
    return wrong_argument(
        field,
        f"{field} is not a path below the files folder: {fault}.",
        "Write it relative to the root with / between its parts, such as public/handbook.md.",
    )
