"""One renderer for all views: the lines and tables of `views.toml`, filled with facts that point into one result.

A line's `{verb path}` takes a fact (`n` a number, `q` a name in quotation marks, `x` an identifier, `t` a time, `w` a
longer text, `d` a duration, `a` how long ago, `#` how many a list holds; `n*` and the like each element of a list),
`{one|many}` goes by the number before it. A path is below the thing told of, `/` begins at the result, `^` at the thing
above; `a|b` is the first that is there, `list/*/name` each distinct value. What data cannot say is a block of code:
`@name`. A line that begins with `& ` stands in the paragraph of the one before it; a table with `folded` is shown on
demand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.agent.answers.writer import EMPTY_CELL, AnswerWriter, Echo, Fact, Part, part_of, phrase
from sentinel_rag.agent.planner import Option, offer
from sentinel_rag.agent.planner.decisions import Plan, View, listed
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, ENTITY, INCIDENT, ListItem, alert_item, entity_item, incident_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome, Picture
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryResult, format_time, note_code
from sentinel_rag.language.text import toml_beside

_SLOT = re.compile(r"\{([^{}]*)\}")
_MOST_JOINED = 12
_NOTHING: tuple[Any, ...] = (None, "", [], {}, ())
NO_PLAN = Plan(view=View.KQL, calls=())
Lines = Sequence[str | Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedView:
    """What a view hands back beside the text. `items` continue the list from `first`; `incident`, `alert` and `entity`
    become the focus where set."""

    outcome: Outcome = Outcome.ANSWERED
    items: tuple[ListItem, ...] = ()
    first: int = 0
    incident: str | None = None
    alert: ListItem | None = None
    entity: ListItem | None = None
    offers: tuple[Option, ...] = ()
    suggestions: tuple[str, ...] = ()


def view_data() -> Mapping[str, Any]:
    """What `views.toml` tells."""
    return toml_beside(__package__, "views.toml")


def escape(key: str) -> str:
    """A key as a token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def elements(run: ToolRun, pointer: str) -> Sequence[Any]:
    """The list at a pointer; empty where there is none."""
    found = run.at(pointer)
    return found if isinstance(found, list | tuple) else ()


@dataclass(slots=True)
class Scene:
    """One result on its way into an answer. `at` is the thing told of, `above` the one that holds it; `parts` are what
    code gives to the lines by name."""

    writer: AnswerWriter
    run: ToolRun
    plan: Plan = NO_PLAN
    at: str = "/rows/0"
    above: str = "/rows/0"
    parts: Mapping[str, Part] = field(default_factory=dict)
    items: list[ListItem] = field(default_factory=list)

    def inside(self, pointer: str) -> Scene:
        """The scene of a thing inside this one; its items are the same list."""
        return replace(self, at=pointer, above=self.at)

    def pointer(self, path: str) -> str:
        """Where a path leads; of several the first that holds something, else the last."""
        pointer = ""
        for each in path.split("|"):
            base = "" if each.startswith("/") else f"{self.above}/" if each.startswith("^") else f"{self.at}/"
            pointer = (base + each.lstrip("^")).rstrip("/")
            if self.run.at(pointer) not in (None, ""):
                break
        return pointer

    def pointers(self, path: str) -> list[str]:
        """Where a path with `*` leads: each distinct value once."""
        base, star, rest = path.partition("/*")
        root = self.pointer(base)
        if not star:
            return [f"{root}/{place}" for place in range(len(elements(self.run, root)))]
        found = [f"{root}/{place}{rest}" for place in range(len(elements(self.run, root)))]
        distinct = {str(self.run.at(each)): each for each in reversed(found) if self.run.at(each) not in _NOTHING}
        return list(reversed(distinct.values()))

    def holds(self, condition: str | Sequence[str]) -> bool:
        """True if every term of a condition holds; of several conditions one."""
        if not isinstance(condition, str):
            return any(map(self.holds, condition))
        return all(map(self._term, condition.split()))

    def _term(self, term: str) -> bool:
        if term.startswith("!"):
            return not self._term(term[1:])
        if term == "empty":
            return is_empty(self.run)
        kind, colon, name = term.partition(":")
        match kind if colon else "":
            case "frame":
                return self.plan.frame.has(name)
            case "aspect":
                return name in self.plan.aspects
            case "given":
                return name in self.parts
            case "arg":
                name, equals, value = name.partition("=")
                given = self.run.call.arguments.get(name)
                return str(given) == value if equals else given is not None
        path, equals, value = term.partition("=")
        if equals:
            wanted = self.run.at(self.pointer(value)) if value.startswith(("^", "/")) else value
            return str(self.run.at(self.pointer(path))) == str(wanted)
        path, more, count = term.partition(">")
        if more:
            return len(elements(self.run, self.pointer(path))) > int(count)
        return bool(self.pointers(path)) if "/*" in path else self.run.at(self.pointer(path)) not in (*_NOTHING, False)


