"""Server-sent events out of bytes, forgiving in form and strict in size.

Tolerates what real servers send: comments, `data:` without its space, events without data, missing blank lines, bare
JSON lines, any line end, a byte order mark, broken UTF-8. Knows nothing of what the data mean. The SDK's own decoder is
not used: it buffers without bound and fails on events without data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_EVENT_BYTES = 2_000_000
MAX_STREAM_BYTES = 32_000_000


_LINE_COST = 32
"""What a line counts beyond its bytes, so that empty ones do not keep a client busy for nothing."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `name` is empty for almost all; `error` marks what is no chunk."""

    data: str
    name: str = ""


class StreamTooLargeError(ValueError):
    """One event, or the whole stream, is larger than any answer can be."""


class EventDecoder:
    """Feed bytes as they come, get whole events. One object for each stream."""

    def __init__(self, *, max_event: int = MAX_EVENT_BYTES, max_stream: int = MAX_STREAM_BYTES) -> None:
        self._max_event = max_event
        self._left = max_stream
        self._line = bytearray()
        self._data: list[str] = []
        self._held = 0
        self._name = ""
        self._after_return = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Every event that `chunk` completes. Raises StreamTooLargeError."""
        self._left -= len(chunk)
        if self._left < 0:
            raise StreamTooLargeError
        if self._after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        events: list[ServerEvent] = []
        if b"\n" in chunk or b"\r" in chunk:
            content, start = bytes(self._line) + chunk, 0
            for end in _LINE_END.finditer(content):
                self._take(content[start : end.start()], events)
                start = end.end()
            self._line = bytearray(content[start:])
        else:
            self._line += chunk
        if len(self._line) + self._held > self._max_event:
            raise StreamTooLargeError
        return events

    def finish(self) -> list[ServerEvent]:
        """The event that the end of the stream completes."""
        events: list[ServerEvent] = []
        if self._line:
            self._take(bytes(self._line), events)
            self._line.clear()
        self._dispatch(events)
        return events

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        self._left -= _LINE_COST
        if self._left < 0:
            raise StreamTooLargeError
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(events)
        elif line.startswith(b"data:"):
            self._hold(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            self._name = line[6:50].decode("utf-8", "replace").strip()
        elif line[:1] == b"{":  # no field of the format begins so: a server that writes JSON lines, or an error amid
            self._dispatch(events)
            self._hold(line)
            self._dispatch(events)

    def _hold(self, data: bytes) -> None:
        if not data:
            return
        self._held += len(data)
        self._data.append(data.decode("utf-8", "replace"))

    def _dispatch(self, events: list[ServerEvent]) -> None:
        whole = "\n".join(self._data).strip()
        name, self._name = self._name, ""
        self._data, self._held = [], 0
        if whole:
            events.append(ServerEvent(whole, name))
