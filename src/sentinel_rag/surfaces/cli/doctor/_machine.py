"""What the machine must give: Python and packages, a home folder with room, loopback ports, a clock that is right."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli.doctor._finding import Finding, fault, fine, warning

PACKAGES = ("duckdb", "duckdb-kql", "mcp", "azure-monitor-query", "azure-identity", "starlette", "uvicorn", "msgspec")
LITTLE_SPACE = 2_000_000_000
NO_SPACE = 200_000_000
OLDEST_PYTHON = (3, 11)
CLOCK_TOLERANCE = timedelta(minutes=5)


def python() -> Finding:
    """The interpreter's version."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        return fault("python", version, "make PYTHON=python3.12 demo (3.11 or newer)")
    return fine("python", version)


def packages() -> Finding:
    """The libraries without which no zone starts, with their versions."""
    missing, found = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return fault("packages", f"missing: {', '.join(missing)}", "make demo (it installs what is locked)")
    return fine("packages", ", ".join(found))


def home_writable(settings: Settings) -> bool:
    """Whether this account may write in the home folder, or make it."""
    return _writable(_nearest(settings.home))


def home(settings: Settings) -> Finding:
    """Whether this account may write where everything is kept."""
    if not home_writable(settings):
        return fault(
            "home folder", f"{settings.home} cannot be written", "set SENTINEL_HOME to a folder that this account owns"
        )
    RunFolder(settings.home).is_held()
    return fine("home folder", str(settings.home) + ("" if settings.home.exists() else " (made when first needed)"))


def disk(settings: Settings) -> Finding:
    """Room on the disk of the home folder."""
    free = shutil.disk_usage(_nearest(settings.home)).free
    detail, fix = f"{free / 1e9:.1f} GB free", "free some disk space, or set SENTINEL_HOME to a folder on another disk"
    if free < NO_SPACE:
        return fault("disk", detail, fix)
    return warning("disk", detail, fix) if free < LITTLE_SPACE else fine("disk", detail)


def ports(settings: Settings) -> Finding:
    """Each zone takes a free port of 127.0.0.1; whether this account gets one."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return fault(
            "ports",
            f"no port of 127.0.0.1 can be had: {error.strerror or error}",
            "allow this account to listen on 127.0.0.1 (a sandbox or a firewall forbids it)",
        )
    return fine("ports", "zones get free ones of 127.0.0.1; sentinel up --port and --web fix them")


def clock(settings: Settings) -> Finding:
    """Whether this machine's time goes on from what was stored here: a clock behind it makes windows miss rows."""
    now = datetime.now(UTC)
    told = f"{now:%Y-%m-%d %H:%M:%S} UTC, questions are read in {settings.timezone}"
    newest = max(_written(settings.home), default=None)
    if newest is not None and newest > now + CLOCK_TOLERANCE:
        return fault(
            "clock",
            f"{told}; the home folder was written at {newest:%Y-%m-%d %H:%M:%S} UTC, which is still to come",
            "set the clock right: timedatectl set-ntp true",
        )
    return fine("clock", told)


def _written(home: Path) -> Iterator[datetime]:
    """When the journal, the conversations and this installation were last written."""
    installed = Path(__file__)
    for path in (home / "gateway", home / "agent", installed):
        for file in (path, *(path.iterdir() if path.is_dir() else ())):
            if file.exists():
                yield datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _nearest(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _writable(folder: Path) -> bool:
    import os

    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