# --- lines


def tell(scene: Scene, lines: Lines) -> None:
    """Write lines, tables and blocks in their order."""
    for line in lines:
        _told(scene, line)


def _told(scene: Scene, line: str | Mapping[str, Any]) -> bool:
    """Write one line, the first of several that holds, a line for each of a list, or a table; False if it is empty."""
    if isinstance(line, str):
        return _say(scene, {}, line)
    told = scene.holds(line["if"]) if "if" in line else True
    if told and "choose" in line:
        return any(_told(scene, each) for each in line["choose"])
    if told and "pick" in line:
        places = _chosen(scene, line["pick"], line)[:1]
        told, scene = bool(places), scene.inside(places[0]) if places else scene
    if told and "each" in line:
        places = _chosen(scene, line["each"], line)
        told = bool(places)
        for place in places:
            _say(scene.inside(place), line, line["say"])
    elif told and "table" in line:
        told = _table(scene, line)
    elif told:
        said = _listed(line.get("say", line.get("nothing")))
        told = sum([_say(scene, line, each) for each in said]) > 0 or len(said) > 1
    if not told and "none" in line:
        scene.writer.say_compared([(scene.run, scene.at)], line["none"])
    elif not told and "else" in line:
        tell(scene, _listed(line["else"]))
    return told


def _listed(lines: Any) -> Lines:
    return [lines] if isinstance(lines, str | Mapping) else lines


def _say(scene: Scene, line: Mapping[str, Any], template: str | Mapping[str, Any]) -> bool:
    """One line, or a block of code; False if a list in it is empty."""
    if not isinstance(template, str):
        return _told(scene, template)
    if template.startswith("& "):
        begun = len(scene.writer.lines)
        told = _say(scene, line, template[2:])
        scene.writer.goes_on(begun)
        return told
    if template.startswith("@"):
        name, _, argument = template[1:].partition(" ")
        if name in BLOCKS:
            BLOCKS[name](scene, argument)
        else:
            tell(scene, view_data()["field"][name])
        return True
    filled = _filled(scene, template)
    if filled is None:
        return False
    text, parts = filled
    if "nothing" in line:
        scene.writer.say_none([scene.run], text, *parts)
    elif "cites" in line:
        scene.writer.say_compared([(scene.run, scene.pointer(line["cites"]) if line["cites"] else "")], text, *parts)
    elif parts:
        scene.writer.say(text, *parts)
    else:
        scene.writer.fixed(text)
    return True


def _filled(scene: Scene, template: str) -> tuple[str, list[Part]] | None:
    """The template for the writer with its parts; None if one of its lists is empty."""
    parts: list[Part] = []

    def slot(match: re.Match[str]) -> str:
        said = match[1]
        verb, _, path = said.partition(" ")
        if said == "filters":
            text, echoes = filters_shown(scene.run)
            parts.extend(echoes)
            return f" ({text})" if text else ""
        if said.startswith("="):
            parts.append(scene.parts[said[1:]])
        elif "|" in said and verb.rstrip("*") not in (*_VERBS, "arg", "word", "total", "counts"):
            number = next((each.text for each in reversed(parts) if isinstance(each, Fact)), "")
            return said.split("|")[number != "1"]
        else:
            parts.append(_part(scene, verb, path))
        return "{}"

    text = _SLOT.sub(slot, template)
    return None if [] in parts else (text, parts)


