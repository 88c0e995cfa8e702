"""What the benchmark knows of a peer: where it comes from, what it does with a call, and how it is started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.gateway_processes import Call
from bench.peers.process_tree import ProcessTree

START_SECONDS = 120.0
ECHO_STDIO = Path(__file__).parent / "programs" / "echo_stdio.py"


class NotStarted(Exception):
    """The peer did not come up; the message says what it last said."""


@dataclass(frozen=True, slots=True)
class Running:
    """A started peer, ready for calls. `records` counts what it has written down about calls, where it does;
    `stranger` is the HTTP status for a caller without a credential."""

    call: Call
    tree: ProcessTree
    records: Callable[[], int] | None = None
    stranger: int | None = None


@dataclass(frozen=True, slots=True)
class Upstream:
    """The echo behind a peer: a URL with its token, or a command."""

    url: str = ""
    token: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Peer:
    """`way` is `http` (HTTP on both sides), `http_to_stdio` or `stdio` (on both). What it does is told in words, with
    `authenticates`, `decides` and `audits` false where it does not; `start` gets the `bin` folder of its environment
    and an empty folder."""

    name: str
    distribution: str
    way: str
    authenticates: bool
    decides: bool
    audits: bool
    as_configured: str
    start: Callable[[Path, Path, Upstream], AbstractAsyncContextManager[Running]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def plain_environment(folder: Path, **more: str) -> dict[str, str]:
    """What a peer needs of the environment, and a home of its own: none of its settings come from this machine."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(folder), "NO_PROXY": "127.0.0.1,localhost", **more}


@contextlib.contextmanager
def server(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, with its output in `server.log`; the group is ended with the block."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
                break


async def listening(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until somebody listens on `port`. Raises NotStarted."""
    for _ in range(int(START_SECONDS * 10)):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        if process.poll() is not None:
            raise NotStarted(last_words(folder))
        await asyncio.sleep(0.1)
    raise NotStarted(f"nothing listened after {START_SECONDS:.0f} s; {last_words(folder)}")


def last_words(folder: Path) -> str:
    lines = (folder / "server.log").read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"


def lines_of(path: Path, containing: str = "") -> int:
    """How many lines of a file hold a text; 0 while there is no file."""
    if not path.exists():
        return 0
    with path.open(errors="replace") as file:
        return sum(containing in line for line in file)
