"""Incidents side by side: their fields in one table, and the entities, tactics and techniques that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Fact
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.offline.compositions import incident_detail, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner import Option
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MOST_SHARED = 40
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_KINDS_FIRST = {kind: place for place, kind in enumerate(("account", "host", "ip", "mailbox", "url", "dns"))}
"""Kinds that tie attacks together come before files and hashes, which every machine has."""
_Cell = Callable[[AnswerWriter, ToolRun], Fact]


def _cell(pointer: str) -> _Cell:
    return lambda writer, run: writer.cell(run, pointer, limit=200)


def _time(pointer: str) -> _Cell:
    return lambda writer, run: writer.time_cell(run, pointer)


def _duration(writer: AnswerWriter, run: ToolRun) -> Fact:
    seconds = run.at("/rows/0/open_duration_s")
    return writer.duration(run, "/rows/0/open_duration_s") if seconds is not None else Fact(EMPTY_CELL)


_FIELDS: tuple[tuple[str, _Cell], ...] = (
    ("Title", _cell("/rows/0/title")),
    ("Severity", _cell("/rows/0/severity")),
    ("Status", _cell("/rows/0/status")),
    ("Classification", _cell("/rows/0/classification")),
    ("Owner", _cell("/rows/0/owner")),
    ("Created", _time("/rows/0/created_time")),
    ("Updated", _time("/rows/0/updated_time")),
    ("Closed", _time("/rows/0/closed_time")),
    ("Open for", _duration),
    ("Alerts", _cell("/summary/alert_count")),
    ("Tactics", _cell("/rows/0/tactics")),
    ("Techniques", _cell("/rows/0/techniques")),
)
_SAID = ("Severity", "Status", "Owner", "Tactics", "Techniques")
"""Fields of which the answer says in words whether they are the same."""


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The comparison of those that were found; what was not found, or may be several, is told first."""
    if len(plan.calls) < 2:
        return incident_detail.compose(writer, plan, runs[0])
    found = [run for run in runs if len(run.rows) == 1]
    for run in runs:
        if len(run.rows) != 1:
            missing = incident_detail.compose(writer, plan, run)
            if run.rows:
                return replace(missing, items=(), offers=_comparisons_with(plan, run, runs))
    if len(found) < 2:
        writer.fixed("So there is nothing to compare.")
        return Composed(outcome=Outcome.NO_DATA)
    for run in found:
        writer.say("Incident {}: {}.", writer.number(run, "/rows/0/number"), writer.name(run, "/rows/0/title"))
    kinds = [aspect.partition(":")[2] for aspect in plan.aspects if aspect.startswith("entities:")]
    if "shared" not in plan.aspects:
        _say_fields(writer, found)
    _say_shared(writer, found, kinds)
    for run in found:
        scope.say_partial(writer, run, ("alert_count", "status"))
    writer.listed += len(found)  # they are numbered in the head of the table
    items = tuple(ListItem("incident", str(run.rows[0].get("number"))) for run in found)
    return Composed(items=items, shown=len(items))


def _comparisons_with(plan: Plan, ambiguous: ToolRun, runs: Sequence[ToolRun]) -> tuple[Option, ...]:
    """For each incident that one reference may mean, the whole question again with its GUID in the place of that."""
    offers = []
    for row in ambiguous.rows:
        guid = str(row.get("incident_name"))
        if not _GUID.fullmatch(guid):
            return ()
        frame = plan.frame.copy()
        frame.features["incident"] = [guid if run is ambiguous else str(run.call.arguments["incident"]) for run in runs]
        offers.append(Option(f"Compare {' and '.join(frame.all('incident'))}", frame))
    return tuple(offers)


def _say_fields(writer: AnswerWriter, found: Sequence[ToolRun]) -> None:
    rows: list[list[Fact]] = []
    rows_of_all = [(run, "/rows/0") for run in found]
    same: list[str] = []
    different: list[str] = []
    for label, show in _FIELDS:
        cells = [show(writer, run) for run in found]
        if any(cell.text != EMPTY_CELL for cell in cells):
            rows.append([Fact(label), *cells])
            if label in _SAID:
                (same if len({cell.text for cell in cells}) == 1 else different).append(label.lower())
    for kind in sorted({str(kind) for run in found for kind in _kinds(run)}):
        rows.append([Fact(f"Entities: {kind}"), *(_entity_count(writer, run, kind) for run in found)])
    if different:
        writer.say_compared(rows_of_all, f"They differ in {', '.join(different)}.")
    if same:
        writer.say_compared(rows_of_all, f"The same in {'both' if len(found) == 2 else 'all'}: {', '.join(same)}.")
    writer.table("Side by side", ("Field", *_headings(found)), rows)