def _part(scene: Scene, verb: str, path: str) -> Part:
    """The fact, the facts or the echo of one slot."""
    writer, run = scene.writer, scene.run
    if verb in ("arg", "word"):
        return Echo(str(run.call.arguments.get(path, "")), word=verb == "word")
    if verb == "total":
        return total_of(writer, run)
    if verb == "counts":
        path, _, limit = path.partition(":")
        return count_facts(writer, run, scene.pointer(path), int(limit) if limit else None)
    path, _, limit = path.partition(":")
    if verb.endswith("*"):
        show = _VERBS[verb[0]]
        return [show(writer, run, each, limit) for each in scene.pointers(path)[: int(limit or _MOST_JOINED)]]
    return _VERBS[verb](writer, run, scene.pointer(path), limit)


_VERBS: Mapping[str, Callable[[AnswerWriter, ToolRun, str, str], Fact]] = {
    "n": lambda writer, run, at, _: writer.number(run, at),
    "q": lambda writer, run, at, _: writer.name(run, at),
    "x": lambda writer, run, at, limit: writer.exact(run, at, limit=int(limit or 600)),
    "t": lambda writer, run, at, _: writer.time(run, at),
    "w": lambda writer, run, at, limit: writer.words(run, at, limit=int(limit or 600)),
    "d": lambda writer, run, at, _: writer.duration(run, at),
    "a": lambda writer, run, at, _: writer.age(run, at),
    "#": lambda writer, run, at, _: writer.count(run, at),
}  # fmt: skip


def _chosen(scene: Scene, path: str, line: Mapping[str, Any]) -> list[str]:
    """The places of a list that a line or a table tells of: filtered, in order, the first or the most."""
    root = scene.pointer(path)
    places = [f"{root}/{place}" for place in range(len(elements(scene.run, root)))]
    if "where" in line:
        places = [place for place in places if scene.inside(place).holds(line["where"])]
    order = line.get("order") or line.get("least") or line.get("greatest")
    if order:
        keyed = [(_sortable(scene.run.at(scene.inside(place).pointer(order))), place) for place in places]
        told = sorted((each for each in keyed if each[0][1]), key=lambda each: each[0], reverse="greatest" in line)
        places = [place for _, place in told]
    return places[line.get("from", 0) : line.get("most")]


def _sortable(value: Any) -> tuple[float, str]:
    return (float(value), "number") if isinstance(value, int | float) else (0.0, str(value or ""))


# --- tables


def _table(scene: Scene, spec: Mapping[str, Any], places: Sequence[str] | None = None) -> bool:
    """A table of the rows at `rows`; numbered where a column is `#`, whose things the conversation can refer to."""
    spec = {**view_data()["table"][spec["like"]], **spec} if "like" in spec else spec
    writer, run, base = scene.writer, scene.run, scene.pointer(spec.get("rows", "/rows"))
    every = len(elements(run, base))
    places = _chosen(scene, base, spec) if places is None else places
    if not places and "rows" in spec:
        return False
    columns = [(head, *_column(told)) for head, told in spec["columns"].items()]
    shown = [each for each in columns if scene.holds(each[3])]
    numbered = shown[0][1] == "#"
    if spec.get("by_workspace") and workspace_column(run):
        shown.insert(int(numbered), ("Workspace", "", "workspace", ""))
    start = (scene.plan.first if spec.get("paged") else 0) + writer.listed + 1
    writer.listed += len(places) if numbered else 0
    rows = [
        [_cell(scene.inside(place), number, verb, path) for _, verb, path, _ in shown]
        for number, place in enumerate(places, start=start)
    ]
    title = spec.get("first_of_many", spec["table"]) if len(places) < every else spec["table"]
    folded, picture = bool(spec.get("folded")), Picture(spec.get("picture", ""))
    writer.table(title, [_head(scene, each[0]) for each in shown], rows, folded=folded, picture=picture)
    if "items" in spec:
        scene.items += [_item(scene, spec["items"], place) for place in places]
    return True


