"""One ingest at a time for each store of this home, and who it is that runs it.

The lock is the operating system's and falls with its process, whatever kills it. Ingests of several machines into one
shared store need none: each document is put whole, so they only do each other's work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.sqlite import create_private


class IngestRunsError(UnavailableError):
    """Another ingest is at work."""

    code = "ingest_runs"


class IngestLock:
    """The lock at `path`, which is made where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def hold(self, who: str, *, for_another: bool = False) -> Iterator[None]:
        """Be the one ingest. `who` is what others are told ("sentinel knowledge ingest"), with the number of this
        process unless it works `for_another`: whoever ends a process by it must end the command and not the zones.
        Raises IngestRunsError, and UnavailableError for a folder that cannot be used."""
        import fcntl

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            create_private(self._path)
            file = self._path.open("r+", encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"The folder {self._path.parent} cannot be used: {error.strerror or error}.",
                next_step="Check the folder's owner and permissions.",
            ) from None
        with file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IngestRunsError(
                    f"Another ingest is running: {_told(file.read())}.",
                    next_step="Wait for it, or press Ctrl-C where it was asked for: the next one goes on from there.",
                ) from None
            file.truncate(0)
            process = None if for_another else os.getpid()
            file.write(json.dumps({"who": who, "process": process, "since": datetime.now(UTC).isoformat()}))
            file.flush()
            yield


def _told(text: str) -> str:
    try:
        held = json.loads(text)
        since = datetime.fromisoformat(held["since"])
        process = f", process {held['process']}" if held["process"] is not None else ""
        return f"{held['who']}{process}, since {since:%H:%M} UTC"
    except (ValueError, KeyError, TypeError):
        return "it has begun a moment ago"
