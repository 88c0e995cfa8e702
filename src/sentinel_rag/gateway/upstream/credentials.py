"""The credentials that a tool server was given, taken out of whatever it says: it may never tell them on.

They are compared as text, and as JSON writes that text. A server that encodes its credential in some other way is not
caught here; it runs with that credential by the operator's will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from sentinel_rag.gateway.upstream.port import Returned, ToolFailed, UpstreamReply

PLACEHOLDER = "[credential]"
MIN_LENGTH = 8
"""Shorter texts occur by chance, and taking them out would damage results."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """Where a newer bearer token may be: `variable` is the setting's name, `read` gives what it holds now (None where
    nothing can be read) and may block; without it the setting cannot change while we run."""

    variable: str
    read: Callable[[], str | None] | None = None


class Credentials:
    """The values to hold back; those shorter than `MIN_LENGTH` are left alone."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = tuple(sorted({value for value in values if len(value) >= MIN_LENGTH}, key=len, reverse=True))
        self._encoded = tuple(msgspec.json.encode(value)[1:-1] for value in self._values)

    def hidden_in(self, reply: UpstreamReply) -> UpstreamReply:
        """The reply without them."""
        match reply:
            case Returned(encoded, value):
                if not any(one in encoded for one in self._encoded):
                    return reply
                clean = self._clean(value)
                return replace(reply, encoded=msgspec.json.encode(clean), value=clean)
            case ToolFailed(error):
                return ToolFailed(
                    replace(error, message=self.text(error.message), next_step=self.text(error.next_step))
                )
            case _:
                return reply

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, PLACEHOLDER)
        return text

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._clean(item) for key, item in value.items()}
        return value
