"""What was calculated over the rows of calls: a figure, a small table, or the rows that were chosen, with their source.

The figures stand in the result of `compute`, which names the calls that it read; nothing is calculated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel_rag.agent.answers.compute import NAME
from sentinel_rag.agent.answers.renderer import (
    RenderedView,
    Scene,
    compose_empty,
    elements,
    escape,
    filters_shown,
    is_empty,
    say_partial,
    table_of,
    tell,
    total_of,
    view_data,
)
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.planner.decisions import OF_TOTALS, Plan
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome, Picture
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT

MOST_LINES = 50
_NOUNS = {
    "query_alerts": "alerts", "query_incidents": "incidents", "get_incident_detail": "entities",
    "run_kql_query": "rows",
}  # fmt: skip
_COLUMNS = {"count": "Count", "of": "Of", "percent": "Percent", "rows_in_a": "Alerts"}
_FIGURES = ("ratio", "change", "count", "share", "average", "median")
_IDENTITIES = ("number", "alert_id")
Source = tuple[ToolRun, int]
"""A row of a call."""


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """The result of the last calculation, what it was read from, and whether something is missing."""
    read, made = [run for run in runs if run.call.tool_name != NAME], runs[-1]
    step = plan.then[-1]
    op, count = str(step["op"]), len(elements(made, "/rows"))
    noun = _NOUNS[read[0].call.tool_name] if read else ""
    if read and read[0].result is not None and is_empty(read[0]) and (op != "change" or all(map(is_empty, read))):
        return compose_empty(writer, plan, read[0], noun)
    if made.call.tool_name != NAME or not read:
        writer.fixed("That could not be calculated.")
        return RenderedView(outcome=Outcome.NO_DATA)
    composed = RenderedView()
    scene = Scene(writer, made, plan, parts={"noun": Echo(noun, word=True), "Noun": Echo(noun.capitalize(), word=True)})
    if op in _FIGURES and count == 1:
        tell(scene, [f"@figure_{op}"])
    elif op in ("order", "minus", "intersection") and step.get("column") != "name":
        chosen = [(at, source) for at in range(count) if (source := _source(read, made, at)) is not None]
        composed = _rows(scene, read, noun, chosen)
    elif count:
        if op in ("group", "share"):
            _say_groups(scene, count)
        elif op not in _FIGURES:
            writer.say("{} values, in the table below.", writer.tally([(made, f"/rows/{at}") for at in range(count)]))
        _table(writer, made, count)
    else:
        kind = "" if step.get("column") != "name" else f" of the kind {', '.join(plan.aspects)}"
        writer.say_none(read, f"None of the {noun}{kind} is left.")
    begun = len(writer.lines)
    where: Any = step.get("where") or ()
    for condition in [where] if isinstance(where, str) else where:
        writer.fixed(f"Condition: {Echo(str(condition)).shown()}.")
    _say_source(writer, read, made, begun)
    return composed if count else RenderedView(outcome=Outcome.NO_DATA)


def _rows(scene: Scene, read: Sequence[ToolRun], noun: str, chosen: list[tuple[int, Source]]) -> RenderedView:
    """The rows that were chosen, as lists of their own; those with the largest value first unless `few` is asked."""
    writer, made, plan, step = scene.writer, scene.run, scene.plan, scene.plan.then[-1]
    together = step["op"] == "intersection"
    if not chosen:
        writer.say_none(read, f"None of the {noun} names both." if together else f"None of the {noun} is left.")
        return RenderedView(outcome=Outcome.NO_DATA)
    asked = {*plan.aspects}
    by_value = step["op"] == "order" and not {"newest", "oldest"} & asked
    if step["op"] != "order":
        order = [run.call.call_id for run in read]
        chosen = sorted(chosen, key=lambda each: (order.index(each[1][0].call.call_id), each[1][1]))
    elif not {"few", "oldest"} & asked:
        chosen.reverse()
    limit = next((int(each) for each in plan.aspects if each.isdigit()), 1 if by_value else DEFAULT_LIMIT)
    if by_value:
        values = [made.at(f"/rows/{place}/{escape(str(step['column']))}") for place, _ in chosen]
        limit = max(limit, values.count(values[0]))
    else:
        count = writer.tally([(made, f"/rows/{place}") for place, _ in chosen])
        if together:
            writer.say(f"{noun.capitalize()} that name both: {{}}.", count)
        else:
            writer.say(f"{{}} of {{}} {noun}.", count, total_of(writer, read[0]))
        if limit < len(chosen):
            writer.say("Rows shown: {}.", writer.tally([(made, f"/rows/{place}") for place, _ in chosen[:limit]]))
    shown = chosen[:limit]
    for place, (run, at) in shown if by_value else ():
        number, timed = writer.number(run, f"/rows/{at}/number"), made.at(f"/rows/{place}/seconds") is not None
        if timed:
            writer.say("Incident {} was open for {}.", number, writer.duration(made, f"/rows/{place}/seconds"))
        else:
            writer.say("Incident {} has {} alerts.", number, writer.number(run, f"/rows/{at}/alert_count"))
    found: list[ListItem] = []
    for run in {run.call.call_id: run for _, (run, _) in shown}.values():
        of_run = Scene(writer, run, plan)
        table_of(of_run, noun, [at for _, (each, at) in shown if each is run])
        found += of_run.items
    incident = found[0].value if len(found) == 1 and noun == "incidents" else None
    several = view_data()["view"][noun]["suggest"] if len(found) > 1 else ()
    suggested = [each.replace("{first}", found[0].value) for each in several if isinstance(each, str)]
    return RenderedView(items=tuple(found), incident=incident, suggestions=tuple(suggested))


def _source(read: Sequence[ToolRun], made: ToolRun, place: int) -> Source | None:
    """The row of a call that a calculated row tells of: by its reference, or by what identifies it."""
    told = made.at(f"/rows/{place}/row")
    if isinstance(told, str):
        name, _, number = told.partition(".")
        return next(((run, int(number) - 1) for run in read if run.call.call_id == name), None)
    for run in read:
        for at, row in enumerate(run.rows):
            if any(key in row and row[key] == made.at(f"/rows/{place}/{key}") for key in _IDENTITIES):
                return run, at
    return None


_LONGEST_DRAWN = 30
"""Characters of a label beside which there is room for a bar."""
_MOST_NAMED = 3
"""Groups that are told as the largest ones."""
_UNITS = ("hour", "day", "week", "month")


def _say_groups(scene: Scene, count: int) -> None:
    """How many groups there are and the largest of them; of shares the one that was asked for."""
    writer, made = scene.writer, scene.run
    rows = [row for row in elements(made, "/rows") if isinstance(row, Mapping)]
    label, column, *_ = rows[0]
    kind = Fact(plain(label.replace("_", " ")))
    noun = scene.parts["noun"] if column == "count" else Fact(plain(column))

    def told(place: int, name: str) -> Fact:
        return (writer.exact if name == label else writer.number)(made, f"/rows/{place}/{escape(name)}")

    asked = {value for values in scene.plan.frame.features.values() for value in values} if column != "count" else ()
    meant = [place for place, row in enumerate(rows) if str(row[label]) in asked]
    for place in meant:
        value, number, whole, percent = (told(place, name) for name in (label, column, "of", "percent"))
        writer.say("{}: {} {} of {}, {} %.", value, noun, number, whole, percent)
    most = [place for place, row in enumerate(rows) if row[column] == max(each[column] for each in rows)]
    if count == 1 or meant:
        if not meant:
            writer.say("{} is {} in all of {} {}.", kind, told(0, label), told(0, "of"), noun)
        return
    lead = [writer.tally([(made, f"/rows/{place}") for place in range(count)]), kind]
    how, stand = ("{} {}s", "most in") if label in _UNITS else ("{} values of {}", "most are")
    if len(most) > _MOST_NAMED:
        writer.say(f"{how}, in the table below.", *lead)
        return
    names, number, whole = [told(place, label) for place in most], told(most[0], column), told(most[0], "of")
    writer.say(f"{how}; {stand} {{}}: {{}} of {{}} {{}}.", *lead, names, number, whole, noun)


def _table(writer: AnswerWriter, made: ToolRun, count: int) -> None:
    rows = [row for row in elements(made, "/rows") if isinstance(row, Mapping)]
    whole = len({str(row.get("of")) for row in rows}) == 1  # the sentence tells it
    names = [name for name in rows[0] if name not in ("column", "rows_in_b") and not (name == "of" and whole)]
    cells = [
        [writer.cell(made, f"/rows/{at}/{escape(name)}") for name in names] for at in range(min(count, MOST_LINES))
    ]
    drawn = made.call.arguments.get("op") == "group" and all(len(row[0].text) <= _LONGEST_DRAWN for row in cells)
    heads = [_COLUMNS.get(name, name[:1].upper() + name[1:].replace("_", " ")) for name in names]
    writer.table("", heads, cells, picture=Picture.SHARE if drawn else Picture.NONE)


def _say_source(writer: AnswerWriter, read: Sequence[ToolRun], made: ToolRun, begun: int) -> None:
    """Filters and window of what was read, and how much of it was not looked at."""
    said: set[str] = set()
    for run in {str(dict(run.call.arguments)): run for run in read if "offset" not in run.call.arguments}.values():
        template, parts = filters_shown(run)
        if run.call.tool_name == "get_incident_detail":
            continue
        if template:
            writer.say(f"Read: {{}} {_NOUNS[run.call.tool_name]} ({template}).", total_of(writer, run), *parts)
        if (window := str(run.at("/coverage/window"))) not in said:
            said.add(window)
            tell(Scene(writer, run), ["@asked_window"])
    # They stand in the paragraph of the answer: what it was calculated from says what it is of.
    writer.goes_on(begun)
    total = read[0].at("/coverage/rows_total")
    seen = sum(len(run.rows) for run in read if run.call.tool_name == read[0].call.tool_name)
    if made.call.arguments.get("op") not in OF_TOTALS and isinstance(total, int) and seen < total:
        writer.fixed("Not all rows could be looked at, so this holds only for those that were.")
    say_partial(writer, read[0])