def table_of(scene: Scene, name: str, places: Sequence[int], title: str = "") -> None:
    """A table of `[table.name]` with some rows only."""
    _table(scene, {"like": name, "table": title}, [f"/rows/{place}" for place in places])


def _head(scene: Scene, head: str) -> str:
    return str(scene.run.call.arguments.get(head[1:-1], "")).capitalize() if head.startswith("{") else head


def _column(told: str) -> tuple[str, str, str]:
    """(verb, path with limit, condition) of a column."""
    told, _, condition = told.partition(" ?")
    verb, space, path = told.partition(" ")
    return (verb, path, condition) if space else ("#", "", condition) if verb == "#" else ("", verb, condition)


def _cell(scene: Scene, number: int, verb: str, path: str) -> Fact:
    writer, run = scene.writer, scene.run
    path, _, limit = path.partition(":")
    if verb == "#":
        return Fact(f"[{number}]")
    if verb == "s":
        return _short_names(scene, path)
    if verb == "yes":
        return Fact("yes" if run.at(scene.pointer(path)) else "no")
    if "/*" in path:
        base, _, rest = path.partition("/*")
        root = scene.pointer(base)
        found = [f"{root}/{at}{rest}" for at in range(min(len(elements(run, root)), _MOST_JOINED))]
        return (
            phrase("{}", [writer.cell(run, at, limit=int(limit or 120)) for at in found]) if found else Fact(EMPTY_CELL)
        )
    pointer = scene.pointer(path)
    if verb == "t":
        return writer.time_cell(run, pointer)
    return writer.cell(run, pointer, limit=int(limit or 120))


def _short_names(scene: Scene, kind: str) -> Fact:
    """The entities of one kind that an alert names, each once, without the domain that most of them share."""
    root = scene.pointer("entities")
    found: dict[str, str] = {}
    for place, entity in enumerate(elements(scene.run, root)):
        if isinstance(entity, Mapping) and entity.get("kind") == kind and entity.get("name"):
            found.setdefault(_without_domain(str(entity["name"])), f"{root}/{place}/name")
    facts = [part_of(scene.run, at, plain(name, limit=40)) for name, at in found.items()]
    return phrase("{}", facts[:_MOST_JOINED]) if facts else Fact(EMPTY_CELL)


def _without_domain(name: str) -> str:
    """`anna` of `anna@example.com`, `srv-1` of `srv-1.example.com`; an address as it stands."""
    person, at, _ = name.partition("@")
    first, dot, rest = name.partition(".")
    return person if at and person else first if dot and first and not rest.replace(".", "").isdigit() else name


def _item(scene: Scene, kind: str, place: str) -> ListItem:
    """A row as a thing that the conversation can refer to; incidents by their GUID where numbers may repeat."""
    run, row = scene.run, scene.run.at(place)
    if not isinstance(row, Mapping):
        raise TypeError(f"{place} is no row")
    if kind == INCIDENT:
        return incident_item(row, by_guid=bool(workspace_column(run)))
    if kind == ENTITY:
        return entity_item(str(run.call.arguments.get("kind")), str(row.get("name")))
    return alert_item(row, incident=str(run.at(f"{scene.at}/number") or ""))


# --- views


def render(writer: AnswerWriter, plan: Plan, run: ToolRun, name: str, **parts: Part) -> RenderedView:
    """One result as `[view.name]` says."""
    spec, scene = view_data()["view"][name], Scene(writer, run, plan, parts=parts)
    if "empty" in spec and (scene.holds(spec["empty_if"]) if "empty_if" in spec else is_empty(run)):
        noun = spec["empty"] if spec["empty"] != "kind" else view_data()["plural"].get(str(run.call.arguments["kind"]))
        tell(scene, spec.get("before_empty", ()))
        return compose_empty(writer, plan, run, noun or f"{run.call.arguments['kind']} entities")
    for ending in spec.get("ends", ()):
        if scene.holds(ending["if"]):
            tell(scene, ending["lines"])
            return _composed(scene, {"outcome": "no_data", **ending})
    tell(scene, spec["lines"])
    return _composed(scene, spec)


