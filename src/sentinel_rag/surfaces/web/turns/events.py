"""The events of one turn, as values and as server-sent bytes.

What arrives as `text` is what the answer says, checked by the agent before: the pieces since the last `withdrawn` put
together, with the notices of removed sentences in their places, are the answer's text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.evidence import REMOVED

TYPES = (
    "started",
    "status",
    "tool.started",
    "tool.finished",
    "text",
    "removal",
    "withdrawn",
    "table",
    "evidence",
    "done",
    "error",
)
LAST = ("done", "error")
"""Exactly one of these ends each turn."""

_NOTICE = re.compile(rf"(?<!\S)({re.escape(REMOVED)})(?!\S)")
_SENTENCE = re.compile(r"(?:⟦[^⟦⟧]*⟧|[^⟦\n]|⟦)*?(?:(?<=[.!?])[ \t]+(?=\S)|\n+|\Z)")


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Its number in its turn, from 1, is the id that `Last-Event-ID` refers to."""

    type: str
    data: Mapping[str, Any]

    def encoded(self, number: int) -> bytes:
        """The event on the wire. JSON has no raw line ends, so one data line holds it whatever its texts are."""
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        return f"event: {self.type}\nid: {number}\ndata: {data}\n\n".encode("utf-8", "replace")


def progress_event(told: Mapping[str, Any]) -> Event:
    """What the agent tells while it works: a status line, or a call that starts or has ended."""
    line = {"text": told["text"], "elapsed_s": told["elapsed_s"]}
    tool = told.get("tool")
    if not tool:
        return Event("status", line)
    if tool["status"] == "running":
        return Event("tool.started", {**line, **{name: tool[name] for name in ("call_id", "name", "arguments")}})
    ended = ("call_id", "name", "status", "detail", "audit_id", "duration_ms", "coverage")
    return Event("tool.finished", {**line, **{name: tool[name] for name in ended}})


def written_events(told: Mapping[str, Any], *, withdrawn: bool) -> Iterator[Event]:
    """What the agent has written of an answer, or takes back of it."""
    if withdrawn:
        yield Event("withdrawn", {"text": told["text"], "elapsed_s": told["elapsed_s"]})
    else:
        yield from _text_events(told["text"])


def answer_events(answer: Mapping[str, Any], turn_id: str, written: str = "") -> Iterator[Event]:
    """The events that tell a checked answer, in the order in which it is read; the last is `done`. `written` is what
    was told of its text before, and is not told again."""
    if answer["answer"].startswith(written):
        yield from _text_events(answer["answer"][len(written) :])
    else:
        yield Event("withdrawn", {"text": "The answer is another one...", "elapsed_s": answer["duration_ms"] / 1e3})
        yield from _text_events(answer["answer"])
    for table in answer["tables"]:
        yield Event("table", table)
    for number, piece in enumerate(answer["evidence"], 1):
        yield Event("evidence", {"number": number, **piece})
    rest = ("outcome", "session_id", "footnote", "suggestions", "duration_ms", "model")
    yield Event("done", {"turn_id": turn_id, **{name: answer[name] for name in rest}})


def written_in(events: Iterable[Event]) -> str:
    """The text of an answer as far as events tell it."""
    text = ""
    for event in events:
        if event.type == "withdrawn":
            text = ""
        elif event.type in ("text", "removal"):
            text += str(event.data["text"])
    return text


def _text_events(text: str) -> Iterator[Event]:
    for piece in pieces(text):
        yield Event("removal" if piece.strip() == REMOVED else "text", {"text": piece})


def pieces(text: str) -> Iterator[str]:
    """`text` in sentences and lines, with nothing lost between them. The notice of a removed sentence is a piece of its
    own. No word is cut, and no placeholder: what stands beside one decides whether its value may be drawn."""
    for part in _NOTICE.split(text):
        if part == REMOVED:
            yield part
        else:
            yield from (match[0] for match in _SENTENCE.finditer(part) if match[0])
