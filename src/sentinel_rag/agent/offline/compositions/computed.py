"""What was calculated over the rows of calls: a figure, a small table, or the rows that were chosen, with their source.

The figures stand in the result of `compute`, which names the calls that it read; nothing is calculated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sentinel_rag.agent.answers.compute import NAME
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import alerts, incidents, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT

MOST_LINES = 50
_NOUNS = {"query_alerts": "alerts", "query_incidents": "incidents", "get_incident_detail": "entities"}
_COLUMNS = {"count": "Count", "of": "Of", "percent": "Percent", "rows_in_a": "Alerts"}
_IDENTITIES = ("number", "alert_id")


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The result of the last calculation, what it was read from, and whether something is missing."""
    read, made = [run for run in runs if run.call.tool_name != NAME], runs[-1]
    step = plan.then[-1]
    op, rows = str(step["op"]), made.at("/rows")
    found_none = bool(read) and read[0].result is not None and scope.is_empty(read[0])
    if found_none and (op != "change" or all(map(scope.is_empty, read))):
        return scope.compose_empty(writer, plan, read[0], _NOUNS[read[0].call.tool_name])
    if made.call.tool_name != NAME or not read:
        writer.fixed("That could not be calculated.")
        return Composed(outcome=Outcome.NO_DATA)
    noun = _NOUNS[read[0].call.tool_name]
    count = len(rows) if isinstance(rows, list) else 0
    composed = Composed()
    if op in _FIGURES and count:
        _FIGURES[op](writer, made, noun)
    elif op in ("order", "minus", "intersection") and step.get("column") != "name":
        places = [place for place in range(count) if (at := _source(read, made, place)) is not None and at]
        composed = _rows(writer, plan, read, made, noun, places)
    elif count:
        if op == "group":
            writer.fixed("The groups are in the table below.")
        else:
            writer.say("{} values, in the table below.", writer.tally([(made, f"/rows/{at}") for at in range(count)]))
        _table(writer, made, count)
    else:
        kind = "" if step.get("column") != "name" else f" of the kind {', '.join(plan.aspects)}"
        writer.say_none(read, f"None of the {noun}{kind} is left.")
    for condition in _conditions(step):
        writer.fixed(f"Condition: {Echo(condition).shown()}.")
    _say_source(writer, read, made)
    return composed if count else Composed(outcome=Outcome.NO_DATA)


def _conditions(step: Mapping[str, object]) -> list[str]:
    """What a row had to fulfil."""
    where = step.get("where") or ()
    return [where] if isinstance(where, str) else [str(each) for each in where] if isinstance(where, list) else []


def _rows(
    writer: AnswerWriter, plan: Plan, read: Sequence[ToolRun], made: ToolRun, noun: str, places: Sequence[int]
) -> Composed:
    """The rows that were chosen, as lists of their own; those with the largest value first unless `few` is asked."""
    together = plan.then[-1]["op"] == "intersection"
    if not places:
        none = f"None of the {noun} names both." if together else f"None of the {noun} is left."
        writer.say_none(read, none)
        return Composed(outcome=Outcome.NO_DATA)
    ordered, by_time = plan.then[-1]["op"] == "order", {"newest", "oldest"} & {*plan.aspects}
    if not ordered:
        places = sorted(places, key=lambda place: _place_read(read, made, place))
    elif not {"few", "oldest"} & {*plan.aspects}:
        places = list(reversed(places))
    by_value = ordered and not by_time
    limit = next((int(each) for each in plan.aspects if each.isdigit()), 1 if by_value else DEFAULT_LIMIT)
    total = scope.total_of(writer, read[0])
    if by_value:
        best = _cell(made, places[0], str(plan.then[-1]["column"]))
        limit = max(limit, sum(_cell(made, place, str(plan.then[-1]["column"])) == best for place in places))
    else:
        chosen = writer.tally([(made, f"/rows/{place}") for place in places])
        if together:
            writer.say(f"{noun.capitalize()} that name both: {{}}.", chosen)
        else:
            writer.say(f"{{}} of {{}} {noun}.", chosen, total)
    shown = places[:limit]
    if len(shown) < len(places) and not by_value:
        writer.say("Rows shown: {}.", writer.tally([(made, f"/rows/{place}") for place in shown]))
    items = []
    for place in shown:
        source = _source(read, made, place)
        assert source is not None
        run, at = source
        if by_value:
            _say_value(writer, made, place, run, at)
        items += [alert_item(run.rows[at])] if noun == "alerts" else list(incidents.incident_items(run, [at]))
    sources = [source for place in shown if (source := _source(read, made, place)) is not None]
    for run in {run.call.call_id: run for run, _ in sources}.values():
        mine = [at for each, at in sources if each is run]
        if noun == "alerts":
            alerts.alert_table(writer, run, "/rows", mine)
        else:
            incidents.incident_table(writer, run, mine, first=0)
    only = items[0].value if len(items) == 1 and noun == "incidents" else None
    suggested = incidents.ways_on(items) if noun == "incidents" else alerts.WAYS_ON if len(items) > 1 else ()
    return Composed(items=tuple(items), incident=only, suggestions=suggested, shown=len(items))


