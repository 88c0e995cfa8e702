"""Tool calls out of the pieces in which providers send them.

Decides which piece belongs to which call, then reads each call once: legal name, unique id, an object of arguments or
the reason why there is none. Never repairs arguments by guessing. `answer_parts` feeds it; nothing here does I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.agent.models.messages import MAX_ARGUMENTS_CHARACTERS, CallProblem, ModelToolCall
from sentinel_rag.contracts.json_values import JsonObject

MAX_CALLS = 64
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_PARALLEL = frozenset({"multi_tool_use.parallel", "multi_tool_use_parallel", "functions.parallel", "parallel"})
"""A wrapper that models of OpenAI make up around several calls."""


class TooManyPartsError(ValueError):
    """More calls, or longer arguments, than any answer can have."""


@dataclass(slots=True)
class _Draft:
    """A call under way. `given` is arguments that came as an object and not as text."""

    index: int | None
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    given: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def is_whole(self) -> bool:
        """True if the arguments are a whole JSON object already, so that more of them would be another call's."""
        if self.given is not None:
            return True
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        return isinstance(_parsed(self.text), Mapping)


class ToolCallParts:
    """Collects the `tool_calls` of one answer. `offered` are the names of the tools that the model was told of."""

    def __init__(self, offered: Iterable[str], taken_ids: Iterable[str] = ()) -> None:
        self._offered = frozenset(offered)
        self._taken = set(taken_ids)
        self._drafts: list[_Draft] = []

    def __len__(self) -> int:
        return len(self._drafts)

    def add(self, piece: Any) -> str | None:
        """Take one entry of a delta's `tool_calls`; the name of the call if it opened one. Raises TooManyPartsError."""
        if not isinstance(piece, Mapping):
            return None
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call_id, name = _text(piece.get("id")), _text(function.get("name"))
        draft = self._draft_for(index, call_id, name)
        opened = draft is None
        if draft is None:
            draft = _Draft(index)
            self._drafts.append(draft)
            if len(self._drafts) > MAX_CALLS:
                raise TooManyPartsError
        draft.call_id = draft.call_id or call_id
        self._add_name(draft, name)
        self._add_arguments(draft, function.get("arguments"))
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
        if len(draft.name) > 1_000:
            raise TooManyPartsError

    def _add_arguments(self, draft: _Draft, arguments: Any) -> None:
        if isinstance(arguments, str):
            draft.length += len(arguments)
            if draft.length > MAX_ARGUMENTS_CHARACTERS:
                raise TooManyPartsError
            if arguments:
                draft.pieces.append(arguments)
        elif isinstance(arguments, Mapping):
            draft.given = arguments
        elif arguments is not None:
            draft.pieces.append(json.dumps(arguments))

    def calls(self, *, last_is_cut: bool = False) -> tuple[ModelToolCall, ...]:
        """The calls in the order in which they began. `last_is_cut`: the answer ended too early for the last one."""
        found: list[ModelToolCall] = []
        last = len(self._drafts) - 1
        for place, draft in enumerate(self._drafts):
            found += self._read(draft, is_cut=last_is_cut and place == last)
        if len(found) > MAX_CALLS:
            raise TooManyPartsError
        return tuple(found)

    def _read(self, draft: _Draft, *, is_cut: bool) -> Sequence[ModelToolCall]:
        text = draft.text if draft.given is None else json.dumps(draft.given)
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
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
            number = len(self._taken) + 1
            while (call_id := f"call_{number}") in self._taken:
                number += 1
        self._taken.add(call_id)
        legal = name if _LEGAL.fullmatch(name) else _ILLEGAL.sub("_", name)[:64] or "unnamed_tool"
        return ModelToolCall(call_id, legal, arguments, text, problem, explanation)


def _arguments(text: str) -> JsonObject | None:
    """The object that `text` is: as it stands, as JSON inside a JSON string, or none at all for a call without any."""
    if not text.strip():
        return {}
    value = _parsed(text)
    if isinstance(value, str):
        value = _parsed(value)
    if value is None and text.strip() == "null":
        return {}
    return value if isinstance(value, dict) else None


def _wrapped_calls(arguments: JsonObject | None) -> list[tuple[str, JsonObject]] | None:
    """The calls inside the made-up wrapper; None if it is not in its known form."""
    uses = None if arguments is None else arguments.get("tool_uses")
    if not isinstance(uses, list) or not uses:
        return None
    found: list[tuple[str, JsonObject]] = []
    for use in uses:
        if not isinstance(use, Mapping) or not isinstance(use.get("parameters"), Mapping):
            return None
        found.append((_text(use.get("recipient_name")) or _text(use.get("name")), use["parameters"]))
    return found


def _parsed(text: str) -> Any:
    """The JSON value; None for anything that is none, numbers that JSON does not have included."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
