"""Ends the tool servers' processes when the gateway is gone, whatever killed it.

The guard is a process of its own that knows the process groups of the living children and waits for the end of its
standard input, which comes with the gateway's end. This file is that process's program too, run without any import
from the product.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

CLOSE_S = 3.0


class Guard:
    """One guard for the children of one upstream; started with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """From now on the group dies with this process."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """The group has ended; its number may soon be another's."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Kill what is still watched and end the guard. Blocks for a moment."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _tell(self, line: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,  # a signal to the gateway's group must not reach it
                bufsize=0,
            )
        assert self._process.stdin is not None
        with suppress(OSError):  # a guard that somebody killed guards nothing; the children still end at a clean stop
            self._process.stdin.write(line.encode())


def end_group(group: int, with_signal: signal.Signals) -> None:
    """Send a signal to every process of a group; one that is gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, with_signal)


def _guard() -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        end_group(group, signal.SIGKILL)


if __name__ == "__main__":
    _guard()
