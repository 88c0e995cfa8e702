"""One answer out of what a provider streams, or out of a whole completion: events, tool calls, text, its end.

Forgiving in form and strict in size: it tolerates what real servers send (comments, `data:` without its space, missing
blank lines, bare JSON lines, any line end, broken UTF-8, calls in pieces of every kind) and never repairs arguments by
guessing. How an answer ended is decided from what was sent and not from what was claimed. Knows no HTTP and no clock.
The SDK's own decoder is not used: it buffers without bound and fails on events without data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from sentinel_rag.agent.models.failures import (
    Asked,
    FailureKind,
    ModelError,
    PromptFilteredError,
    as_mapping,
    failure_of_error,
    filter_categories,
)
from sentinel_rag.agent.models.port import (
    MAX_ARGUMENTS_CHARACTERS,
    AssistantMessage,
    CallProblem,
    Finished,
    FinishReason,
    ModelEvent,
    ModelToolCall,
    TextDelta,
    TokenCounts,
    ToolCallStarted,
)
from sentinel_rag.contracts.json_values import JsonObject

MAX_STREAM_BYTES = 32_000_000
MAX_TEXT_CHARACTERS = 400_000
MAX_CALLS = 64
_LINE_COST = 32
"""What a line counts beyond its bytes, so that empty ones do not keep a client busy for nothing."""
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_PARALLEL = frozenset({"multi_tool_use.parallel", "multi_tool_use_parallel", "functions.parallel", "parallel"})
"""A wrapper that models of OpenAI make up around several calls."""
_REASONS = {
    "content_filter": FinishReason.CONTENT_FILTER,
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), FinishReason.LENGTH),
}


class ServerEvent(NamedTuple):
    """One server-sent event. `name` is empty for almost all; `error` marks what is no chunk."""

    data: str
    name: str = ""


class StreamTooLargeError(ValueError):
    """The stream is larger than any answer can be."""


class EventDecoder:
    """Feed bytes as they come, get whole events. One object for each stream."""

    def __init__(self, *, max_stream: int = MAX_STREAM_BYTES) -> None:
        self._left = max_stream
        self._rest: list[bytes] = []
        self._data: list[str] = []
        self._name = ""
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Every event that `chunk` completes. Raises StreamTooLargeError."""
        self._spend(len(chunk))
        after_return = bool(self._rest) and self._rest[-1].endswith(b"\r")
        if chunk:
            self._rest.append(chunk)
        if not after_return and b"\n" not in chunk and b"\r" not in chunk:
            return []
        lines = b"".join(self._rest).splitlines(keepends=True)
        # A carriage return waits with its line: the newline that belongs to it may come in the next packet.
        self._rest = [lines.pop()] if lines and not lines[-1].endswith(b"\n") else []
        return [event for line in lines for event in self._take(line.rstrip(b"\r\n"))]

    def finish(self) -> list[ServerEvent]:
        """The event that the end of the stream completes."""
        line, self._rest = b"".join(self._rest).rstrip(b"\r\n"), []
        return [*(self._take(line) if line else ()), *self._dispatch()]

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise StreamTooLargeError

    def _take(self, line: bytes) -> list[ServerEvent]:
        self._spend(_LINE_COST)
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
        elif line.startswith(b"event:"):
            self._name = line[6:50].decode("utf-8", "replace").strip()
        elif line[:1] == b"{":  # no field of the format begins so: a server that writes JSON lines, or an error amid
            before = self._dispatch()
            self._data.append(line.decode("utf-8", "replace"))
            return [*before, *self._dispatch()]
        return []

    def _dispatch(self) -> list[ServerEvent]:
        event = ServerEvent("\n".join(self._data).strip(), self._name)
        self._data, self._name = [], ""
        return [event] if event.data else []


@dataclass(slots=True)
class _Draft:
    """A call under way."""

    index: int | None
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def is_whole(self) -> bool:
        """True if the arguments are a whole JSON object already, so that more of them would be another call's."""
        ends = bool(self.pieces) and self.pieces[-1].rstrip().endswith("}")
        return ends and isinstance(_parsed("".join(self.pieces)), Mapping)


