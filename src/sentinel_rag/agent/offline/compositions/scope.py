"""Sentences about what a result covers: its window, how many rows of how many, partial data, and why it is empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact, phrase
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.planner import Option, offer
from sentinel_rag.agent.planner.plan import Plan, listed
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time

_WINDOW_NAMES = ("time_window", "start_time", "end_time")
_FILTERS = {
    "severity": "severity {}",
    "min_severity": "severity {} and above",
    "status": "status {}",
    "title_contains": "title with {}",
    "name_contains": "name with {}",
    "owner": "owner {}",
    "entity": "naming {}",
    "incident": "of incident {}",
    "product": "product {}",
    "tactic": "tactic {}",
    "alert_id": "with the id {}",
    "time_field": "placed by when they were {}",
    "workspace": "workspace {}",
}

_NO_FILTERS: Mapping[str, JsonValue] = MappingProxyType({})
HOW_TO_FILL = (
    "To fill the workspace of this machine: `sentinel workspace import FILE` takes an export in, `sentinel workspace "
    "generate` makes a sample estate. In Azure a data connector fills it."
)
_ENUMERATED = frozenset({"severity", "min_severity", "status", "tactic", "time_field"})
_REMOVABLE = (
    ("min_severity", "severity"),
    ("severity", "severity"),
    ("status", "status"),
    ("name_contains", "words of the name"),
    ("title_contains", "words of the title"),
    ("product", "product"),
    ("tactic", "tactic"),
)


def say_how_to_fill(writer: AnswerWriter) -> None:
    """How rows come into a workspace that has none; once in an answer."""
    if not any(HOW_TO_FILL in line.text for line in writer.lines):
        writer.fixed(HOW_TO_FILL)


def say_window(writer: AnswerWriter, run: ToolRun) -> None:
    """One line that tells which time the answer covers."""
    start, end = "/coverage/window/start", "/coverage/window/end"
    if run.at(start) and run.at(end):
        writer.say("Window: from {} to before {}.", writer.time(run, start), writer.time(run, end))
    elif run.at(start):
        writer.say("Window: since {}.", writer.time(run, start))
    elif run.at(end):
        writer.say("Window: before {}.", writer.time(run, end))
    elif run.at("/coverage/table_oldest") and run.at("/coverage/table_newest"):
        writer.say(
            "Window: the retained data, whose rows reach from {} to {}.",
            writer.time(run, "/coverage/table_oldest"),
            writer.time(run, "/coverage/table_newest"),
        )
    else:
        writer.fixed("Window: the retained data.")


_EXPLAINED = (
    (re.compile(r"another state than the incident"), frozenset({"alerts"})),
    (
        re.compile(r"carr(?:y|ies) a closing time"),
        frozenset({"status", "closed", "duration", "reason", "closer", "reopened"}),
    ),
    (re.compile(r"^Compact form of incident"), frozenset({"alerts", "entities", "comments", "timeline"})),
    (re.compile(r"has no row for"), frozenset({"alert_count", "timeline"})),
)
"""Notes that the tools explain at length, and the fields of an incident that each is about."""


def say_partial(writer: AnswerWriter, run: ToolRun, aspects: Sequence[str] = ()) -> None:
    """A warning where the service cut the result, and the notes that the tool's code wrote.

    Where `aspects` names the fields that were asked for, a note about other fields is left out.
    """
    if run.at("/coverage/partial"):
        if run.at("/coverage/partial_reason"):
            writer.say("Warning: the result is partial. {}", writer.words(run, "/coverage/partial_reason"))
        else:
            writer.fixed("Warning: the result is partial; counts may be too low.")
    for place in range(len(run.result.notes) if run.result is not None else 0):
        text = str(run.at(f"/notes/{place}"))
        about = next((topics for pattern, topics in _EXPLAINED if pattern.search(text)), None)
        if about is None:
            writer.note(run, place)
        elif not aspects or about & set(aspects):
            writer.note(run, place, brief=True)


def filters_shown(run: ToolRun, *, without: Mapping[str, JsonValue] = _NO_FILTERS) -> tuple[str, list[Echo]]:
    """A template and its parts that repeat the filters of a call: "severity {}, status {}"; those `without` which are
    told already."""
    names = [name for name, value in run.call.arguments.items() if name in _FILTERS and without.get(name) != value]
    names.sort(key=list(_FILTERS).index)
    parts = [Echo(str(run.call.arguments[name]), word=name in _ENUMERATED) for name in names]
    return ", ".join(_FILTERS[name] for name in names), parts


def total_of(writer: AnswerWriter, run: ToolRun) -> Fact:
    """How many rows match in all, or how many were returned where the service did not say."""
    known = run.at("/coverage/rows_total") is not None
    return writer.number(run, "/coverage/rows_total" if known else "/coverage/rows_returned")


def say_shown(writer: AnswerWriter, run: ToolRun, total: Fact, *, first: int) -> None:
    """How many rows of how many are shown, where it is not all of them; `first` stood on pages before."""
    if len(run.rows) == int(total.text) and not first:
        if run.at("/coverage/rows_total") is None:
            writer.say("Rows shown: {}; how many match in all was not told.", total)
        return
    shown = writer.number(run, "/coverage/rows_returned")
    if first:
        writer.say("Rows shown: {} of {}, from {} on.", shown, total, Fact(f"[{first + 1}]"))
    else:
        writer.say("Rows shown: {} of {}.", shown, total)


def event_time(run: ToolRun, at: str) -> str:
    """Pointer to the time of the event that the alert at `at` tells of: lists of alerts are in this order."""
    return f"{at}/start_time" if run.at(f"{at}/start_time") else f"{at}/time"


def workspace_column(run: ToolRun) -> tuple[str, ...]:
    """The heading of the column that tells each row's workspace, where rows come from several."""
    return ("Workspace",) if any("workspace" in row for row in run.rows) else ()


