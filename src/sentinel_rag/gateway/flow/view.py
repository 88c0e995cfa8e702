"""What the agent sees of a result: the labels of its rows, quoted texts marked, and hidden parts as handles.

A hidden part becomes a handle and leaves as a `Hidden` for the store; `{"$ref": "r12#/rows/0/CommandLine"}` stands for
it in an argument until the call is judged. A result that is no object although the policy hides parts of it is hidden
whole. Labels of rows add to what the policy gives the result and never take from it; where what was told is not one
label for each row, every part carries the worst (TAINT-6). A quoted text is marked where it can say something: a time,
an id and a short name stay plain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import msgspec

from sentinel_rag.contracts.handles import QUOTE_KEY, SAYS_NOTHING
from sentinel_rag.contracts.handles import REF_KEY as KEY
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, TOP, Label, join_all
from sentinel_rag.gateway.policy.model import Exposure, Path, Place, ResultFields, parse_pointer, pointer_text, root
from sentinel_rag.gateway.upstream.mcp_messages import OTHER_CONTENT, WRAPPED_CONTENT

MAX_HANDLES = 64
"""Handles in the arguments of one call."""

_FORM = re.compile(r"r([1-9][0-9]{0,8})#(.{0,1024})", re.DOTALL)


class NoSuchHandle(ValueError):
    """The text is no handle, or the session has none like it. The message repeats nothing; `told` is the label of what
    the refusal itself tells: of a hidden value, that it has no such part."""

    told: Label = BOTTOM


@dataclass(frozen=True, slots=True)
class HandleReference:
    """The value at `path` of the session's result with that number."""

    result: int
    path: Path

    def __str__(self) -> str:
        return f"r{self.result}#{pointer_text(self.path)}"

    def to_json(self) -> dict[str, JsonValue]:
        return {KEY: str(self)}

    @classmethod
    def parse(cls, text: object) -> HandleReference:
        """Raises NoSuchHandle."""
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise NoSuchHandle('a handle has the form {"$ref": "r1#/rows/0/name"}')
        try:
            return cls(int(match[1]), parse_pointer(match[2]))
        except ValueError as error:
            raise NoSuchHandle(f"a handle is not usable: {error}") from None


def find_references(arguments: JsonObject) -> Mapping[str, tuple[HandleReference, ...]]:
    """The handles inside each argument that holds one. Raises NoSuchHandle for one of a wrong form, or too many."""
    found: dict[str, tuple[HandleReference, ...]] = {}
    for name, value in arguments.items():
        if isinstance(value, dict | list):
            references = tuple(HandleReference.parse(text) for text in _handle_texts(value))
            if references:
                found[name] = references
    if sum(map(len, found.values())) > MAX_HANDLES:
        raise NoSuchHandle(f"a call may hold at most {MAX_HANDLES} handles")
    return found


def put_values(value: JsonValue, values: Mapping[HandleReference, JsonValue]) -> JsonValue:
    """`value` with each handle replaced. `values` holds every handle in it; what it puts in is not searched again."""
    if isinstance(value, dict):
        if KEY in value:
            return values[HandleReference.parse(value[KEY])]
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


@dataclass(frozen=True, slots=True)
class RowLabels:
    """`labels` are those of the rows in the list at `at`, in their order; None where none can be believed. `at` is None
    for a result whose rows have no labels of their own."""

    at: Path | None
    labels: tuple[Label, ...] | None

    def label_at(self, path: Sequence[str]) -> Label:
        """What the rows add to the value at `path`: the label of the row that holds it, or the join of all rows that
        it holds."""
        if self.at is None:
            return BOTTOM
        if self.labels is None:
            return TOP
        depth = len(self.at)
        if any(part != own for part, own in zip(path, self.at, strict=False)):
            return BOTTOM
        return self.labels[int(path[depth])] if len(path) > depth else join_all(self.labels)


NO_ROWS = RowLabels(None, ())


def row_labels_of(at: Path | None, value: Any, told: tuple[Label, ...] | None) -> RowLabels:
    """The labels of the rows of `value`, whose server told `told` (None: nothing, or nothing that is labels). `at` is
    where the policy says that the rows are; None if it speaks of none."""
    if at is None:
        return NO_ROWS
    rows = _value_at(value, at)
    # What stands beside the structured part belongs to no row.
    beside = isinstance(value, dict) and OTHER_CONTENT in value
    if told is None or beside or not isinstance(rows, list) or len(rows) != len(told):
        return RowLabels(at, None)
    return RowLabels(at, told)


