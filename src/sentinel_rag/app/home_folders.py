"""Where things lie below the home folder, for whoever starts zones and for whoever looks at what they left."""

from __future__ import annotations

from pathlib import Path


def workspace_folder(home: Path, name: str) -> Path:
    """Where the embedded workspace of that name is stored."""
    return home / "workspaces" / name


def policies_folder(state_folder: Path) -> Path:
    """Where the gateway keeps every policy that was in force, below its state."""
    return state_folder / "policies"


def logs_folder(home: Path) -> Path:
    """Where each zone's log lies."""
    return home / "logs"
