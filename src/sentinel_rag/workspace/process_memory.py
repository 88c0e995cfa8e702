"""The last bound on a process that answers queries: its address space ends before the machine's memory does.

DuckDB counts what it keeps, and not the texts and lists that a function makes for one batch of rows; where a query
makes gigabytes of those, the allocation fails and that query with it, instead of the system ending the whole process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SHARE = 0.85


def bound_process_memory(most_bytes: int | None = None) -> None:
    """Let this process grow by `most_bytes` (default: most of the machine's memory). Does nothing where it cannot."""
    if sys.platform != "linux":
        return
    import resource

    page = os.sysconf("SC_PAGE_SIZE")
    now = int(Path("/proc/self/statm").read_text().split()[0]) * page
    room = int(os.sysconf("SC_PHYS_PAGES") * page * _SHARE) if most_bytes is None else most_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now + room
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
