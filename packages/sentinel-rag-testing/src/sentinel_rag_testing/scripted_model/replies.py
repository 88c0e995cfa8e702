"""What a scripted model answers to one request, as data: a head and parts that are written one after the other.

Parts can be well formed (an event with JSON) or whatever a broken server sends: raw bytes, silence, a cut line. Every
reply has a JSON form, so scenarios can live in files. `server` writes them; nothing here does I/O.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, JsonValue

EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
FRAMINGS = ("chunked", "length", "close")


@dataclass(frozen=True, slots=True)
class Event:
    """`data:` with a JSON document, and the blank line behind it."""

    document: JsonValue


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they stand."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence of some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Repeated:
    """Bytes written again and again; it ends early when the client has left."""

    content: bytes
    times: int
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is reset; nothing after it is written."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence until the client leaves."""


Part = Event | Raw | Pause | Repeated | Cut | Hang
DONE = Raw(b"data: [DONE]\n\n")


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `status` 0 writes the parts without any HTTP head. `before_head` comes before the head."""

    parts: tuple[Part, ...] = ()
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: str = "chunked"
    before_head: tuple[Part, ...] = ()

    def to_dict(self) -> JsonObject:
        """The JSON form; `reply_from_dict` reads it."""
        return {
            "status": self.status,
            "content_type": self.content_type,
            "headers": dict(self.headers),
            "framing": self.framing,
            "before_head": [part_to_dict(part) for part in self.before_head],
            "parts": [part_to_dict(part) for part in self.parts],
        }


def part_to_dict(part: Part) -> JsonObject:
    """`{"event": ...}`, `{"text": ...}` or `{"base64": ...}`, `{"pause_s": ...}`, `{"hang": true}`, `{"cut": true}`."""
    match part:
        case Event(document):
            return {"event": document}
        case Raw(content):
            return _bytes_to_dict(content)
        case Pause(seconds):
            return {"pause_s": seconds}
        case Repeated(content, times, pause_s):
            return {**_bytes_to_dict(content), "times": times, "every_s": pause_s}
        case Cut():
            return {"cut": True}
        case Hang():
            return {"hang": True}


def reply_from_dict(data: Mapping[str, Any]) -> Reply:
    """The reply that a JSON object states; what it leaves out is as in `Reply`. `text` and `calls` are short forms of a
    well formed answer; `first` numbers the ids of its calls. Raises ValueError that names what is wrong."""
    short = {"text", "calls", "first"}
    unknown = set(data) - {"status", "content_type", "headers", "framing", "before_head", "parts", *short}
    if unknown:
        raise ValueError(f"a reply has no field {', '.join(sorted(unknown))}")
    if "calls" in data:
        wishes = ((call["name"], call.get("arguments", {})) for call in data["calls"])
        return calls_reply(*wishes, first=int(data.get("first", 1)))
    if "text" in data:
        return text_reply(str(data["text"]))
    framing = data.get("framing", "chunked")
    if framing not in FRAMINGS:
        raise ValueError(f"framing {framing!r} is not one of {', '.join(FRAMINGS)}")
    return Reply(
        parts=tuple(part_from_dict(part) for part in data.get("parts", ())),
        status=int(data.get("status", 200)),
        content_type=str(data.get("content_type", EVENT_STREAM)),
        headers={str(name): str(value) for name, value in data.get("headers", {}).items()},
        framing=framing,
        before_head=tuple(part_from_dict(part) for part in data.get("before_head", ())),
    )


def part_from_dict(data: Mapping[str, Any]) -> Part:
    """The part that a JSON object states. Raises ValueError."""
    if "event" in data:
        return Event(data["event"])
    if "text" in data or "base64" in data:
        content = str(data["text"]).encode() if "text" in data else base64.b64decode(data["base64"], validate=True)
        if "times" in data:
            return Repeated(content, int(data["times"]), float(data.get("every_s", 0.0)))
        return Raw(content)
    if "pause_s" in data:
        return Pause(float(data["pause_s"]))
    if data.get("cut"):
        return Cut()
    if data.get("hang"):
        return Hang()
    raise ValueError(f"a part is event, text, base64, pause_s, cut or hang, and not {', '.join(map(str, data))}")


def _bytes_to_dict(content: bytes) -> dict[str, JsonValue]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def chunk(delta: JsonValue = None, finish: str | None = None, **more: JsonValue) -> Event:
    """A `chat.completion.chunk` with one choice. `more` are further fields of the chunk."""
    choice: JsonObject = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return Event({**_envelope("chat.completion.chunk"), "choices": [choice], **more})


def usage_chunk(prompt: int, completion: int) -> Event:
    """The chunk without choices that `include_usage` asks for."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return Event({**_envelope("chat.completion.chunk"), "choices": [], "usage": usage})


