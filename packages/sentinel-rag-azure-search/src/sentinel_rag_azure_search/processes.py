"""Names of processes by which another process of the same machine can tell that one is gone.

A name of another machine, or of another container, tells nothing: then only time does.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path


def process_name() -> str:
    """This process: its machine, its namespace of process numbers, its number."""
    return f"{_here()} {os.getpid()}"


def is_gone(name: str) -> bool:
    """True if the process of that name certainly does not run any more."""
    place, _, number = name.rpartition(" ")
    # On Windows the question itself would end the process.
    if os.name != "posix" or place != _here() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _here() -> str:
    namespace = Path("/proc/self/ns/pid")
    try:
        return f"{socket.gethostname()} {namespace.readlink()}"
    except OSError:
        return socket.gethostname()
