"""Counters of tokens, and what a message or a tool's schema costs beside its texts.

`ExactCounter` wraps a ready `tiktoken.Encoding`; `EstimatingCounter` needs none. Both take any text, log rows that
spell a special token and megabytes of one letter included, and never raise. What a provider adds around a message is
known only for OpenAI's own form; here it is counted generously, so that a budget holds on other servers too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

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