def completion(message: JsonObject, finish: str | None = "stop", **more: JsonValue) -> JsonObject:
    """A whole `chat.completion`, as a request without `stream` gets it."""
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return {**_envelope("chat.completion"), "choices": [choice], "usage": usage, **more}


def _envelope(kind: str) -> dict[str, JsonValue]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_730_000_000, "model": "scripted"}


def call_piece(
    name: str | None = None, arguments: JsonValue = None, *, index: int | None = 0, call_id: str | None = None
) -> JsonObject:
    """One entry of a delta's `tool_calls`; None leaves a field out."""
    piece: dict[str, JsonValue] = {} if index is None else {"index": index}
    if call_id is not None:
        piece |= {"id": call_id, "type": "function"}
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**piece, "function": function}


def stream_reply(*parts: Part, **head: Any) -> Reply:
    """A stream of these parts."""
    return Reply(parts, **head)


def text_reply(text: str, *, prompt: int = 20, pieces: int = 3) -> Reply:
    """A well formed streamed answer in some pieces, with usage."""
    size = max(1, -(-len(text) // pieces))
    deltas = [chunk({"content": text[start : start + size]}) for start in range(0, len(text), size)]
    return Reply((chunk({"role": "assistant", "content": ""}), *deltas, *ending("stop", prompt=prompt)))


def calls_reply(*calls: tuple[str, JsonObject], first: int = 1, prompt: int = 20) -> Reply:
    """A well formed streamed answer that calls tools, with ids `call_a1`, `call_a2` and so on."""
    parts: list[Part] = [chunk({"role": "assistant", "content": None})]
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        begin = call_piece(name, "", index=index, call_id=f"call_a{first + index}")
        halves = [text[: len(text) // 2], text[len(text) // 2 :]]
        parts.append(chunk({"tool_calls": [begin]}))
        parts += [chunk({"tool_calls": [call_piece(arguments=half, index=index)]}) for half in halves]
    return Reply((*parts, *ending("tool_calls", prompt=prompt)))


def ending(finish: str = "stop", *, prompt: int = 20) -> tuple[Part, ...]:
    """How a well formed stream ends: the reason, the usage, the mark."""
    return (chunk({}, finish), usage_chunk(prompt, 5), DONE)


def json_reply(document: JsonValue, status: int = 200, **headers: str) -> Reply:
    """A whole JSON body; underscores in header names stand for dashes."""
    return body_reply(json.dumps(document).encode(), status, JSON, **headers)


def body_reply(body: bytes, status: int = 200, content_type: str = "text/html", **headers: str) -> Reply:
    """A body of any kind."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply((Raw(body),), status, content_type, named, "length")


def event_bytes(document: JsonValue, *, prefix: bytes = b"data: ", end: bytes = b"\n\n") -> bytes:
    """The bytes of an event, for replies that break its form."""
    return prefix + json.dumps(document, ensure_ascii=False).encode() + end


def raw_stream(events: Iterable[Event], *, prefix: bytes = b"data: ", end: bytes = b"\n\n") -> Sequence[Part]:
    """Events in a form of one's own."""
    return [Raw(event_bytes(event.document, prefix=prefix, end=end)) for event in events]
