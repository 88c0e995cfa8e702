"""The events of one turn, as values and as server-sent bytes.

What arrives as `text` is what the answer says: the pieces since the last `withdrawn` put together. A `sentence` tells
what the check says of a part of it; a later one of the same place takes its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.evidence import Written
from sentinel_rag.contracts.handles import fill_in, fill_in_answer

TYPES = (
    "started",
    "status",
    "tool.started",
    "tool.finished",
    "text",
    "sentence",
    "withdrawn",
    "table",
    "evidence",
    "done",
    "error",
)
LAST = ("done", "error")
"""Exactly one of these ends each turn."""

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
    waits = {name: tool[name] for name in ("approval_id", "decided_by") if name in tool}
    return Event("tool.finished", {**line, **{name: tool[name] for name in ended}, **waits})


def written_events(name: str, told: Mapping[str, Any]) -> Iterator[Event]:
    """What the agent has written of an answer (`text`), checked of it (`sentences`), or takes back (`withdrawn`)."""
    if name == "withdrawn":
        yield Event("withdrawn", {"text": told["text"], "elapsed_s": told["elapsed_s"]})
    elif name == "sentences":
        yield from (Event("sentence", sentence) for sentence in told["sentences"])
    else:
        yield from (Event("text", {"text": piece}) for piece in pieces(told["text"]))


def answer_events(answer: Mapping[str, Any], turn_id: str, written: Written | None = None) -> Iterator[Event]:
    """The events that tell an answer, in the order in which it is read; the last is `done`. `written` is what was told
    of it before, and is not told again."""
    written = written or Written()
    told = {sentence.start: sentence.to_dict() for sentence in written.sentences}
    sentences = {sentence["start"]: sentence for sentence in answer.get("sentences", ())}
    text = written.rest_of(answer["answer"])
    if text is None or not told.keys() <= sentences.keys():
        yield Event("withdrawn", {"text": "The answer is another one...", "elapsed_s": answer["duration_ms"] / 1e3})
        text, told = answer["answer"], {}
    yield from (Event("text", {"text": piece}) for piece in pieces(text))
    yield from (Event("sentence", each) for start, each in sentences.items() if told.get(start) != each)
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
        elif event.type == "text":
            text += str(event.data["text"])
    return text


def sentences_in(events: Iterable[Event]) -> list[Mapping[str, Any]]:
    """What events tell of the sentences of that text."""
    found: dict[int, Mapping[str, Any]] = {}
    for event in events:
        if event.type == "withdrawn":
            found = {}
        elif event.type == "sentence":
            found[event.data["start"]] = event.data
    return list(found.values())


def filled(events: Iterable[Event], values: Mapping[str, Any], text: str = "") -> Iterator[Event]:
    """The events with known hidden values in them. Sentences move with the text; `text` is what stands before it."""
    for event in events:
        if event.type == "sentence":
            yield Event("sentence", fill_in_answer({"answer": text, "sentences": [event.data]}, values)["sentences"][0])
            continue
        text = "" if event.type == "withdrawn" else text + (event.data["text"] if event.type == "text" else "")
        yield Event(event.type, fill_in(event.data, values))


def pieces(text: str) -> Iterator[str]:
    """`text` in sentences and lines, with nothing lost between them. No word is cut, and no placeholder: what stands
    beside one decides whether its value may be drawn."""
    yield from (match[0] for match in _SENTENCE.finditer(text) if match[0])
