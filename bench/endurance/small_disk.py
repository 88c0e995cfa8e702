"""A disk that can be filled: a small tmpfs, which only root may mount.

Where it cannot be mounted, `SmallDiskNotHere` says why, and the scenario is told as not run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEBIBYTES = 96


class SmallDiskNotHere(Exception):
    """No small disk can be had on this machine; the message says why."""


class SmallDisk:
    """A folder on a disk of its own. `fill` leaves no byte free, `free` gives all of them back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            for size in (1 << 16, 1):
                with suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def free(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mount one at `folder`, which is made. Raises SmallDiskNotHere."""
    if os.name != "posix" or os.geteuid() != 0:
        raise SmallDiskNotHere("only root may mount a small disk")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MEBIBYTES}m", "endurance", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        raise SmallDiskNotHere(f"a small disk could not be mounted: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