class ToolCallParts:
    """Collects the `tool_calls` of one answer: decides which piece belongs to which call, then reads each call once.
    `offered` are the names of the tools that the model was told of. Raises ModelError for more than can be real."""

    def __init__(self, offered: Iterable[str], taken_ids: Iterable[str] = (), *, model: str = "") -> None:
        self._offered = frozenset(offered)
        self._taken = set(taken_ids)
        self._model = model
        self._drafts: list[_Draft] = []

    def add(self, piece: Any) -> str | None:
        """Take one entry of a delta's `tool_calls`; the name of the call if it opened one."""
        if not isinstance(piece, Mapping):
            return None
        function = as_mapping(piece.get("function"))
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        draft = self._draft_for(index, call_id, name)
        opened = draft is None
        if draft is None:
            draft = _Draft(index)
            self._drafts.append(draft)
        draft.call_id = draft.call_id or call_id
        self._add_name(draft, name)
        self._add_arguments(draft, function.get("arguments"))
        self._require(len(self._drafts) <= MAX_CALLS and draft.length <= MAX_ARGUMENTS_CHARACTERS)
        return draft.name if opened and draft.name else None

    def _draft_for(self, index: int | None, call_id: str, name: str) -> _Draft | None:
        """The call that a piece continues; None if it opens one."""
        if index is None:
            candidates = [draft for draft in self._drafts if call_id and draft.call_id == call_id] or self._drafts[-1:]
        else:
            candidates = [draft for draft in self._drafts if draft.index == index]
        if not candidates:
            return None
        draft = candidates[-1]
        if call_id and draft.call_id and call_id != draft.call_id:
            return None
        if name and name != draft.name and {name, draft.name} <= self._offered:
            return None
        if name and draft.is_whole() and not (call_id and call_id == draft.call_id and index is not None):
            return None
        return draft

    def _add_name(self, draft: _Draft, name: str) -> None:
        """Most servers send the name once, some with every piece, a few in pieces: the offered names decide."""
        if not draft.name:
            draft.name = name
        elif name and name != draft.name and not draft.pieces and draft.name not in self._offered:
            draft.name += name
        self._require(len(draft.name) <= 1_000)

    def _add_arguments(self, draft: _Draft, arguments: Any) -> None:
        if isinstance(arguments, Mapping):  # an object instead of its text
            draft.pieces, draft.length = [], 0
        text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
        if text:
            draft.pieces.append(text)
            draft.length += len(text)

    def calls(self, *, last_is_cut: bool = False) -> tuple[ModelToolCall, ...]:
        """The calls in the order in which they began. `last_is_cut`: the answer ended too early for the last one."""
        found: list[ModelToolCall] = []
        for draft in self._drafts:
            found += self._read(draft, is_cut=last_is_cut and draft is self._drafts[-1])
        self._require(len(found) <= MAX_CALLS)
        return tuple(found)

    def _require(self, real: bool) -> None:
        if not real:
            what = "holds more tool calls, or longer ones, than can be real"
            raise ModelError(FailureKind.BAD_ANSWER, model=self._model, what=what)

    def _read(self, draft: _Draft, *, is_cut: bool) -> Sequence[ModelToolCall]:
        text = "".join(draft.pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if is_cut:
            why = "The answer was cut off before this call was whole, so it did not run. Make the call again, shorter."
            return [self._call(draft.call_id, draft.name, None, text, CallProblem.CUT_OFF, why)]
        if draft.name.strip() in _PARALLEL and draft.name.strip() not in self._offered:
            inner = _wrapped_calls(_arguments(text))
            if inner is not None:
                return [self._judged("", name, arguments, json.dumps(arguments)) for name, arguments in inner]
        return [self._judged(draft.call_id, draft.name, _arguments(text), text)]

    def _judged(self, call_id: str, name: str, arguments: JsonObject | None, text: str) -> ModelToolCall:
        name = self._offered_name(name.strip())
        if name not in self._offered:
            tools = ", ".join(sorted(self._offered)) or "none"
            why = f"There is no tool of that name, so nothing ran. The tools are: {tools}."
            return self._call(call_id, name, None, text, CallProblem.UNKNOWN_TOOL, why)
        if arguments is None:
            why = f"The arguments are not one JSON object, so {name} did not run. Call it again with one JSON object."
            return self._call(call_id, name, None, text, CallProblem.NO_ARGUMENTS_OBJECT, why)
        return self._call(call_id, name, arguments, text)

    def _offered_name(self, name: str) -> str:
        """The offered tool that is meant: templates leave `functions.` before a name and tokens or numbers of their own
        behind it (`query_alerts<|channel|>json`, `query_alerts:0`)."""
        bare = name.removeprefix("functions.")
        first = _LEGAL.match(bare)
        candidates = (name, bare, first[0] if first else "", bare.rstrip("0123456789").rstrip("_:.-"))
        return next((each for each in candidates if each in self._offered), name)

    def _call(
        self,
        call_id: str,
        name: str,
        arguments: JsonObject | None,
        text: str,
        problem: CallProblem | None = None,
        explanation: str = "",
    ) -> ModelToolCall:
        if not _LEGAL.fullmatch(call_id) or call_id in self._taken:
            call_id = unused_id(self._taken)
        self._taken.add(call_id)
        legal = name if _LEGAL.fullmatch(name) else _ILLEGAL.sub("_", name)[:64] or "unnamed_tool"
        return ModelToolCall(call_id, legal, arguments, text, problem, explanation)


class AnswerParts:
    """Collects one answer to what was asked."""

    def __init__(self, asked: Asked, *, offered: Iterable[str] = (), taken_ids: Iterable[str] = ()) -> None:
        self._asked = asked
        self._calls = ToolCallParts(offered, taken_ids, model=asked.model)
        self._text: list[str] = []
        self._length = 0
        self._half = ""
        self._refused = False
        self._finish = ""
        self._filtered: dict[str, str] = {}
        self.tokens: TokenCounts | None = None

    @property
    def has_ended(self) -> bool:
        """True once the provider gave a reason; what may follow is usage and remarks of a filter."""
        return bool(self._finish)

    def add(self, document: Any, *, whole: bool = False) -> list[ModelEvent]:
        """Take a chunk, or a `whole` completion. Raises ModelError for an error object and for what is no answer."""
        if not isinstance(document, Mapping):
            raise self._bad("holds something that is no JSON object")
        if document.get("error") or "error" in (document.get("object"), document.get("type")):
            raise failure_of_error(document, asked=self._asked)
        self._count(as_mapping(document.get("usage")))
        choices = _list(document.get("choices"))
        if not choices:
            self._heed_prompt_filter(document.get("prompt_filter_results"))
        if whole and not (choices and isinstance(choices[0], Mapping)):
            raise self._bad("holds no choices")
        events: list[ModelEvent] = []
        for choice in choices:
            if isinstance(choice, Mapping) and choice.get("index") in (0, None):
                self._choice(choice, events)
        return events

    def _heed_prompt_filter(self, results: Any) -> None:
        """Raise PromptFilteredError if the prompt was stopped, and not only remarked on."""
        verdicts = [as_mapping(as_mapping(entry).get("content_filter_results")) for entry in _list(results)]
        if any(as_mapping(verdict).get("filtered") is True for found in verdicts for verdict in found.values()):
            raise PromptFilteredError(
                {name: grade for found in verdicts for name, grade in filter_categories(found).items()}
            )

    def _choice(self, choice: Mapping[str, Any], events: list[ModelEvent]) -> None:
        self._filtered |= filter_categories(choice.get("content_filter_results"))
        self._finish = _text(choice.get("finish_reason")).casefold() or self._finish
        message = as_mapping(choice.get("delta") or choice.get("message"))
        self._say(_plain_text(message.get("content")), events)
        refusal = _text(message.get("refusal"))
        self._refused = self._refused or bool(refusal)
        self._say(refusal, events)
        pieces = [*_list(message.get("tool_calls"))]
        if isinstance(message.get("function_call"), Mapping):  # the form before tool calls; some servers keep it
            pieces.append({"index": 0, "function": message["function_call"]})
        events += [ToolCallStarted(opened) for opened in map(self._calls.add, pieces) if opened]

    def _say(self, text: str, events: list[ModelEvent]) -> None:
        text, self._half = _whole_characters(self._half + text)
        if not text:
            return
        self._length += len(text)
        if self._length > MAX_TEXT_CHARACTERS:
            raise self._bad("is longer than an answer can be")
        self._text.append(text)
        events.append(TextDelta(text))

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Keep the newest counts: some servers send growing ones with every chunk."""
        counts = TokenCounts(
            input=_number(usage, "prompt_tokens"),
            output=_number(usage, "completion_tokens"),
            cached_input=_number(as_mapping(usage.get("prompt_tokens_details")), "cached_tokens"),
            reasoning=_number(as_mapping(usage.get("completion_tokens_details")), "reasoning_tokens"),
        )
        if counts.input or counts.output:
            self.tokens = counts

    def end(self, *, in_order: bool) -> Finished:
        """What the answer was, without usage. `in_order`: the provider closed it itself (`[DONE]`, a whole completion).

        Raises ModelError if it was cut off, failed or says nothing.
        """
        if self._finish == "error":
            raise ModelError(FailureKind.PROVIDER, "provider_amid")
        reason = _REASONS.get(self._finish)
        calls = self._calls.calls(last_is_cut=reason is not None)
        broken = not in_order or any(call.problem is CallProblem.NO_ARGUMENTS_OBJECT for call in calls)
        if not self._finish and broken:
            raise ModelError(FailureKind.CUT_OFF)
        text = "".join(self._text)
        if reason is None and not calls and not self._refused and not text.strip():
            raise ModelError(FailureKind.EMPTY_ANSWER)
        if reason is None:
            words = FinishReason.REFUSAL if self._refused else FinishReason.STOP
            reason = FinishReason.TOOL_CALLS if calls else words
        message = AssistantMessage(text, calls)
        return Finished(reason, message, filtered=dict(self._filtered), stated=bool(self._finish))

    def _bad(self, what: str) -> ModelError:
        return ModelError(FailureKind.BAD_ANSWER, model=self._asked.model, what=what)


def unused_id(taken: Collection[str]) -> str:
    """A call id that is not in `taken`."""
    return next(made for number in count(len(taken) + 1) if (made := f"call_{number}") not in taken)


def _whole_characters(text: str) -> tuple[str, str]:
    """`text` with its halves of characters joined, and a first half at its end that waits for the next piece.

    Servers that escape characters beyond 16 bits cut between the two escapes; a half amid text becomes U+FFFD.
    """
    if text.isascii():
        return text, ""
    half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
    whole = text[: len(text) - len(half)]
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half


def _plain_text(content: Any) -> str:
    """The text of `content`: a string, or a list of parts of which the text ones count."""
    return _text(content) or "".join(_text(as_mapping(part).get("text")) for part in _list(content))


def _arguments(text: str) -> JsonObject | None:
    """The object that `text` is: as it stands, as JSON inside a JSON string, or none at all for a call without any."""
    if text.strip() in ("", "null"):
        return {}
    value = _parsed(text)
    if isinstance(value, str):
        value = _parsed(value)
    return value if isinstance(value, dict) else None


def _wrapped_calls(arguments: JsonObject | None) -> list[tuple[str, JsonObject]] | None:
    """The calls inside the made-up wrapper; None if it is not in its known form."""
    found: list[tuple[str, JsonObject]] = []
    for use in _list(as_mapping(arguments).get("tool_uses")):
        if not isinstance(use, Mapping) or not isinstance(use.get("parameters"), Mapping):
            return None
        found.append((_text(use.get("recipient_name")) or _text(use.get("name")), use["parameters"]))
    return found or None


def _parsed(text: str) -> Any:
    """The JSON value; None for anything that is none, numbers that JSON does not have included."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(holder: Mapping[str, Any], key: str) -> int:
    value = holder.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
