"""How the rows of a decision's calls are shown, and which fields of them are asked for: tables over frames."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from sentinel_rag.agent.planner.plan import View, counted
from sentinel_rag.language.frames import Frame

_SHARED = ("both", "compare:shared")
_OF_ITSELF = {
    "account": ("account", "mailbox", "sender"),
    "ip": ("ip",),
    "host": ("host",),
    "url": ("url", "domain"),
    "domain": ("domain", "url"),
    "file": ("file", "process"),
    "filehash": ("filehash",),
    "process": ("process", "file"),
}
"""Words of kinds that name a thing of those kinds again ("host dc-01"), and ask for nothing more of it."""


def shown(frame: Frame, tools: Sequence[str], view: View | None) -> tuple[View | None, tuple[str, ...]]:
    """The view of the results of `tools`, and the fields asked for; `view` is that of the row, where it tells one."""
    if view is not None:
        return view, _aspects_of(view, frame)
    if tools[0] not in _table("tool"):
        return None, ()
    view = View(_table("tool")[tools[0]])
    match view:
        case View.INCIDENT if frame.has("alert"):
            view = View.ALERT
        case View.INCIDENT if len(tools) > 1:
            view = View.COMPARISON
        case View.INCIDENT if frame.has("attr:analysis"):
            view = View.ANALYSIS
        case View.ALERTS if _properties(frame) and frame.has("name") and not frame.has("kind:alert"):
            view = View.PROPERTY
        case View.ALERTS | View.INCIDENTS if frame.has("op:count") and not frame.has("limit"):
            view = counted(view)
    return view, _aspects_of(view, frame)


def _aspects_of(view: View, frame: Frame) -> tuple[str, ...]:
    match view:
        case View.INCIDENT:
            return _fields(frame)
        case View.COMPARISON:
            side = "minus" if frame.has("not") else "shared" if frame.has(*_SHARED) else ""
            return (*((side,) if side else ()), *(each for each in _fields(frame) if each.startswith("entities:")))
        case View.ALERT:
            belongs = ("incident",) if frame.has("kind:incident") and not frame.has("attr") else ()
            return belongs or tuple(f"attribute:{each}" for each in _properties(frame)[:1])
        case View.PROPERTY:
            return _properties(frame)
        case View.ALERTS:
            fields = _told(frame, "alert")
            narrowed = frame.has("title", "name", "incident")
            return ("fields", *fields) if fields and narrowed else ()
        case View.INCIDENTS if frame.has("title"):
            return _fields(frame)
        case _:
            return ()


def _fields(frame: Frame) -> tuple[str, ...]:
    """The fields of one incident; none where all of it is asked for. A state that is a filter is no field."""
    found = _told(frame, "incident")
    fields = [each for each in found if not each.startswith("entities:")]
    about = ("everything",) if frame.has("attr:detail") and len(found) > len(fields) else ()
    if frame.has("attr:reason") and not frame.has("status:Closed", "class"):
        # Why it is closed stands in its row; why it has its severity does not.
        found = tuple("why" if each == "severity" else each for each in found if each != "reason" or len(found) == 1)
    gone = {one for each in found for one in _tells().get(each, ())}
    return (*about, *(each for each in found if each not in gone), *(f"values:{each}" for each in _labels(frame)))


def _properties(frame: Frame) -> tuple[str, ...]:
    """Labels of what is asked of a thing, those of its properties before those of other things."""
    own = {one for name in frame.all("name") for kind in frame.name_kinds(name)[:1] for one in _OF_ITSELF.get(kind, ())}
    table = _table("property")
    kinds = [f"kind:{kind}" for kind in frame.all("kind") if kind not in own]
    if frame.has("ask:who") and frame.has("rel") and "account" not in own:
        kinds.append("kind:account")
    return tuple(dict.fromkeys((*_labels(frame), *(table[kind] for kind in kinds if kind in table))))


def _labels(frame: Frame) -> tuple[str, ...]:
    """Labels of the properties that are said with a word of their own."""
    table = _table("property")
    return tuple(table[f"prop:{value}"] for value in frame.all("prop") if f"prop:{value}" in table)


def _told(frame: Frame, table: str) -> tuple[str, ...]:
    """What a table calls the features of the frame, in the table's order."""
    return tuple(dict.fromkeys(name for feature, name in _table(table).items() if frame.has(feature)))


@cache
def _data() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files(__package__).joinpath("views.toml").read_text(encoding="utf-8"))


def _table(name: str) -> Mapping[str, str]:
    return _data()[name]


def _tells() -> Mapping[str, Sequence[str]]:
    return _data()["tells"]
