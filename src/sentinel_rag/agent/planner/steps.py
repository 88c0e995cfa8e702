"""Questions of several parts: two counts in one sentence, and one about a thing that has to be found first.

"What triggered the newest alert of incident 55": the words that tell the thing are a question for one row; what is left
is asked of the id of that row. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import Item
from sentinel_rag.language.frames.reader import part_of, part_with

_LISTED = frozenset({"incident", "alert"})
_RANKED = frozenset({"newest", "oldest", "severity"})
_FIRST = frozenset({"1"})
_QUALITIES = ("status", "severity", "class", "owner", "f", "pad", "definite")
"""Types of words between an order and its noun."""
_LINKS = ("of", "rel", "f", "kind", "definite", "ref")
_THINGS = ("lit", "name", "digits", "num")
_NUMBER = re.compile(r"\d{1,9}")
ALERT_ID = re.compile(r"(?:[a-z]{2})?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2}\d{6,24}_-?\d{1,12}", re.I)
"""Only an id of such a shape is asked about: nothing else that a row says becomes a part of a question."""


MOST_PARTS = 4


def parts_of(frame: Frame) -> tuple[str, ...]:
    """The questions that a sentence holds, in order: each that counts something of its own; itself alone if it is
    one."""
    counts = [item.start for item in frame.items if item.sense("op", frozenset({"count"})) is not None]
    begins = [0, *(start for start in counts if _asks(part_of(frame, 0, start)))][:MOST_PARTS]
    spans = list(zip(begins, [*begins[1:], len(frame.text)], strict=True))
    parts = [part_of(frame, begin, end) for begin, end in spans]
    if len(parts) < 2 or not all(part.has("kind") for part in parts):
        return (frame.said,)
    return tuple(frame.text[begin:end].rstrip(" ,;") for begin, end in spans)


def _asks(frame: Frame) -> bool:
    """True for words that ask for something of their own."""
    return frame.has("kind") and frame.has("op:count", "attr")


@dataclass(frozen=True, slots=True)
class Steps:
    """`first` finds one row, an alert or an incident; `rest` is asked about it."""

    first: Frame
    rest: Frame
    finds_alert: bool

    def about(self, reference: str) -> Frame | None:
        """The question about the row of that id; None for an id of another shape."""
        if not (ALERT_ID if self.finds_alert else _NUMBER).fullmatch(reference):
            return None
        frame = self.rest.copy()
        frame.tell("incident", reference)
        if self.finds_alert and frame.has("attr:events"):
            frame.tell("alert_id", reference)
        of_its_incident = frame.has("kind:incident") and frame.has("attr", "status", "severity", "class")
        if self.finds_alert and not of_its_incident:
            frame.tell("alert", reference)
        return frame


def two_steps(frame: Frame) -> Steps | None:
    """What has to be found before the question can be asked; None if the question is about nothing such."""
    items = list(frame.items)
    span = next((found for place in range(len(items)) if (found := _span(items, place)) is not None), None)
    if span is None or frame.has("limit", "not", "except", "order:updated") or frame.unread or frame.around:
        return None
    begin, noun, end = span
    inner, outer = items[begin:end], [*items[:begin], *items[end:]]
    finds_alert = items[noun].sense("kind", frozenset({"alert"})) is not None
    first, rest = part_with(frame, inner), part_with(frame, outer)
    first.tell("singular", "one")
    if not first.has("order"):
        first.tell("order", "oldest")
        first.features.pop("ref", None)
    rest.window = {}
    asks = [attr for attr in rest.all("attr") if attr != "detail" or finds_alert]
    if not asks and not rest.has("kind") and not (rest.polar and rest.has("status", "severity", "class")):
        return None
    return Steps(first, rest, finds_alert) if not rest.has("op:count", "op:top", "op:compare") else None


def _span(items: list[Item], place: int) -> tuple[int, int, int] | None:
    """Where the words for one row begin, where their noun stands and where they end, for an order at `place`."""
    ranked = items[place].sense("order", _RANKED) is not None
    if not ranked and items[place].sense("ref", _FIRST) is None:
        return None
    noun = place + 1
    while noun < len(items) and items[noun].type in _QUALITIES:
        noun += 1
    if noun >= len(items) or items[noun].sense("kind", _LISTED) is None or items[noun].sense("plural") is not None:
        return None
    begin = place
    if place > 1 and items[place - 1].sense("of", frozenset({"s"})) is not None:
        begin = place - 2
    end = _end_of_link(items, noun + 1)
    # "The first alert" alone is the first of the list on the screen.
    return (begin, noun, end) if ranked or end > noun + 1 else None


def _end_of_link(items: list[Item], place: int) -> int:
    """Behind the thing that the noun is tied to ("of incident 55", "on host web-03"); `place` if there is none."""
    end = place
    while end < len(items) and any(items[end].sense(type_) is not None for type_ in _LINKS):
        if any(items[end].sense(type_) is not None for type_ in _THINGS):
            break
        end += 1
    named = end < len(items) and any(items[end].sense(type_) is not None for type_ in _THINGS)
    return end + 1 if named and end > place else place
