"""One node process that holds Microsoft's parser, and the JSON lines between it and us.

Blocking, one exchange at a time, from any thread. A process that does not answer in time is killed, and the next
exchange starts a new one; `official_parser` above it knows what is asked, this module does not.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from sentinel_rag.contracts.errors import UnavailableError

DRIVER = Path(__file__).parent / "microsoft_parser" / "driver.cjs"
MOST_ANSWER_BYTES = 32 * 1024 * 1024
_MEGABYTES_OF_HEAP = 768


class ParserStuckError(UnavailableError):
    """One exchange took too long, or the process died of it; another one may do well."""

    code = "parser_stuck"


class _Numbered(msgspec.Struct, frozen=True):
    id: int | None = None


class ParserProcess:
    """The process, started by its first exchange. `close` is for good."""

    def __init__(self, folder: Path, node: Path, node_version: tuple[int, ...], *, start_timeout_s: float) -> None:
        self._folder = folder.resolve()
        self._node = node
        self._node_version = node_version
        self._start_timeout_s = start_timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._asked = 0
        self.starts = 0
        """How often a process was started: more than once means that one was killed or died."""

    def exchange(self, request: dict[str, Any], timeout_s: float) -> bytes:
        """The answer to one request, a line.

        Raises ParserStuckError if the process dies or is silent for `timeout_s` (a start has its own time), and
        UnavailableError if it cannot be started.
        """
        with self._lock:
            process = self._running()
            return self._exchange(process, request, timeout_s)

    def close(self) -> None:
        """End the process. An exchange that another thread waits for fails."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._discard()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise UnavailableError("The KQL parser is closed.", next_step="Start the server again.")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._discard()
        try:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is for us; it ends when its input does
            )
        except OSError as error:
            raise UnavailableError(
                f"The KQL parser could not be started: {error.strerror or error}.",
                next_step="Run: sentinel kql install",
            ) from None
        self.starts += 1
        try:
            self._exchange(self._process, {"op": "ready"}, self._start_timeout_s)
        except ParserStuckError:
            raise UnavailableError(
                "The KQL parser was started but did not get ready.", next_step="Run: sentinel kql install"
            ) from None
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: dict[str, Any], timeout_s: float) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(timeout_s, process.kill)
        watchdog.daemon = True
        watchdog.start()
        self._asked += 1
        try:
            process.stdin.write(msgspec.json.encode({**request, "id": self._asked}) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline(MOST_ANSWER_BYTES)
        except OSError:
            line = b""
        finally:
            watchdog.cancel()
        if not line.endswith(b"\n") or _id_of(line) != self._asked:
            process.kill()
            self._discard()
            raise ParserStuckError(
                f"The KQL parser gave no answer within {timeout_s:g} s.", next_step="Ask with a shorter, flatter query."
            )
        return line

    def _discard(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # what was not yet written has no reader any more
        process.wait()

    def _command(self) -> list[str]:
        # Node's permission model left its trial with 22.13; an older node runs the parser unconfined.
        confined = []
        if self._node_version >= (22, 13):
            confined = ["--permission", f"--allow-fs-read={self._folder}/*", f"--allow-fs-read={DRIVER.resolve()}"]
        return [
            str(self._node),
            f"--max-old-space-size={_MEGABYTES_OF_HEAP}",
            *confined,
            str(DRIVER.resolve()),
            str(self._folder),
        ]


def _id_of(line: bytes) -> int | None:
    try:
        return msgspec.json.decode(line, type=_Numbered).id
    except (msgspec.DecodeError, RecursionError):
        return None


# Nothing of ours: neither secrets nor NODE_OPTIONS. Node on Windows needs the system's folder for its random numbers.
_ENVIRONMENT = {"SYSTEMROOT": r"C:\Windows"} if sys.platform == "win32" else {}