def _headings(found: Sequence[ToolRun]) -> tuple[str, ...]:
    return tuple(f"[{place}] Incident {run.rows[0].get('number')}" for place, run in enumerate(found, start=1))


def _kinds(run: ToolRun) -> Sequence[str]:
    entities = run.at("/rows/0/entities")
    return list(entities) if isinstance(entities, Mapping) else []


def _entity_count(writer: AnswerWriter, run: ToolRun, kind: str) -> Fact:
    counted, listed = f"/rows/0/entity_counts/{escape(kind)}", f"/rows/0/entities/{escape(kind)}"
    if run.at(counted) is not None:
        return writer.cell(run, counted)
    return writer.count(run, listed) if run.at(listed) else Fact(EMPTY_CELL)


def _say_shared(writer: AnswerWriter, found: Sequence[ToolRun], kinds: Sequence[str]) -> None:
    """Entities that at least two of the incidents name, with the alerts of each that name it."""
    places: dict[tuple[str, str], dict[str, str]] = {}
    for run in found:
        for kind in _kinds(run):
            entities = run.at(f"/rows/0/entities/{escape(kind)}")
            for place, entity in enumerate(entities if isinstance(entities, list | tuple) else ()):
                if isinstance(entity, Mapping) and entity.get("name") and (not kinds or kind in kinds):
                    pointers = places.setdefault((kind, str(entity["name"]).lower()), {})
                    pointers.setdefault(run.call.call_id, f"/rows/0/entities/{escape(kind)}/{place}")
    shared = [(kind, pointers) for (kind, _), pointers in places.items() if len(pointers) > 1]
    shared.sort(key=lambda each: (-len(each[1]), _KINDS_FIRST.get(each[0], len(_KINDS_FIRST))))
    by_id = {run.call.call_id: run for run in found}
    among = "Shared entities" if len(found) == 2 else "Entities of two of them or more"
    if not shared:
        of = f" of the kind {', '.join(kinds)}" if kinds else ""
        none = f"No entity{of} is named by alerts of both." if len(found) == 2 else f"They share no entity{of}."
        writer.say_none(found, none)
    else:
        firsts = [(by_id[next(iter(pointers))], f"{next(iter(pointers.values()))}/name") for _, pointers in shared]
        count = writer.tally(firsts)
        writer.say(f"{among}: {{}}.", count)
        rows = []
        for (run, name), (kind, pointers) in zip(firsts[:MOST_SHARED], shared, strict=False):
            alerts = [
                writer.cell(by_id[each.call.call_id], f"{pointers[each.call.call_id]}/alerts")
                if each.call.call_id in pointers
                else Fact(EMPTY_CELL)
                for each in found
            ]
            rows.append([Fact(kind), writer.cell(run, name, limit=200), *alerts])
        columns = ("Kind", "Entity", *(f"Alerts of {run.rows[0].get('number')}" for run in found))
        writer.table("Shared entities", columns, rows)
        if len(shared) > MOST_SHARED:
            writer.say("Shown in the table: {}.", writer.tally(firsts[:MOST_SHARED]))
    _say_shared_names(writer, found)
    if any(_is_cut(run) for run in found):
        writer.fixed("Not every entity of these incidents came with the answer, so they may share more.")


def _say_shared_names(writer: AnswerWriter, found: Sequence[ToolRun]) -> None:
    """Tactics and techniques that all of them cover."""
    for label, name in (("tactics", "tactics"), ("techniques", "techniques")):
        lists = [run.at(f"/rows/0/{name}") for run in found]
        values = [set(map(str, each)) if isinstance(each, list | tuple) else set() for each in lists]
        common = set.intersection(*values)
        first = lists[0] if isinstance(lists[0], list | tuple) else ()
        facts = [
            writer.number(found[0], f"/rows/0/{name}/{place}")
            for place, value in enumerate(first)
            if str(value) in common
        ]
        if facts:
            writer.say(f"Shared {label}: {{}}.", facts, cited=[(run, "/rows/0") for run in found])


def _is_cut(run: ToolRun) -> bool:
    for kind in _kinds(run):
        entities, count = run.at(f"/rows/0/entities/{escape(kind)}"), run.at(f"/rows/0/entity_counts/{escape(kind)}")
        if isinstance(count, int) and isinstance(entities, list | tuple) and count > len(entities):
            return True
    return False