def _composed(scene: Scene, spec: Mapping[str, Any]) -> RenderedView:
    items, run = tuple(scene.items), scene.run
    only = items[0] if len(items) == 1 and spec.get("focus") else None
    incident = run.call.arguments.get("incident") if spec.get("focus") == ALERT or "incident_asked" in spec else None
    if only is not None and incident is None:
        incident = only.value if only.kind == INCIDENT else only.incident or None
    if "incident" in spec:
        incident = run.at(spec["incident"])
    suggestions = [
        each if isinstance(each, str) else each["say"]
        for each in spec.get("suggest", ())
        if isinstance(each, str) or scene.holds(each["if"])
    ]
    enough = len(items) >= spec.get("suggest_from", 0)
    first = items[0].value if items else ""
    lacks = not items and "items_needed" in spec
    return RenderedView(
        outcome=Outcome.NO_DATA if lacks else Outcome(spec.get("outcome", "answered")),
        items=items,
        first=scene.plan.first if items else 0,
        incident=None if incident is None else str(incident),
        alert=only if only is not None and only.kind == ALERT else None,
        entity=only if only is not None and only.kind == ENTITY else None,
        suggestions=tuple(each.replace("{first}", first) for each in suggestions) if enough else (),
    )


# --- what a result covers

_WINDOW_NAMES = ("time_window", "start_time", "end_time")
_ENUMERATED = frozenset({"severity", "min_severity", "status", "tactic", "time_field"})


def say_window(writer: AnswerWriter, run: ToolRun) -> None:
    """One line that tells which time the answer covers."""
    tell(Scene(writer, run), ["@window"])


def say_partial(writer: AnswerWriter, run: ToolRun, aspects: Sequence[str] = ()) -> None:
    """A warning where the service cut the result, and the notes that the tool's code wrote. Of a note that the tools
    explain at length the beginning; none of one about other fields than `aspects`, those that were asked for."""
    tell(Scene(writer, run), ["@cut"])
    codes, folded = view_data()["notes"], []
    for place, note in enumerate(() if run.result is None else run.result.notes):
        code = note_code(note)
        if code in codes["folded"]:
            folded.append([writer.cell(run, f"/notes/{place}", limit=600)])
            continue
        about = codes["brief"].get(code)
        if about is None:
            writer.note(run, place)
        elif not aspects or {*about} & {*aspects}:
            writer.note(run, place, brief=True)
    if folded:
        writer.table("Notes", ("Note",), folded, folded=True)


def filters_shown(run: ToolRun) -> tuple[str, list[Echo]]:
    """A template and its parts that repeat the filters of a call: "severity {}, status {}"."""
    filters = view_data()["filters"]
    names = [name for name in filters if name in run.call.arguments]
    parts = [Echo(str(run.call.arguments[name]), word=name in _ENUMERATED) for name in names]
    return ", ".join(filters[name] for name in names), parts


def total_of(writer: AnswerWriter, run: ToolRun) -> Fact:
    """How many rows match in all; how many at least, where a part of the rows or of their counts is missing."""
    if run.at("/coverage/rows_total") is not None:
        return writer.number(run, "/coverage/rows_total")
    bound = "/summary/at_least" if run.at("/summary/at_least") else "/coverage/rows_returned"
    return phrase("at least {}", writer.number(run, bound))


def count_facts(writer: AnswerWriter, run: ToolRun, pointer: str, most: int | None = None) -> list[Fact]:
    """ "High 3, Medium 1" from a mapping of names to counts; of the `most` largest where that is given."""
    counts = run.at(pointer)
    named = [name for name, count in counts.items() if count] if isinstance(counts, Mapping) else []
    if most is not None and isinstance(counts, Mapping):
        named = sorted(named, key=lambda name: -int(str(counts[name])))[:most]
    return [phrase("{} {}", Fact(name), writer.number(run, f"{pointer}/{escape(name)}")) for name in named]


