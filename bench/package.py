"""The wheel and the sdist as strangers get them: built, installed into an empty environment, tried there.

Nothing of this clone is on the path of what is tried: another folder, another home, an environment of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LOCK = REPOSITORY / "requirements.lock"


def build(folder: Path, source: Path = REPOSITORY) -> tuple[Path, Path]:
    """The wheel and the sdist of `source`, in `folder`."""
    command = [Path(sys.executable).parent / "hatchling", "build", "-d", folder]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def names(wheel: Path) -> set[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def unpacked(sdist: Path, folder: Path) -> Path:
    """The folder of an sdist's sources."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.iterdir())


def constraints() -> str:
    """The locked versions, without the hashes: pip takes those for wheels from an index only."""
    return "\n".join(re.findall(r"^([a-z0-9._-]+==\S+(?: ; [^\\\n]+)?)", LOCK.read_text(), re.MULTILINE))


def installed_into(folder: Path, wheel: Path) -> Path:
    """An empty environment with the wheel and what it needs, in the locked versions; the value is its `bin`."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    locked = folder / "constraints.txt"
    locked.write_text(constraints())
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "install", "--quiet", wheel, "-c", locked], check=True)
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    return environment / "bin"


def try_out(binaries: Path, folder: Path) -> str:
    """What the commands of a first user print. Raises CalledProcessError for one that fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_", "PYTHON"))}
    environment = {**kept, "SENTINEL_HOME": str(folder / "home"), "PATH": f"{binaries}{os.pathsep}{kept['PATH']}"}
    printed: list[str] = []
    for command in (
        ["sentinel-rag", "--version"],  # the name that uvx and pipx run
        ["sentinel", "demo"],
        ["sentinel", "ask", "which incidents are still open?"],
        ["sentinel", "ask", "what do the playbooks say about phishing?"],
        ["sentinel", "policy", "test"],
        ["sentinel", "knowledge", "search", "phished account"],
        ["sentinel", "doctor"],
    ):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        printed.append(done.stdout)
    return "\n".join(printed)