def say_workspaces(writer: AnswerWriter, run: ToolRun) -> None:
    """How many rows match in each workspace, of a question to all of them."""
    totals = run.at("/summary/by_workspace")
    if not isinstance(totals, Mapping):
        return
    facts = []
    for name in totals:
        fact = writer.number(run, f"/summary/by_workspace/{name}/rows_total")
        facts.append(phrase("{} {}", Fact(name), fact if fact.values else Fact("unknown")))
    writer.say("By workspace: {}.", facts)


def is_empty(run: ToolRun) -> bool:
    """True if nothing matched at all."""
    return not run.rows and not run.at("/coverage/rows_total")


def compose_empty(writer: AnswerWriter, plan: Plan, run: ToolRun, noun: str) -> Composed:
    """Nothing matched: says so, with filters and window, whether the table has rows at all, and what to try."""
    template, parts = filters_shown(run)
    writer.say_none([run], f"No {noun} match" + (f" ({template})." if template else "."), *parts)
    say_workspaces(writer, run)
    say_window(writer, run)
    say_partial(writer, run)
    offers: list[Option] = []
    arguments = dict(run.call.arguments)
    unbounded = {name: value for name, value in arguments.items() if name not in _WINDOW_NAMES}
    if run.at("/coverage/table_rows") == 0:
        writer.say_none(
            [run],
            "The table behind it ({}) holds no rows at all: nothing was collected or imported yet.",
            _tables(writer, run),
        )
        say_how_to_fill(writer)
        return Composed(outcome=Outcome.NO_DATA, suggestions=("What data do you have?",))
    if run.at("/coverage/table_newest"):
        writer.say(
            "The table ({}) does hold rows: {}, the oldest of {}, the newest of {}.",
            _tables(writer, run),
            writer.number(run, "/coverage/table_rows"),
            writer.time(run, "/coverage/table_oldest"),
            writer.time(run, "/coverage/table_newest"),
        )
        if len(unbounded) < len(arguments):
            offers += _window_offers(run, arguments, unbounded, plan, noun)
    for name, label in _REMOVABLE:
        if name in arguments and not (name == "status" and arguments.get("time_field") == "closed"):
            wider = {key: value for key, value in arguments.items() if key != name}
            offers.append(_offer(run, wider, plan, f"The same without the filter on {label}"))
    if plan.section:  # numbers would not say which workspace's offer is meant
        return Composed(outcome=Outcome.NO_DATA)
    if offers:
        writer.fixed("I can look further: answer yes for the first of these, or [n].")
        say_numbered(writer, offers)
    return Composed(outcome=Outcome.NO_DATA, offers=tuple(offers), suggestions=tuple(o.text for o in offers))


def say_numbered(writer: AnswerWriter, offers: Sequence[Option]) -> None:
    """What could be asked instead, numbered."""
    for place, option in enumerate(offers, start=1):
        writer.offer(f"[{place}] {option.text}")


def _tables(writer: AnswerWriter, run: ToolRun) -> list[Fact]:
    return writer.joined(run, "/coverage/tables", writer.number)


def _window_offers(
    run: ToolRun, arguments: dict[str, Any], unbounded: dict[str, Any], plan: Plan, noun: str
) -> list[Option]:
    assert run.result is not None
    coverage = run.result.coverage
    oldest, newest = coverage.table_oldest, coverage.table_newest
    assert newest is not None
    offers: list[Option] = []
    if oldest is not None:
        end = newest + timedelta(seconds=1)
        text = f"Show {noun} between {_short_time(oldest)} and {_short_time(end)}, where the rows are"
    else:
        text = f"Show {noun} over all retained data"
    offers.append(_offer(run, unbounded, plan, text))
    window = coverage.window
    if window.start is not None and window.end is not None and window.end - window.start <= timedelta(days=31):
        end = newest + timedelta(seconds=1)
        start = end - (window.end - window.start)
        moved = {**unbounded, "start_time": format_time(start), "end_time": format_time(end)}
        text = f"Show {noun} between {_short_time(start)} and {_short_time(end)}, as long a window up to the newest row"
        offers.append(_offer(run, moved, plan, text))
    return offers


def _short_time(moment: datetime) -> str:
    """An ISO time to the second, for a question that the grammar reads again."""
    return format_time(moment.replace(microsecond=0))


def _offer(run: ToolRun, arguments: dict[str, Any], plan: Plan, text: str) -> Option:
    return offer(text, run.call.tool_name, arguments, listed(plan.view))