def event_time(run: ToolRun, at: str) -> str:
    """Pointer to the time of the event that the alert at `at` tells of: lists of alerts are in this order."""
    return f"{at}/start_time" if run.at(f"{at}/start_time") else f"{at}/time"


def workspace_column(run: ToolRun) -> bool:
    """True if rows come from several workspaces, so that a column tells each row's."""
    return any("workspace" in row for row in run.rows)


def is_empty(run: ToolRun) -> bool:
    """True if nothing matched at all."""
    return not run.rows and not run.at("/coverage/rows_total")


def compose_empty(writer: AnswerWriter, plan: Plan, run: ToolRun, noun: str) -> RenderedView:
    """Nothing matched: says so, with filters and window, whether the table has rows at all, and what to try."""
    scene = Scene(writer, run, plan, parts={"noun": Fact(noun)})
    if run.at("/coverage/partial") and run.at("/coverage/rows_total") is None:
        tell(scene, ["@unknown", "@window", "@partial"])
        return RenderedView(outcome=Outcome.NO_DATA)
    tell(scene, ["@empty"])
    say_partial(writer, run)
    if run.at("/coverage/table_rows") == 0:
        tell(scene, ["@no_rows", "@fill"])
        return RenderedView(outcome=Outcome.NO_DATA, suggestions=("What data do you have?",))
    arguments = dict(run.call.arguments)
    unbounded = {name: value for name, value in arguments.items() if name not in _WINDOW_NAMES}
    wider: list[tuple[str, dict[str, JsonValue]]] = []
    if run.result is not None and run.result.coverage.table_newest:
        tell(scene, ["@holds_rows"])
        if len(unbounded) < len(arguments):
            wider += _other_windows(run.result, unbounded, noun)
    for name, label in view_data()["removable"].items():
        if name in arguments and not (name == "status" and arguments.get("time_field") == "closed"):
            without = {key: value for key, value in arguments.items() if key != name}
            wider.append((f"The same without the filter on {label}", without))
    if plan.section:  # numbers would not say which workspace's offer is meant
        return RenderedView(outcome=Outcome.NO_DATA)
    offers = tuple(offer(text, run.call.tool_name, given, listed(plan.view)) for text, given in wider)
    if offers:
        tell(scene, ["@look_further"])
        say_numbered(writer, offers)
    return RenderedView(outcome=Outcome.NO_DATA, offers=offers, suggestions=tuple(each.text for each in offers))


def say_numbered(writer: AnswerWriter, offers: Sequence[Option]) -> None:
    """What could be asked instead, numbered."""
    for place, option in enumerate(offers, start=1):
        writer.offer(f"[{place}] {option.text}")


def _other_windows(
    result: QueryResult, unbounded: dict[str, JsonValue], noun: str
) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """The window in which the rows are, and one as long as that asked for, up to the newest row."""
    coverage, window = result.coverage, result.coverage.window
    assert coverage.table_newest is not None
    end = coverage.table_newest + timedelta(seconds=1)
    if coverage.table_oldest is not None:
        text = f"Show {noun} between {_short(coverage.table_oldest)} and {_short(end)}, where the rows are"
    else:
        text = f"Show {noun} over all retained data"
    yield text, unbounded
    if window.start is not None and window.end is not None and window.end - window.start <= timedelta(days=31):
        start = end - (window.end - window.start)
        text = f"Show {noun} between {_short(start)} and {_short(end)}, as long a window up to the newest row"
        yield text, {**unbounded, "start_time": format_time(start), "end_time": format_time(end)}


def _short(moment: datetime) -> str:
    """An ISO time to the second, for a question that the grammar reads again."""
    return format_time(moment.replace(microsecond=0))


# --- blocks: what the data cannot say


