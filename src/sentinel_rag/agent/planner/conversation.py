"""A conversation as slots: what a follow-up leaves out comes from the frame before, what it points at from the rows.

Three things are remembered: the last frame, the last list, and the thing spoken of. A name that matched nothing is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.agent.planner.decisions import Decision, Reason, ask
from sentinel_rag.agent.planner.planner import Planner
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.language.frames import Frame, Reader

_CARRIED = (
    "severity", "min", "status", "title", "owner", "name", "of_kind", "tactic", "product", "order", "limit",
    "kind", "op", "group", "unit", "topic", "class", "incident", "attr",
)  # fmt: skip
_SAYS_WHICH = (
    "name", "incident", "op", "tactic", "title", "severity", "status", "know", "topic", "all", "order",
)  # fmt: skip
_CONTENT = ("name", "incident", "title", "know", "meta", "tactic", "topic", "table", "template")
_NEW_QUESTIONS = ("kind:alert", "kind:incident", "op:summary", "op:priority", "op:trend", "op:compare", "kind:template")
_OF_A_THING = ("attr", "kind", "ask", "op")


@dataclass
class Talk:
    """What the next sentence may lean on."""

    before: Frame | None = None
    rows: Sequence[Mapping[str, Any]] = field(default_factory=list)
    subject: tuple[str, str] = ("", "")
    """The thing spoken of: ("incident", "124"), ("name", "web-03")."""

    def decide(self, planner: Planner, reader: Reader, text: str, now: datetime) -> Decision:
        """What becomes of one sentence of the conversation."""
        completed = self.complete(reader.read(text))
        return completed if isinstance(completed, Decision) else planner.decide(completed, now)

    def complete(self, frame: Frame) -> Frame | Decision:
        """The frame with what it points at, or a question back."""
        frame = frame.copy()
        places = self._places(frame)
        if places == [1] and frame.has("kind:alert", "kind:incident") and (not self.rows or frame.has("incident")):
            frame.tell("order", "oldest")
            frame.tell("singular", "one")
            frame.features.pop("ref", None)
            return frame
        if places:
            return self._pointed(frame, places[0])
        if self.before is None:
            lost = frame.has("ref") and not frame.window and not frame.has(*_SAYS_WHICH)
            return ask(frame, Reason.WHICH_THING) if lost else frame
        pointing = frame.has("ref") and not frame.has("name", "incident")
        if frame.has("follow") or pointing or self._elliptic(frame):
            return self._merged(frame)
        return frame

    def remember(self, frame: Frame, rows: Sequence[Mapping[str, Any]], *, found: bool = True) -> None:
        """What was asked and came back; a question whose name matched nothing leaves no name behind."""
        self.rows = rows
        self.before = frame.copy()
        if not found:
            for type_ in ("name", "of_kind", "title"):
                self.before.features.pop(type_, None)
            self.subject = ("", "")
            return
        for type_ in ("incident", "name"):
            if len(frame.all(type_)) == 1:
                self.subject = (type_, frame.all(type_)[0])
                return
        self.subject = ("", "")
        if len(rows) == 1 and "number" in rows[0]:
            self.subject = ("incident", str(rows[0]["number"]))

    def _places(self, frame: Frame) -> list[int]:
        """Places of the last list that the sentence points at, from 1; -1 is the last."""
        places = [int(value) for value in frame.all("ref") if value.lstrip("-").isdigit()]
        places += [int(item.strip("[]")) for item in frame.all("item")]
        numbers = frame.all("num")
        if self.before is not None and numbers and not frame.has("kind", "name", "attr", "cmp", "unit"):
            if self.before.has("incident") or int(numbers[0]) > len(self.rows):
                frame.tell("incident", numbers[0])
                frame.features["num"] = []
            elif self.rows:
                places.append(int(numbers[0]))
                frame.features["num"] = []
        return places

    def _pointed(self, frame: Frame, place: int) -> Frame | Decision:
        """The frame about one row of the list."""
        at = place - 1 if place > 0 else place
        if not self.rows or not -len(self.rows) <= at < len(self.rows):
            return ask(frame, Reason.NO_SUCH_ROW)
        if frame.has("rel:after") and frame.around is None:
            return ask(frame, Reason.HOW_LONG)
        row = self.rows[at]
        frame.features.pop("ref", None)
        if "number" in row:
            frame.tell("incident", str(row["number"]))
        elif "name" in row and "kind" in row:
            frame.tell("name", str(row["name"]))
            frame.tell("of_kind", str(row["kind"]))
            frame.kinds[str(row["name"])] = (str(row["kind"]),)
        elif "alert_id" in row:
            if frame.around is not None:
                frame.window = _around(str(row["time"]), frame.around)
            else:
                frame.tell("incident", str(row["alert_id"]))
        return frame

    def _elliptic(self, frame: Frame) -> bool:
        """True for a sentence of filters, times or attributes alone."""
        return not frame.has(*_CONTENT, *_NEW_QUESTIONS)

    def _merged(self, frame: Frame) -> Frame:
        before = self.before
        assert before is not None
        frame.kinds, frame.whole = before.kinds | frame.kinds, before.whole | frame.whole
        lists = frame.has("kind:alert", "kind:incident")
        if lists and before.has("kind:alert", "kind:incident", "incident", "name"):
            # "Its alerts", "any incident for that host": the thing stays, the question is a new one.
            for type_ in ("incident", "name", "of_kind"):
                if not frame.has(type_):
                    for value in before.all(type_):
                        frame.tell(type_, value)
            if frame.has("name", "incident", "status", "severity"):
                frame.features.pop("ref", None)
                return frame
        ranked = frame.has("kind") and before.has("op:top")
        told = {type_ for type_ in _CARRIED if frame.has(type_) and type_ != "op"}
        told |= {"of_kind", "incident"} if "name" in told else set()
        told |= {"min"} if "severity" in told else set()
        told |= {"kind"} if ranked else set()
        if frame.has("attr", "kind") and before.has("incident"):
            told |= {"attr", "status", "severity"}
        for type_ in _CARRIED:
            if type_ not in told:
                for value in before.all(type_):
                    frame.tell(type_, value)
        if not lists and before.has("kind:alert", "kind:incident") and not ranked:
            for value in before.all("kind"):
                if value in ("alert", "incident"):
                    frame.tell("kind", value)
        if frame.has("all"):
            frame.features["limit"] = []
        frame.window = frame.window or before.window
        frame.features.pop("ref", None)
        return frame


_KINDS = {"query_incidents": "incident", "query_alerts": "alert"}
_FEATURES = {
    "severity": "severity", "min_severity": "min", "status": "status", "title_contains": "title", "owner": "owner",
    "name_contains": "title", "entity": "name", "entity_kind": "of_kind", "order": "order", "limit": "limit",
    "product": "product", "tactic": "tactic", "incident": "incident", "kind": "kind",
}  # fmt: skip
"""Arguments of calls, with the features that they stand for."""
_OF_THE_WINDOW = ("time_window", "start_time", "end_time")


def frame_of(tool: str, arguments: Mapping[str, Any]) -> Frame:
    """The frame that a call answers, for what the next sentence leaves out."""
    frame = Frame("")
    if tool in _KINDS:
        frame.tell("kind", _KINDS[tool])
    if tool == "get_top_entities":
        frame.tell("op", "top")
    for name, value in arguments.items():
        if name in _FEATURES and isinstance(value, str | int):
            frame.tell(_FEATURES[name], str(value))
    frame.window = {name: str(arguments[name]) for name in _OF_THE_WINDOW if name in arguments}
    return frame


def _around(moment: str, width: timedelta) -> dict[str, str]:
    at = datetime.fromisoformat(moment)
    return {"start_time": format_time(at - width), "end_time": format_time(at + width)}
