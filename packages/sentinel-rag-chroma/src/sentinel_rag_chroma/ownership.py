"""Who may open a Chroma folder: one process at a time, since two that write to one corrupt its index.

The lock is the operating system's on an open file, so it ends with the process, however that ends; the file tells the
pid and how far the owner got. It is not a lock for threads: within the process the store itself sees to that.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError

LOCK_FILE = "owner.lock"


class Phase(StrEnum):
    """How far an owner got. One that left OPEN was killed or met an error, so each vector is looked at; one that left
    CHECKING was killed by what it looked at."""

    NEW = "new"
    CHECKING = "checking"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Left:
    """What an owner wrote down: its pid (None where nothing can be read), how far it got, and how it left the index."""

    pid: int | None = None
    phase: Phase = Phase.NEW
    index: str = ""


class Ownership:
    """The lock on `folder`, held from here to `release`. `before` is what the last owner left. Raises
    UnavailableError, with the holder's pid, where another process has it."""

    def __init__(self, folder: Path) -> None:
        try:
            file = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UnavailableError(
                f"The folder {folder} cannot be used: {error.strerror or error}.",
                next_step="Make it writable, or set SENTINEL_CHROMA_PATH to a folder that is.",
            ) from None
        try:
            _lock(file)
        except OSError:
            holder = _told(file).pid
            os.close(file)
            raise _held(folder, holder) from None
        self.before = _told(file)
        self._file: int | None = file

    def tell(self, phase: Phase, index: str = "") -> None:
        """Write down how far this process got."""
        content = json.dumps({"pid": os.getpid(), "phase": phase.value, "index": index}).encode()
        # In place and padded: a reader in between sees the old or the new, and never an empty file.
        if self._file is not None:
            os.pwrite(self._file, content.ljust(160) + b"\n", 0)

    def release(self) -> None:
        """Let the next one in; nothing is told any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _lock(descriptor: int) -> None:
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _told(descriptor: int) -> Left:
    """What the file tells; of one that tells nothing, as if it were new."""
    with suppress(ValueError, KeyError, TypeError, OSError):
        told = json.loads(os.pread(descriptor, 4_096, 0))
        return Left(int(told["pid"]), Phase(told["phase"]), str(told["index"]))
    return Left()


def _held(folder: Path, holder: int | None) -> UnavailableError:
    if holder == os.getpid():
        who = "this process has it open already"
    else:
        who = "process " + ("unknown" if holder is None else str(holder)) + " has it open"
    return UnavailableError(
        f"The Chroma store in {folder} has one owner at a time, and {who}.",
        next_step="While the zones are up, ask through them (`sentinel ask`), or end `sentinel up` first; if it is an "
        "ingest, wait for its end. Then try again.",
    )
