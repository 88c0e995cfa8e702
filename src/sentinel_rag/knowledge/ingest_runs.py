"""Runs of an ingest: one at a time for each store, and when each workspace was last brought up to date."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage.sqlite import create_private


# One ingest at a time for each store of this home, and who it is that runs it. The lock is the operating system's and
# falls with its process, whatever kills it. Ingests of several machines into one shared store need none: each document
# is put whole, so they only do each other's work.
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


# The store knows which incidents it holds; that none are missing, and as of when, only a run that came to its end
# knows.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class IngestFiles:
    """The files of ingestion beside a store: who runs one, as of when incidents are known, and which folder the
    playbooks come from."""

    lock: Path
    record: Path
    playbooks: Path


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One workspace: `as_of` is when the last run that came to its end asked for the list (None: none has), `tried`
    when the last run of any kind did; `fault` is why that one did not come to its end. `partial` incidents lack details
    for now, `days` is how far back that run read incidents in."""

    workspace: str
    as_of: datetime | None
    tried: datetime
    incidents: int
    partial: int
    days: int
    fault: str = ""


def read_ingest_record(path: Path) -> tuple[WorkspaceRecord, ...]:
    """Of each workspace, the default one first; none where there was no run, or where the file cannot be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != _FORMAT:
            return ()
        return tuple(
            WorkspaceRecord(**{**each, "as_of": _moment(each["as_of"]), "tried": _moment(each["tried"]) or _NEVER})
            for each in told["workspaces"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def write_ingest_record(path: Path, workspaces: Iterable[WorkspaceRecord]) -> None:
    """Replace the file at once. Raises OSError."""
    told = [
        {
            **asdict(each),
            "as_of": None if each.as_of is None else each.as_of.isoformat(),
            "tried": each.tried.isoformat(),
        }
        for each in workspaces
    ]
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-")  # readable by its owner only
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump({"format": _FORMAT, "workspaces": told}, stream)
    Path(name).replace(path)


def incidents_as_of(path: Path, *, held: int) -> datetime | None:
    """The moment as of which past incidents are known: of several workspaces, that of the one least up to date. None
    if one of them was never read to its end, or there was no run. `held` is how many the store holds: where it lost
    them, the record is that of another store."""
    record = read_ingest_record(path)
    if not held and any(each.incidents for each in record):
        return None
    moments = [each.as_of for each in record]
    known = [moment for moment in moments if moment is not None]
    return min(known) if known and len(known) == len(moments) else None


def playbooks_folder(path: Path) -> Path | None:
    """The folder that the playbooks were last read from; None where none was named."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return Path(text) if text else None


def remember_playbooks_folder(path: Path, folder: Path) -> None:
    """Keep it for the next ingest, which need not be told. Raises OSError."""
    path.write_text(f"{folder.absolute()}\n", encoding="utf-8")


_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
