"""What happens while a question is answered: numbered events, and the live turn that tells them to whoever listens."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

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


MAX_PROGRESS = 400
"""Status lines and tool events that are kept of one turn; a question has a few rounds of a few calls."""


class LiveTurn:
    """`user_id` is whose it is. `cancel` stops it; a reader that goes away does not."""

    def __init__(self, turn_id: str, user_id: str, conversation_id: str, request_id: str | None) -> None:
        self.turn_id = turn_id
        self.user_id = user_id
        self.conversation_id = conversation_id
        self.request_id = request_id
        self.scope = anyio.CancelScope()
        self._events: list[Event] = []
        self._recorded: list[Event] = []
        self._changed = anyio.Event()

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def recorded(self) -> tuple[Event, ...]:
        """The same events as they are kept: what only this person may see is not in them."""
        return tuple(self._recorded)

    @property
    def ended(self) -> bool:
        """Whether its last event is there."""
        return bool(self._events) and self._events[-1].type in LAST

    def tell(self, *events: Event, recorded: Sequence[Event] | None = None) -> None:
        """Add events; progress beyond the bound is left out, an answer never. `recorded` are they as they are kept,
        where that is another form."""
        for event, kept in zip(events, events if recorded is None else recorded, strict=True):
            if event.type in ("status", "tool.started", "tool.finished") and len(self._events) >= MAX_PROGRESS:
                continue
            self._events.append(event)
            self._recorded.append(kept)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def cancel(self) -> None:
        """Stop it for the person; its last event says so."""
        self.scope.cancel()

    async def follow(self, after: int, *, idle_s: float) -> AsyncIterator[tuple[int, Event] | None]:
        """Each event behind number `after` with its number, as it comes, up to the last; None whenever nothing came
        for `idle_s` seconds."""
        place = max(0, after)
        while True:
            while place < len(self._events):
                place += 1
                yield place, self._events[place - 1]
            if self.ended:
                return
            changed = self._changed
            with anyio.move_on_after(idle_s):
                await changed.wait()
            if place >= len(self._events) and not self.ended:
                yield None

    async def wait(self) -> None:
        """Until it has ended."""
        while not self.ended:
            await self._changed.wait()
