"""Who runs here: one supervisor for each home folder, and where its zones listen.

The lock is held by the supervisor process for its whole life and falls with it, whatever kills it; `zones.json` is
only believed while the lock is held. The file holds the surface's own credentials and is readable by its owner only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class ZoneEntry:
    """One process: `name` as `sentinel status` shows it, its base URL and process id."""

    name: str
    url: str
    pid: int


@dataclass(frozen=True, slots=True)
class RunState:
    """What a surface needs to talk to running zones. `private` runs end with the command that started them."""

    supervisor_pid: int
    private: bool
    workspace: str
    zones: tuple[ZoneEntry, ...]
    agent_token: str = field(repr=False, default="")
    workspace_token: str = field(repr=False, default="")
    knowledge_token: str = field(repr=False, default="")
    """Opens what surfaces may ask of the knowledge tool server; empty where it runs elsewhere."""
    keys: Mapping[str, str] = field(repr=False, default_factory=dict)
    """The gateway's keys of this run, by key id: agent, user, approver, audit, admin, mcp."""
    web_secret: str = field(repr=False, default="")
    """What links that sign the owner in are made of; empty where no web surface is served."""
    workspaces: tuple[str, ...] = ()
    """Every workspace that is served, the default one (`workspace`) first."""
    certificate: str = ""
    """The file by which zones with an https URL prove themselves here."""

    def zone(self, name: str) -> ZoneEntry | None:
        """The zone of that name, or None if it is not part of this run (no embedded workspace on Azure)."""
        return next((zone for zone in self.zones if zone.name == name), None)


class AlreadyRunningError(UnavailableError):
    """Another process holds this home's lock."""


class RunFolder:
    """`HOME/run`: the lock and the state file."""

    def __init__(self, home: Path) -> None:
        self.path = home / "run"
        self._state_file = self.path / "zones.json"
        self._lock_file = self.path / "lock"
        self._served_file = self.path / "served"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the one supervisor of this home. Raises UnavailableError if another process is."""
        self.make()
        with self._lock_file.open("a+") as lock:
            if not _try_lock(lock.fileno()):
                raise AlreadyRunningError(
                    "Another sentinel process is using this home folder.",
                    next_step="Wait for it, use it (sentinel ask ...) or stop it; sentinel status names its process.",
                )
            try:
                self._state_file.unlink(missing_ok=True)  # left by a supervisor that was killed
                yield
            finally:
                self._state_file.unlink(missing_ok=True)

    @contextmanager
    def serve(self) -> Iterator[None]:
        """Be one of the roles that are served from this home, of which there may be several, in containers that share
        it too. Raises AlreadyRunningError while one works `undisturbed`."""
        with self._served(exclusively=False):
            yield

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Keep roles from being served from this home. Raises AlreadyRunningError while one is."""
        with self._served(exclusively=True):
            yield

    @contextmanager
    def _served(self, *, exclusively: bool) -> Iterator[None]:
        self.make()
        with self._served_file.open("a+") as lock:
            if not _try_lock(lock.fileno(), shared=not exclusively):
                raise AlreadyRunningError(
                    "A role is served from this home folder (sentinel serve)."
                    if exclusively
                    else "A backup or a restore is at work on this home folder.",
                    next_step="Stop it first: docs/operations.md." if exclusively else "Start again once it has ended.",
                )
            yield

    def is_held(self) -> bool:
        """True while a supervisor lives."""
        try:
            with self._lock_file.open("a+") as lock:
                return not _try_lock(lock.fileno())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self.path, error) from None

    def write(self, state: RunState) -> None:
        """Publish the state at once: a reader sees the old file or the whole new one."""
        import tempfile

        handle, name = tempfile.mkstemp(dir=self.path, prefix="zones-")
        with os.fdopen(handle, "w") as stream:
            json.dump(asdict(state), stream)
        Path(name).replace(self._state_file)

    def read(self) -> RunState | None:
        """The state of the living supervisor, or None if there is none or it is still starting."""
        if not self.is_held():
            return None
        try:
            data = json.loads(self._state_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        data["zones"] = tuple(ZoneEntry(**zone) for zone in data["zones"])
        data["workspaces"] = tuple(data.get("workspaces") or (data["workspace"],))
        return RunState(**data)

    def make(self) -> None:
        """Make the folder, for its owner alone. Raises UnavailableError."""
        try:
            for folder in (self.path.parent, self.path):  # the home holds workspaces, keys and the journal too
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for file in (self._lock_file, self._served_file):
                file.touch(mode=0o600)
        except OSError as error:
            raise _unusable(self.path, error) from None


def _unusable(path: Path, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The folder {path} cannot be used: {error.strerror or error}.",
        next_step="Make it writable, or set SENTINEL_HOME to a folder that is.",
    )


def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
