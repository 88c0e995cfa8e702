"""How the rows of a decision's calls are shown, and which fields of them are asked for: tables over frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.agent.planner.plan import WITHOUT, View, counted
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import Item, Sense
from sentinel_rag.language.text import toml_beside

SIDE_BY_SIDE = ("op:compare", "attr:worse", "both", "not", "know:similar", "compare")
"""What holds two incidents beside each other."""
_SHARED = ("both", "compare:shared")
_OF_ITSELF = {
    "account": ("account", "mailbox", "sender"), "ip": ("ip",), "host": ("host",), "url": ("url", "domain"),
    "domain": ("domain", "url"), "file": ("file", "process"), "filehash": ("filehash",), "process": ("process", "file"),
}  # fmt: skip
"""Words of kinds that name a thing of those kinds again ("host dc-01"), and ask for nothing more of it."""


def shown(frame: Frame, tools: Sequence[str], view: View | None) -> tuple[View | None, tuple[str, ...]]:
    """The view of the results of `tools`, and the fields asked for; `view` is that of the row, where it tells one."""
    if view is not None:
        return view, _aspects_of(view, frame)
    if tools[0] not in _table("tool"):
        return None, ()
    view = View(_table("tool")[tools[0]])
    match view:
        case View.INCIDENT if frame.has("attr:analysis"):
            view = View.ANALYSIS
        case View.INCIDENT if frame.has("alert"):
            view = View.ALERT
        case View.INCIDENT if len(tools) > 1 and (frame.has(*SIDE_BY_SIDE) or not frame.has("attr", "kind")):
            view = View.COMPARISON
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
        case View.NEIGHBOUR:
            at = next(item for item in frame.items if item.sense("relation"))
            behind = [item.text for item in frame.items if item.start >= at.end and not _of_the_place(item)]
            return str(frame.one("relation")), " ".join(behind)
        case View.ALERTS:
            fields = _told(frame, "alert")
            narrowed = frame.has("title", "name", "incident")
            return ("fields", *fields) if fields and narrowed else ()
        case View.TOP if frame.has("not:except"):
            return tuple(f"{WITHOUT}{name}" for name in frame.all("name"))
        case View.INCIDENTS if frame.has("attr:ids"):
            return ("ids",)
        case View.INCIDENTS if frame.has("title"):
            return _fields(frame)
        case _:
            return ()


def _fields(frame: Frame) -> tuple[str, ...]:
    """The fields of one incident; none where all of it is asked for. A state that is a filter is no field."""
    found = _told(frame, "incident")
    if not frame.has("incident"):
        # Of a list, a status or a severity says which rows are meant.
        asked = {name for feature, name in _table("incident").items() if ":" in feature and frame.has(feature)}
        found = tuple(each for each in found if each in asked)
    fields = [each for each in found if not each.startswith("entities:")]
    about = ("everything",) if frame.has("attr:detail") and len(found) > len(fields) else ()
    if frame.has("attr:reason") and not frame.has("status:Closed", "class"):
        # Why it is closed stands in its row; why it has its severity does not.
        found = tuple("why" if each == "severity" else each for each in found if each != "reason" or len(found) == 1)
    if frame.has("ask:when") and frame.has("status:Closed"):
        found = tuple("closed" if each == "status" else each for each in found)
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


def _of_the_place(item: Item) -> bool:
    """True for words that say in which incident, and for those that mean nothing by themselves."""
    return item.silent or item.text.lstrip("#").isdecimal() or item.sense("kind", _INCIDENT) is not None


_INCIDENT, _ROWS = frozenset({"incident"}), frozenset({"incident", "alert"})


def asked_properties(frame: Frame) -> tuple[str, ...]:
    """Labels of what is asked for, in the order of the words behind the last one that asks; the first is meant."""
    table = _table("property")
    starts = [0, *(item.end for place, item in enumerate(frame.items) if _asks(frame, place))]
    for start in reversed(starts):
        behind = [item for item in frame.items if item.start >= start]
        said = [(f"{sense[0]}:{sense[1]}", item) for item in behind for sense in _asked_senses(item)]
        found = [(table[one], one, item) for one, item in said if one in table]
        noun = next((item for item in behind if item.sense("kind") or item.sense("prop") or item.sense("that")), None)
        if start and noun is not None and noun.sense("kind", _ROWS) is not None:
            return ()  # an alert is asked for, not a thing of one
        if len(found) > 1 and found[1][1].startswith("prop:") and found[1][2].start <= found[0][2].end + 3:
            found = found[1:]  # of "account SID" the SID is meant
        who = start and any(item.end == start and item.sense("ask", _WHO) for item in frame.items)
        if found or who:
            labels = [label for label, _, _ in found]
            first = [label for label in labels if label in _OF_A_PERSON] or ["account"] if who else []
            return tuple(dict.fromkeys((*first, *labels)))
    return ()


def asks_for_several(frame: Frame) -> bool:
    """True if the word for what is asked for stands in the plural: "which hosts", "what are the URLs"."""
    asked = asked_properties(frame)[:1]
    several = [item for item in frame.items if item.sense("plural") is not None]
    return any(label_of(sense) in asked for item in several for sense in item.senses) and not frame.has("one_of")


def _asked_senses(item: Item) -> list[Sense]:
    """The senses of a word in which it may be asked for, a sort of file before a kind of thing."""
    # "The address" may point at one that was spoken of; here it is a kind of thing as any other.
    senses = [("kind", value) if type_ == "that" else (type_, value) for type_, value in item.senses]
    return sorted((s for s in senses if s[0] in _PROPERTIES), key=lambda sense: _PROPERTIES.index(sense[0]))


def label_of(sense: Sense) -> str:
    """The label of the property that a word means; empty for another word."""
    return _table("property").get(f"{'kind' if sense[0] == 'that' else sense[0]}:{sense[1]}", "")


_PROPERTIES = ("sort", "prop", "kind")
_OF_A_PERSON = ("SID", "UPN", "email address", "Entra object id", "display name", "sender")
_WHO, _WHICH, _DETAIL = frozenset({"who"}), frozenset({"who", "what"}), frozenset({"detail"})


def _asks(frame: Frame, place: int) -> bool:
    """True for a word that asks; "which" and "who" inside a clause, and verbs of showing, tell something there."""
    item = frame.items[place]
    if item.sense("attr") is not None and item.sense("op") is None:
        return item.sense("attr", _DETAIL) is not None
    if item.sense("op", frozenset({"list"})) is None and item.sense("ask", _WHICH) is None:
        return False
    opens = frame.text[: item.start].rstrip()[-1:] in ("", *",;:.?!")
    before = next((one for one in reversed(frame.items[:place]) if not one.silent), None)
    follows = before is not None and (before.sense("op", frozenset({"list"})) is not None or before.type == "modal")
    asks_plainly = item.sense("ask") is not None and item.sense("relative") is None
    return opens or asks_plainly or follows or before is None


def _told(frame: Frame, table: str) -> tuple[str, ...]:
    """What a table calls the features of the frame, in the table's order."""
    return tuple(dict.fromkeys(name for feature, name in _table(table).items() if frame.has(feature)))


def _data() -> Mapping[str, Mapping[str, str]]:
    return toml_beside(__package__, "views.toml")


def _table(name: str) -> Mapping[str, str]:
    return _data()[name]


def _tells() -> Mapping[str, Sequence[str]]:
    return _data()["tells"]