def _say_shown(scene: Scene, _: str) -> None:
    """How many rows of how many are shown, where it is not all of them; `first` stood on pages before."""
    writer, run, first, total = scene.writer, scene.run, scene.plan.first, total_of(scene.writer, scene.run)
    known = run.at("/coverage/rows_total")
    if known == len(run.rows) and not first:
        return
    shown = writer.number(run, "/coverage/rows_returned")
    if known is None and not first:
        writer.say("Rows shown: {}; how many match in all was not told.", shown)
    elif first:
        writer.say("Rows shown: {} of {}, from {} on.", shown, total, Fact(f"[{first + 1}]"))
    else:
        writer.say("Rows shown: {} of {}.", shown, total)


def _say_unowned(scene: Scene, _: str) -> None:
    """How many of the open incidents nobody has taken, where the list is whole."""
    run = scene.run
    if run.at("/coverage/rows_total") != len(run.rows):
        return
    free = [(run, f"/rows/{at}") for at, row in enumerate(run.rows) if not row.get("owner") and _is_open(row)]
    if free:
        scene.writer.say("Open and without an owner: {}.", scene.writer.tally(free))


def _is_open(row: Mapping[str, JsonValue]) -> bool:
    return row.get("status") in ("New", "Active")


def _say_workspaces(scene: Scene, _: str) -> None:
    """How many rows match in each workspace, of a question to all of them."""
    totals = scene.run.at("/summary/by_workspace")
    if isinstance(totals, Mapping):
        facts = [(name, scene.writer.number(scene.run, f"/summary/by_workspace/{name}/rows_total")) for name in totals]
        told = [phrase("{} {}", Fact(name), fact if fact.values else Fact("unknown")) for name, fact in facts]
        scene.writer.say("By workspace: {}.", told)


def _say_fill(scene: Scene, _: str) -> None:
    """How rows come into a workspace that has none; once in an answer."""
    text = view_data()["sentence"]["how_to_fill"]
    if not any(text in line.text for line in scene.writer.lines):
        scene.writer.fixed(text)


def _say_counts(scene: Scene, told: str) -> None:
    """Names with their counts as a table: `PICTURE POINTER HEAD TITLE`. A ranking is folded, a share shown as asked."""
    picture, pointer, head, title = told.split(" ", 3)
    counts = scene.run.at(pointer)
    names = [name for name, count in counts.items() if count] if isinstance(counts, Mapping) else []
    rows = [[Fact(name), scene.writer.cell(scene.run, f"{pointer}/{escape(name)}")] for name in names]
    if rows:
        folded = picture == Picture.RANKING
        scene.writer.table(title, (head, "Count"), rows, folded=folded, picture=Picture(picture))


MOST_DETAILS = 40


def _say_details(scene: Scene, path: str) -> None:
    """Custom details: a table of an object's values, or the raw text where it is none."""
    writer, run, at = scene.writer, scene.run, scene.pointer(path)
    details = run.at(at)
    if details and not isinstance(details, Mapping):
        writer.say("Its custom details are no readable JSON; as they stand: {}", writer.words(run, at))
    elif isinstance(details, Mapping) and details:
        rows: list[list[Fact]] = []
        for name in details:
            pointer = f"{at}/{escape(name)}"
            several = isinstance(details[name], list | tuple)
            places = [f"{pointer}/{at}" for at in range(len(elements(run, pointer)))] if several else [pointer]
            rows += [[Fact(name), writer.cell(run, place, limit=300)] for place in places]
        writer.table("Custom details", ("Name", "Value"), rows[:MOST_DETAILS])
        if len(rows) > MOST_DETAILS:
            writer.fixed("Only the first of its custom details are shown.")


BLOCKS: dict[str, Callable[[Scene, str], None]] = {
    "shown": _say_shown,
    "unowned": _say_unowned,
    "counts": _say_counts,
    "workspaces": _say_workspaces,
    "fill": _say_fill,
    "details": _say_details,
    "partial": lambda scene, _: say_partial(scene.writer, scene.run),
}
"""What lines call by `@name`; the modules of special views add theirs."""
