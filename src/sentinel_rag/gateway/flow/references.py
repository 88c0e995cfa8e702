"""Handles in arguments: `{"$ref": "r12#/rows/0/CommandLine"}` stands for a value that the agent never saw.

A handle is an object with the one key `$ref`; anywhere in an argument it is replaced by the stored value before the
call is judged. `r12` names a result of the same session, the rest is a JSON pointer into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.handles import REF_KEY as KEY
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.policy.fields import Path, parse_pointer, pointer_text

MAX_HANDLES = 64
"""Handles in the arguments of one call."""

_FORM = re.compile(r"r([1-9][0-9]{0,8})#(.{0,1024})", re.DOTALL)


class NoSuchHandle(ValueError):
    """The text is no handle, or the session has none like it. The message repeats nothing; `told` is the label of what
    the refusal itself tells: of a hidden value, that it has no such part."""

    told: Label = BOTTOM


@dataclass(frozen=True, slots=True)
class Reference:
    """The value at `path` of the session's result with that number."""

    result: int
    path: Path

    def __str__(self) -> str:
        return f"r{self.result}#{pointer_text(self.path)}"

    def to_json(self) -> dict[str, JsonValue]:
        return {KEY: str(self)}

    @classmethod
    def parse(cls, text: object) -> Reference:
        """Raises NoSuchHandle."""
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise NoSuchHandle('a handle has the form {"$ref": "r1#/rows/0/name"}')
        try:
            return cls(int(match[1]), parse_pointer(match[2]))
        except ValueError as error:
            raise NoSuchHandle(f"a handle is not usable: {error}") from None


def find_references(arguments: JsonObject) -> Mapping[str, tuple[Reference, ...]]:
    """The handles inside each argument that holds one. Raises NoSuchHandle for one of a wrong form, or too many."""
    found: dict[str, tuple[Reference, ...]] = {}
    for name, value in arguments.items():
        if isinstance(value, dict | list):
            references = tuple(Reference.parse(text) for text in _handle_texts(value))
            if references:
                found[name] = references
    if sum(map(len, found.values())) > MAX_HANDLES:
        raise NoSuchHandle(f"a call may hold at most {MAX_HANDLES} handles")
    return found


def put_values(value: JsonValue, values: Mapping[Reference, JsonValue]) -> JsonValue:
    """`value` with each handle replaced. `values` holds every handle in it; what it puts in is not searched again."""
    if isinstance(value, dict):
        if KEY in value:
            return values[Reference.parse(value[KEY])]
        return {key: put_values(part, values) for key, part in value.items()}
    if isinstance(value, list):
        return [put_values(part, values) for part in value]
    return value


def step_into(value: Any, path: Path) -> Any:
    """The part of a JSON value at `path`. Raises NoSuchHandle."""
    for segment in path:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and segment.isdecimal() and segment.isascii() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            raise NoSuchHandle("there is no such handle in this session")
    return value


def _handle_texts(value: JsonValue) -> Iterator[object]:
    """The text of each handle; an object with `$ref` and anything else is a broken one."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if KEY in part:
                yield part[KEY] if len(part) == 1 else None
            else:
                left += part.values()
        elif isinstance(part, list):
            left += part