def _say_value(writer: AnswerWriter, made: ToolRun, place: int, run: ToolRun, at: int) -> None:
    """The value by which a row comes first."""
    name = writer.number(run, f"/rows/{at}/number")
    if _cell(made, place, "seconds") is not None:
        writer.say("Incident {} was open for {}.", name, writer.duration(made, f"/rows/{place}/seconds"))
    else:
        writer.say("Incident {} has {} alerts.", name, writer.number(run, f"/rows/{at}/alert_count"))


def _source(read: Sequence[ToolRun], made: ToolRun, place: int) -> tuple[ToolRun, int] | None:
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


def _place_read(read: Sequence[ToolRun], made: ToolRun, place: int) -> tuple[int, int]:
    """Where a row stands among those that were read, so that it keeps its place."""
    source = _source(read, made, place)
    assert source is not None
    run, at = source
    return next(number for number, each in enumerate(read) if each is run), at


def _cell(made: ToolRun, place: int, column: str) -> object:
    return made.at(f"/rows/{place}/{column.replace('~', '~0').replace('/', '~1')}")


def _say_share(writer: AnswerWriter, made: ToolRun, noun: str) -> None:
    numbers = [writer.number(made, f"/rows/0/{name}") for name in ("a", "b")]
    if made.at("/rows/0/percent") is None:
        writer.say(f"{{}} of {{}} {noun}.", *numbers)
    else:
        writer.say(f"{{}} of {{}} {noun}, {{}} %.", *numbers, writer.number(made, "/rows/0/percent"))


def _say_change(writer: AnswerWriter, made: ToolRun, noun: str) -> None:
    numbers = [writer.number(made, f"/rows/0/{name}") for name in ("from", "to", "difference")]
    writer.say(f"{noun.capitalize()}: {{}} before, {{}} in the later period, a difference of {{}}.", *numbers)
    if made.at("/rows/0/change_percent") is not None:
        writer.say("That is a change of {} %.", writer.number(made, "/rows/0/change_percent"))


def _say_measure(op: str) -> Callable[[AnswerWriter, ToolRun, str], None]:
    def say(writer: AnswerWriter, made: ToolRun, noun: str) -> None:
        rows = made.at("/rows")
        if isinstance(rows, list) and len(rows) > 1:
            _table(writer, made, len(rows))
            return
        if made.at("/rows/0/seconds") is None:
            words = "The mean" if op == "average" else "The median"
            told = writer.number(made, f"/rows/0/{op}"), writer.number(made, "/rows/0/rows")
            writer.say(f"{words} number of alerts is {{}}, over {{}} {noun}.", *told)
            return
        label = "The mean time" if op == "average" else "The median time"
        told = writer.duration(made, "/rows/0/seconds"), writer.number(made, "/rows/0/rows")
        writer.say(
            f"{label} from creation to closing is {{}}, over {{}} {noun if told[1].text != '1' else noun[:-1]}.", *told
        )

    return say


def _say_count(writer: AnswerWriter, made: ToolRun, noun: str) -> None:
    numbers = [writer.number(made, f"/rows/0/{name}") for name in ("count", "of")]
    if made.at("/rows/0/of") is None:
        writer.say(f"{{}} {noun}.", numbers[0])
    else:
        writer.say(f"{{}} of {{}} {noun}.", *numbers)


_FIGURES: Mapping[str, Callable[[AnswerWriter, ToolRun, str], None]] = {
    "ratio": _say_share,
    "change": _say_change,
    "count": _say_count,
    "average": _say_measure("average"),
    "median": _say_measure("median"),
}


def _table(writer: AnswerWriter, made: ToolRun, count: int) -> None:
    first = made.at("/rows/0")
    names = [name for name in (first if isinstance(first, Mapping) else ()) if name not in ("column", "rows_in_b")]
    rows = [
        [writer.cell(made, f"/rows/{place}/{name.replace('/', '~1')}") for name in names]
        for place in range(min(count, MOST_LINES))
    ]
    writer.table("", [_COLUMNS.get(name, name.replace("_", " ").capitalize()) for name in names], rows)


def _say_source(writer: AnswerWriter, read: Sequence[ToolRun], made: ToolRun) -> None:
    """Filters and window of what was read, and how much of it was not looked at."""
    said: set[str] = set()
    for run in {str(dict(run.call.arguments)): run for run in read if "offset" not in run.call.arguments}.values():
        template, parts = scope.filters_shown(run)
        noun = _NOUNS[run.call.tool_name]
        if template and run.call.tool_name != "get_incident_detail":
            writer.say(f"Read: {{}} {noun} ({template}).", scope.total_of(writer, run), *parts)
        if run.call.tool_name != "get_incident_detail" and (window := str(run.at("/coverage/window"))) not in said:
            said.add(window)
            scope.say_window(writer, run)
    total = read[0].at("/coverage/rows_total")
    seen = sum(len(run.rows) for run in read if run.call.tool_name == read[0].call.tool_name)
    reads_rows = made.call.arguments.get("op") not in ("ratio", "difference", "change")
    if reads_rows and isinstance(total, int) and seen < total:
        writer.fixed("Not all rows could be looked at, so this holds only for those that were.")
    scope.say_partial(writer, read[0])
