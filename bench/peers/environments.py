"""Builds the Python environment of one peer: a venv with exactly the versions that `pins/` names.

Environments are thrown away after the run, or kept in a folder of the caller's choice for the next one. Nothing of
them is in this project's own dependencies.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).parent / "pins"
INSTALL_SECONDS = 400.0


class NotInstalled(Exception):
    """The peer cannot be had here; the message says why, in the words of the installer."""


def pinned_version(distribution: str) -> str:
    """The version of `distribution` that its pins name."""
    for line in (PINS / f"{distribution}.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if name == distribution:
            return version
    raise NotInstalled(f"bench/peers/pins/{distribution}.txt does not name {distribution} itself")


def environment(distribution: str, folder: Path) -> Path:
    """The `bin` folder of an environment with `distribution` in it, built in `folder` unless it is there already with
    these pins. Raises NotInstalled."""
    pins = PINS / f"{distribution}.txt"
    home = folder / distribution
    stamp = home / "installed.txt"
    if not (stamp.exists() and stamp.read_text() == pins.read_text()):
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        _run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check",
              "--no-warn-script-location", "-r", str(pins)])  # fmt: skip
        stamp.write_text(pins.read_text())
    return home / "bin"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"it did not install within {INSTALL_SECONDS:.0f} s") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotInstalled((errors or done.stderr.splitlines() or ["the installer said nothing"])[-1][:300])
