"""What the agent sees of a result: the result itself, with quoted texts marked and hidden parts put aside.

A hidden part becomes a handle and leaves as a `Hidden` for the store. A result that is no object although the policy
hides parts of it is hidden whole: structured content is an object, and in anything else the parts cannot be found.

A quoted text is marked where it can say something. A time, an id and a short name stay plain: a mark on each cell of a
log row would tell a reader nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import Any

import msgspec

from sentinel_rag.contracts.handles import QUOTE_KEY, SAYS_NOTHING
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.flow.references import Reference
from sentinel_rag.gateway.flow.row_labels import NO_ROWS, RowLabels
from sentinel_rag.gateway.policy.fields import Exposure, Path, ResultFields
from sentinel_rag.gateway.policy.places import Place, root
from sentinel_rag.gateway.upstream.tool_result import OTHER_CONTENT, WRAPPED_CONTENT

MAX_QUOTED_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Hidden:
    """A part that stays with the gateway: its handle, its JSON and the label it carries."""

    reference: Reference
    encoded: bytes
    label: Label


@dataclass(frozen=True, slots=True)
class View:
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
) -> View:
    """The view of `value`, whose JSON is `encoded`, as result number `result` of its session. `base` is the label that
    the rule, the arguments and the resources give to all of it, `rows` what its rows add. Without `marks` quoted texts
    are shown as they are."""
    if not fields.hides:
        marked = _Marking().at(root(fields), value) if marks and fields.exposures else value
        return View(encoded if marked is value else msgspec.json.encode(marked), rows=rows.label_at(()))
    hidden: list[Hidden] = []
    shown_rows = BOTTOM
    # What a server says beside its structured result is text about it, and may repeat what is hidden there.
    beside = not any(entry.path[:1] == (OTHER_CONTENT,) for entry in fields.exposures)
    labelled_beside = any(entry.path[:1] == (OTHER_CONTENT,) for entry in fields.labels)

    def hide(part: Any, place: Place, path: Path) -> Any:
        reference = Reference(result, path)
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
    return View(msgspec.json.encode(shown), tuple(hidden), shown_rows)


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
