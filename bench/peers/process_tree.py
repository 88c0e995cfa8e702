"""What a process and everything it started have used: processor seconds and memory, as the kernel counts them.

The tool server behind a stdio gateway is a child of the gateway; it is left out by the name of its program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """The process `pid` and its descendants, without those that run the script `but_not`."""

    pid: int
    but_not: str = ""

    def cpu_seconds(self) -> float:
        """User and system time of the living, and of children that ended and were waited for."""
        ticks = 0
        for pid in self._pids():
            fields = _stat(pid)
            ticks += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
        return ticks / _TICK

    def memory_bytes(self) -> tuple[int, int]:
        """Resident and proportional (a page shared by two processes counts half) set size."""
        resident = proportional = 0
        for pid in self._pids():
            for line in _read(pid, "smaps_rollup").splitlines():
                name, _, amount = line.partition(":")
                if name == "Rss":
                    resident += int(amount.split()[0]) * 1024
                elif name == "Pss":
                    proportional += int(amount.split()[0]) * 1024
        return resident, proportional

    def _pids(self) -> Iterator[int]:
        everyone = ((int(name), _stat(int(name))) for name in os.listdir("/proc") if name.isdecimal())
        parents = {pid: int(fields[1]) for pid, fields in everyone if fields}
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            if self.but_not and _read(pid, "cmdline").split("\0")[1:2] == [self.but_not]:
                continue
            if pid in parents:
                yield pid
            waiting += [child for child, parent in parents.items() if parent == pid]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (the name before it may hold blanks); empty for one that ended."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""