def _value_at(value: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


MAX_QUOTED_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Hidden:
    """A part that stays with the gateway: its handle, its JSON and the label it carries."""

    reference: HandleReference
    encoded: bytes
    label: Label


@dataclass(frozen=True, slots=True)
class ResultView:
    """`encoded` is the JSON that the agent is sent; `rows` joins the labels that the rows add to what it shows."""

    encoded: bytes
    hidden: tuple[Hidden, ...] = ()
    rows: Label = BOTTOM


def view_of(
    value: Any,
    encoded: bytes,
    fields: ResultFields,
    base: Label,
    result: int,
    rows: RowLabels = NO_ROWS,
    *,
    marks: bool = True,
) -> ResultView:
    """The view of `value`, whose JSON is `encoded`, as result number `result` of its session. `base` is the label that
    the rule, the arguments and the resources give to all of it, `rows` what its rows add. Without `marks` quoted texts
    are shown as they are."""
    if not fields.hides:
        marked = _Marking().at(root(fields), value) if marks and fields.exposures else value
        return ResultView(encoded if marked is value else msgspec.json.encode(marked), rows=rows.label_at(()))
    hidden: list[Hidden] = []
    shown_rows = BOTTOM
    # What a server says beside its structured result is text about it, and may repeat what is hidden there.
    beside = not any(entry.path[:1] == (OTHER_CONTENT,) for entry in fields.exposures)
    labelled_beside = any(entry.path[:1] == (OTHER_CONTENT,) for entry in fields.labels)

    def hide(part: Any, place: Place, path: Path) -> Any:
        reference = HandleReference(result, path)
        repeats = path[:1] == (OTHER_CONTENT,) and not labelled_beside
        declared = fields.whole() if repeats else place.label
        label = base.join(declared).join(rows.label_at(path))
        hidden.append(Hidden(reference, msgspec.json.encode(part), label))
        return reference.to_json()

    def show(part: Any, mode: Exposure, path: Path) -> Any:
        nonlocal shown_rows
        shown_rows = shown_rows.join(rows.label_at(path))
        return _Marking().all_of(part) if marks and mode is Exposure.QUOTE else part

    def walk(part: Any, place: Place, path: Path) -> Any:
        said_beside = beside and path == (OTHER_CONTENT,)
        mode = Exposure.HIDE if said_beside else place.mode
        if place.whole or said_beside or not isinstance(part, dict | list):
            # What holds here holds for all below.
            if mode is Exposure.HIDE:
                return hide(part, place, path)
            return show(part, mode, path)
        if isinstance(part, dict):
            return {key: walk(child, place.at(key), (*path, key)) for key, child in part.items()}
        return [walk(child, place.at(str(index)), (*path, str(index))) for index, child in enumerate(part)]

    start = root(fields)
    shown = walk(value, start, ()) if _is_object(value) else hide(value, start, ())
    return ResultView(msgspec.json.encode(shown), tuple(hidden), shown_rows)


def _is_object(value: Any) -> bool:
    """Whether the server's result is an object: one that the gateway made, to put other content beside it, is none."""
    if not isinstance(value, dict):
        return False
    made = value.keys() == {WRAPPED_CONTENT, OTHER_CONTENT}
    return not made or isinstance(value[WRAPPED_CONTENT], dict)


class _Marking:
    """Puts marks on the texts of one result. A part that gets none stays the same object: only the ways to the
    patterns are walked, since a result has thousands of values and a mark in few of them."""

    def __init__(self) -> None:
        self._shown: dict[str, Any] = {}
        # Cells of a column are mostly a few texts again and again.

    def at(self, place: Place, part: Any) -> Any:
        """`part`, which stands at `place`, with the texts marked that the policy quotes."""
        kind = type(part)
        if place.whole or (kind is not dict and kind is not list):
            return self.all_of(part) if place.mode is Exposure.QUOTE else part
        named, other = place.named, place.other
        if kind is list:
            if named:
                found = [self.at(named.get(str(index), other), child) for index, child in enumerate(part)]
            else:
                found = [self.at(other, child) for child in part]
            return part if all(map(is_, found, part)) else found
        made, known = part, self._shown
        for name in named if other.silent and len(named) < len(part) else part:
            below, child = named.get(name, other), part.get(name)
            if below.silent or child is None:
                continue
            if type(child) is not str:
                shown = self.at(below, child)
            elif below.mode is Exposure.QUOTE:
                shown = known.get(child) or self._text(child)
            else:
                continue
            if shown is not child:
                if made is part:
                    made = part.copy()
                made[name] = shown
        return made

    def all_of(self, part: Any, depth: int = 0) -> Any:
        """`part` with every text marked that can say something; what is nested beyond reason becomes one marked
        text."""
        kind = type(part)
        if kind is str:
            return self._shown.get(part) or self._text(part)
        if kind is not dict and kind is not list:
            return part
        if depth >= MAX_QUOTED_DEPTH:
            return {QUOTE_KEY: msgspec.json.encode(part).decode()}
        if kind is dict:
            return {key: self.all_of(child, depth + 1) for key, child in part.items()}
        return [self.all_of(child, depth + 1) for child in part]

    def _text(self, text: str) -> Any:
        plain = " " not in text and SAYS_NOTHING.fullmatch(text)
        shown = self._shown[text] = text if plain else {QUOTE_KEY: text}
        return shown
