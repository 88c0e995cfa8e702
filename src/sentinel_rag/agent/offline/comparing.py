"""Incidents side by side: their fields in one table, and the entities, tactics and techniques that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.renderer import RenderedView, elements, escape, say_partial
from sentinel_rag.agent.answers.writer import EMPTY_CELL, AnswerWriter, Fact
from sentinel_rag.agent.offline.attributes import entities_of, kinds_of
from sentinel_rag.agent.planner import Option
from sentinel_rag.agent.planner.decisions import Plan
from sentinel_rag.agent.things import INCIDENT, ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MOST_SHARED = 40
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_KINDS_FIRST = {kind: place for place, kind in enumerate(("account", "host", "ip", "mailbox", "url", "dns"))}
"""Kinds that tie attacks together come before files and hashes, which every machine has."""
_FIELDS = {
    "Title": "/rows/0/title",
    "Severity": "/rows/0/severity",
    "Status": "/rows/0/status",
    "Classification": "/rows/0/classification",
    "Owner": "/rows/0/owner",
    "Created": "/rows/0/created_time",
    "Updated": "/rows/0/updated_time",
    "Closed": "/rows/0/closed_time",
    "Open for": "/rows/0/open_duration_s",
    "Alerts": "/summary/alert_count",
    "Tactics": "/rows/0/tactics",
    "Techniques": "/rows/0/techniques",
}
_SAID = ("Severity", "Status", "Owner", "Tactics", "Techniques")
"""Fields of which the answer says in words whether they are the same."""
One = Callable[[AnswerWriter, Plan, ToolRun], RenderedView]


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun], tell_one: One) -> RenderedView:
    """The comparison of those that were found; what was not found, or may be several, is told first as `tell_one` tells
    a single incident."""
    if len(plan.calls) < 2:
        return tell_one(writer, plan, runs[0])
    found = [run for run in runs if len(run.rows) == 1]
    for run in runs:
        if len(run.rows) != 1:
            missing = tell_one(writer, plan, run)
            if run.rows:
                return replace(missing, items=(), offers=_comparisons_with(plan, run, runs))
    if len(found) < 2:
        writer.fixed("So there is nothing to compare.")
        return RenderedView(outcome=Outcome.NO_DATA)
    begun = len(writer.lines)
    for run in found:
        writer.say("Incident {}: {}.", writer.number(run, "/rows/0/number"), writer.name(run, "/rows/0/title"))
    writer.goes_on(begun + 1)
    kinds = [aspect.partition(":")[2] for aspect in plan.aspects if aspect.startswith("entities:")]
    if "shared" not in plan.aspects:
        _say_fields(writer, found)
    _say_shared(writer, found, kinds)
    writer.goes_on(begun + len(found) + 1)
    for run in found:
        say_partial(writer, run, ("alert_count", "status"))
    writer.listed += len(found)  # they are numbered in the head of the table
    return RenderedView(items=tuple(ListItem(INCIDENT, str(run.rows[0].get("number"))) for run in found))


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
    told: dict[bool, list[str]] = {True: [], False: []}
    for label, pointer in _FIELDS.items():
        cells = [_cell(writer, run, pointer) for run in found]
        if any(cell.text != EMPTY_CELL for cell in cells):
            rows.append([Fact(label), *cells])
            if label in _SAID:
                told[len({cell.text for cell in cells}) == 1].append(label.lower())
    for kind in sorted({kind for run in found for kind in kinds_of(run)}):
        rows.append([Fact(f"Entities: {kind}"), *(_entity_count(writer, run, kind) for run in found)])
    for same, words in ((False, "They differ in"), (True, f"The same in {'both' if len(found) == 2 else 'all'}:")):
        if told[same]:
            writer.say_compared([(run, "/rows/0") for run in found], f"{words} {', '.join(told[same])}.")
    heads = [f"[{place}] Incident {run.rows[0].get('number')}" for place, run in enumerate(found, start=1)]
    writer.table("Side by side", ("Field", *heads), rows)


def _cell(writer: AnswerWriter, run: ToolRun, pointer: str) -> Fact:
    if pointer.endswith("_time"):
        return writer.time_cell(run, pointer)
    if pointer.endswith("_s") and run.at(pointer) is not None:
        return writer.duration(run, pointer)
    return writer.cell(run, pointer, limit=200)


def _entity_count(writer: AnswerWriter, run: ToolRun, kind: str) -> Fact:
    counted, listed = f"/rows/0/entity_counts/{escape(kind)}", f"/rows/0/entities/{escape(kind)}"
    if run.at(counted) is not None:
        return writer.cell(run, counted)
    return writer.count(run, listed) if run.at(listed) else Fact(EMPTY_CELL)


def _say_shared(writer: AnswerWriter, found: Sequence[ToolRun], kinds: Sequence[str]) -> None:
    """Entities that at least two of the incidents name, with the alerts of each that name it."""
    by_id = {run.call.call_id: run for run in found}
    places: dict[tuple[str, str], dict[str, str]] = {}
    for run in found:
        for kind in kinds_of(run):
            for at, entity in entities_of(run, kind) if not kinds or kind in kinds else ():
                if entity.get("name"):
                    pointers = places.setdefault((kind, str(entity["name"]).lower()), {})
                    pointers.setdefault(run.call.call_id, at)
    shared = [(kind, pointers) for (kind, _), pointers in places.items() if len(pointers) > 1]
    shared.sort(key=lambda each: (-len(each[1]), _KINDS_FIRST.get(each[0], len(_KINDS_FIRST))))
    two = len(found) == 2
    if not shared:
        of = f" of the kind {', '.join(kinds)}" if kinds else ""
        writer.say_none(found, f"No entity{of} is named by alerts of both." if two else f"They share no entity{of}.")
    else:
        firsts = [(by_id[next(iter(pointers))], f"{next(iter(pointers.values()))}/name") for _, pointers in shared]
        writer.say(f"{'Shared entities' if two else 'Entities of two of them or more'}: {{}}.", writer.tally(firsts))
        rows = []
        for (first, name), (kind, pointers) in zip(firsts[:MOST_SHARED], shared, strict=False):
            alerts = [(run, f"{pointers.get(run.call.call_id, '/')}/alerts") for run in found]
            rows.append([Fact(kind), writer.cell(first, name, limit=200), *(writer.cell(*each) for each in alerts)])
        columns = ("Kind", "Entity", *(f"Alerts of {run.rows[0].get('number')}" for run in found))
        writer.table("Shared entities", columns, rows)
        if len(shared) > MOST_SHARED:
            writer.say("Shown in the table: {}.", writer.tally(firsts[:MOST_SHARED]))
    for name in ("tactics", "techniques"):
        lists = [[str(each) for each in elements(run, f"/rows/0/{name}")] for run in found]
        common = set.intersection(*map(set, lists))
        facts = [writer.number(found[0], f"/rows/0/{name}/{at}") for at, each in enumerate(lists[0]) if each in common]
        if facts:
            writer.say(f"Shared {name}: {{}}.", facts, cited=[(run, "/rows/0") for run in found])
    if any(_is_cut(run, escape(kind)) for run in found for kind in kinds_of(run)):
        writer.fixed("Not every entity of these incidents came with the answer, so they may share more.")


def _is_cut(run: ToolRun, kind: str) -> bool:
    count = run.at(f"/rows/0/entity_counts/{kind}")
    return isinstance(count, int) and 0 <= len(elements(run, f"/rows/0/entities/{kind}")) < count
