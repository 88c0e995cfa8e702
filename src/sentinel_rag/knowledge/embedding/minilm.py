"""The embedding model on this machine: all-MiniLM-L6-v2 with int8 weights on onnxruntime. No network, 384 dimensions.

It reads the first 256 word pieces of a text. onnxruntime's threads do not spin, since waiting ones would take the cores
of whatever else runs here; a run takes texts of like length, because every text of a run costs as much as its longest,
and few long ones, because what does not fit the processor's cache costs a fifth more.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.embedding.local_installation import MODEL_SHA256, local_model_state
from sentinel_rag.knowledge.stores.port import Vector, VectorSpace

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

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
