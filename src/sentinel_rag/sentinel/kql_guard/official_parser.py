"""Microsoft's KQL parser: an npm package in a node process, behind the driver in `microsoft_parser/`.

Where the package and node are found, `parser_installation` knows; how it is asked, `parser_client`. Loading the package
takes most of a start, so an installation keeps a snapshot of a driver that has done it, which starts in a fraction.
"""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path

from sentinel_rag.sentinel.kql_guard.parser_client import ParserClient
from sentinel_rag.sentinel.kql_guard.parser_process import ENVIRONMENT, ParserProcess

DRIVER = Path(__file__).parent / "microsoft_parser" / "driver.cjs"
_HEAP = "--max-old-space-size=768"
_SNAPSHOT_TIMEOUT_S = 120


class OfficialParser(ParserClient):
    """The parser in one node process. `folder` holds the package's files; `node_version` decides how it is confined."""

    def __init__(
        self,
        folder: Path,
        node: Path,
        *,
        node_version: tuple[int, ...] = (18,),
        timeout_s: float = 10.0,
        start_timeout_s: float = 30.0,
    ) -> None:
        commands = _commands(folder.resolve(), node, node_version)
        process = ParserProcess(commands, start_timeout_s=start_timeout_s, advice="Run: sentinel kql install")
        super().__init__(process, timeout_s=timeout_s)


def snapshot_of(folder: Path, node_version: tuple[int, ...]) -> Path:
    """Where the snapshot of this release's driver for this node is, or would be: another of either makes another."""
    driver = sha256(DRIVER.read_bytes()).hexdigest()[:16]
    return folder / f"ready-{driver}-node-{'.'.join(map(str, node_version))}.snapshot"


def take_snapshot(folder: Path, node: Path, node_version: tuple[int, ...]) -> bool:
    """Start the driver over the package in `folder` and keep it as it is then. False where node cannot do that, or has
    no place to: the parser starts without."""
    snapshot = snapshot_of(folder, node_version)
    fresh = snapshot.with_suffix(".part")
    command = [
        str(node),
        "--snapshot-blob",
        str(fresh),
        "--build-snapshot",
        str(DRIVER.resolve()),
        str(folder.resolve()),
    ]
    try:
        done = subprocess.run(
            command, env=ENVIRONMENT, cwd=folder, capture_output=True, timeout=_SNAPSHOT_TIMEOUT_S, check=False
        )
        if done.returncode == 0:
            fresh.replace(snapshot)
        else:
            fresh.unlink(missing_ok=True)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _commands(folder: Path, node: Path, version: tuple[int, ...]) -> list[tuple[str, ...]]:
    """How it may be started, the fast way first: node refuses a snapshot of another kind of processor."""
    # Node's permission model left its trial with 22.13; an older node runs the parser unconfined.
    confined: tuple[str, ...] = ()
    if version >= (22, 13):
        confined = ("--permission", f"--allow-fs-read={folder}/*", f"--allow-fs-read={DRIVER.resolve()}")
    snapshot = snapshot_of(folder, version)
    whole = (str(node), _HEAP, *confined, str(DRIVER.resolve()), str(folder))
    ready = (str(node), _HEAP, "--snapshot-blob", str(snapshot), *confined)
    return [ready, whole] if snapshot.is_file() else [whole]
