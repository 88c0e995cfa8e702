"""The folder whose files may be read, and the only way into it: component by component, by open directories.

Each step opens one name relative to the directory before it and follows no link (openat with O_NOFOLLOW), so whatever
an attacker swaps in the meantime, the walk stays below the root. What was opened is compared with what was looked at,
and only plain files and directories are opened at all: opening a FIFO would wait, opening a device could act.
A hard link is a file of this folder like any other and cannot be told from one; mount points below the root are the
operator's doing and are entered.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.tools.tool_answer import ToolFault, failed, wrong_argument

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
        """An open descriptor of a plain file and its status. Raises ToolFault for the argument `field`."""
        with self.directory(field, parts[:-1]) as parent:
            descriptor = self._open(field, parent, parts[-1], directory=False)
            try:
                yield descriptor, os.fstat(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def directory(self, field: str, parts: Sequence[str]) -> Iterator[int]:
        """An open descriptor of a directory. Raises ToolFault for the argument `field`."""
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
            raise wrong_argument(
                field, f"{field} leads over a link, and links are not followed.", "Name the file itself."
            )
        if directory and not stat.S_ISDIR(seen.st_mode):
            raise wrong_argument(
                field, f"{field} takes a file for a directory.", "Read it with file_read, or name its directory."
            )
        if not directory and stat.S_ISDIR(seen.st_mode):
            raise wrong_argument(field, f"{field} is a directory.", "List it with file_list.")
        if not directory and not stat.S_ISREG(seen.st_mode):
            raise wrong_argument(
                field, f"{field} is no plain file but a device, a pipe or a socket.", "Name a plain file."
            )
        return seen


def _missing(field: str, directory: bool) -> ToolFault:
    what = "directory" if directory else "file"
    return wrong_argument(
        field, f"There is no such {what} in the files folder.", "List the directory with file_list; case matters."
    )


def _not_permitted(field: str) -> ToolFault:
    return failed(
        QueryErrorCode.ACCESS_DENIED,
        f"The files server has no right to open what {field} names.",
        "Ask the operator to let the server's account read it.",
    )


def _changed() -> ToolFault:
    return failed(
        QueryErrorCode.UNAVAILABLE, "The file changed while it was opened.", "Call again; it is not read half-changed."
    )
