"""What the agent sees of a result: the result itself, with quoted texts marked and hidden parts put aside.

A hidden part becomes a handle and leaves as a `Hidden` for the store. A result that is no object although the policy
hides parts of it is hidden whole: structured content is an object, and in anything else the parts cannot be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from sentinel_rag.contracts.handles import QUOTE_KEY
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.interceptor.flow.references import Reference
from sentinel_rag.interceptor.flow.row_labels import NO_ROWS, RowLabels
from sentinel_rag.interceptor.policy.fields import Exposure, Path, ResultFields
from sentinel_rag.interceptor.policy.places import Place, root
from sentinel_rag.interceptor.upstream.tool_result import OTHER_CONTENT, WRAPPED_CONTENT

MAX_QUOTED_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Hidden:
    """A part that stays with the Interceptor: its handle, its JSON and the label it carries."""

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
    value: Any, encoded: bytes, fields: ResultFields, base: Label, result: int, rows: RowLabels = NO_ROWS
) -> View:
    """The view of `value`, whose JSON is `encoded`, as result number `result` of its session. `base` is the label that
    the rule, the arguments and the resources give to all of it, `rows` what its rows add."""
    if not fields.exposures:
        return View(encoded, rows=rows.label_at(()))
    hidden: list[Hidden] = []
    shown_rows = BOTTOM
    # What a server says beside its structured result is text about it, and may repeat what is hidden there.
    beside = fields.hides and not any(entry.path[:1] == (OTHER_CONTENT,) for entry in fields.exposures)
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
        return _quoted(part) if mode is Exposure.QUOTE else part

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
    shown = walk(value, start, ()) if _is_object(value) or not fields.hides else hide(value, start, ())
    return View(msgspec.json.encode(shown), tuple(hidden), shown_rows)


def _is_object(value: Any) -> bool:
    """Whether the server's result is an object: one that the gateway made, to put other content beside it, is none."""
    if not isinstance(value, dict):
        return False
    made = value.keys() == {WRAPPED_CONTENT, OTHER_CONTENT}
    return not made or isinstance(value[WRAPPED_CONTENT], dict)


def _quoted(part: Any, depth: int = 0) -> Any:
    """`part` with every text marked; what is nested beyond reason becomes one marked text."""
    if isinstance(part, str):
        return {QUOTE_KEY: part}
    if isinstance(part, dict | list) and depth >= MAX_QUOTED_DEPTH:
        return {QUOTE_KEY: msgspec.json.encode(part).decode()}
    if isinstance(part, dict):
        return {key: _quoted(child, depth + 1) for key, child in part.items()}
    if isinstance(part, list):
        return [_quoted(child, depth + 1) for child in part]
    return part
