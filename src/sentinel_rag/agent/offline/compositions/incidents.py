"""Lists and counts of incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, phrase
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.things import incident_item
from sentinel_rag.agent.tool_runs import ToolRun

COLUMNS = ("", "Incident", "Severity", "Status", "Created", "Owner", "Alerts", "Title")
_ORDERS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "severity": "highest severity first",
    "updated": "last updated first",
}


def ways_on(items: Sequence[ListItem]) -> tuple[str, ...]:
    """Questions that a list of several incidents suggests."""
    if len(items) < 2:
        return ()
    return (f"What is incident {items[0].value} about?", f"Show the alerts of incident {items[0].value}")


def incident_table(
    writer: AnswerWriter, run: ToolRun, places: list[int], *, first: int, title: str = "", ids: bool = False
) -> None:
    """Rows of query_incidents or get_threat_summary as a numbered table; `ids` sets Defender ids beside the numbers."""
    start = first + writer.listed + 1
    writer.listed += len(places)
    rows = [_row(writer, run, place, shown) for shown, place in enumerate(places, start=start)]
    columns: tuple[str, ...] = COLUMNS
    if ids:
        columns = (*columns[:2], "Defender id", *columns[2:])
        for row, place in zip(rows, places, strict=True):
            row.insert(2, writer.cell(run, f"/rows/{place}/provider_incident_id"))
    if scope.workspace_column(run):
        columns = (columns[0], *scope.workspace_column(run), *columns[1:])
        for row, place in zip(rows, places, strict=True):
            row.insert(1, writer.cell(run, f"/rows/{place}/workspace"))
    writer.table(title, columns, rows)


def incident_items(run: ToolRun, places: list[int]) -> tuple[ListItem, ...]:
    """Rows as things that can be referred to; by their GUID where workspaces may use one number twice."""
    by_guid = bool(scope.workspace_column(run))
    return tuple(incident_item(run.rows[place], by_guid=by_guid) for place in places)


def compose_list(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """A numbered table with totals."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "incidents")
    places = list(range(len(run.rows)))
    if "most_alerts" in plan.aspects:
        places.sort(key=lambda place: -int(str(run.rows[place].get("alert_count") or 0)))
        _say_most_alerts(writer, run, places[0])
    elif len(places) == 1:
        _say_one(writer, run, places[0])
    total = scope.total_of(writer, run)
    template, parts = scope.filters_shown(run)
    order = _ORDERS.get(str(run.call.arguments.get("order", "newest")), "")
    filtered = f" ({template})" if template else ""
    if total.text == "1":
        writer.say(f"{{}} incident matches{filtered}.", total, *parts)
    else:
        writer.say(f"{{}} incidents match{filtered}, {order}.", total, *parts)
    _say_severities(writer, run)
    scope.say_workspaces(writer, run)
    scope.say_shown(writer, run, total, first=plan.first)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    incident_table(writer, run, places, first=plan.first, ids="ids" in plan.aspects)
    items = incident_items(run, places)
    only = items[0].value if len(items) == 1 else None
    suggestions = ways_on(items)
    if suggestions and not {"severity", "min_severity"} & set(run.call.arguments):
        suggestions += ("Only the high ones",)
    return Composed(
        items=items, first=plan.first, incident=only, suggestions=suggestions, shown=plan.first + len(run.rows)
    )


def _say_most_alerts(writer: AnswerWriter, run: ToolRun, place: int) -> None:
    writer.say(
        "Incident {} has the most alerts of those returned, {}: {}.",
        writer.number(run, f"/rows/{place}/number"),
        writer.number(run, f"/rows/{place}/alert_count"),
        writer.name(run, f"/rows/{place}/title"),
    )


def _say_one(writer: AnswerWriter, run: ToolRun, place: int) -> None:
    writer.say(
        "Incident {}: {}, severity {}, status {}, created {}.",
        writer.number(run, f"/rows/{place}/number"),
        writer.name(run, f"/rows/{place}/title"),
        writer.number(run, f"/rows/{place}/severity"),
        writer.number(run, f"/rows/{place}/status"),
        writer.time(run, f"/rows/{place}/created_time"),
    )


def compose_count(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Totals without a list."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "incidents")
    total = scope.total_of(writer, run)
    template, parts = scope.filters_shown(run)
    filtered = f" ({template})" if template else ""
    writer.say(f"{{}} incident{'' if total.text == '1' else 's'}{filtered}.", total, *parts)
    _say_severities(writer, run)
    scope.say_workspaces(writer, run)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    return Composed()


def count_facts(writer: AnswerWriter, run: ToolRun, pointer: str) -> list[Fact]:
    """ "High 3, Medium 1" from a mapping of names to counts; each count is a fact."""
    counts = run.at(pointer)
    if not isinstance(counts, Mapping):
        return []
    facts = []
    for name, count in counts.items():
        if count:
            fact = writer.number(run, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
            facts.append(phrase("{} {}", Fact(name), fact))
    return facts


def _say_severities(writer: AnswerWriter, run: ToolRun) -> None:
    severities = count_facts(writer, run, "/summary/by_severity")
    statuses = count_facts(writer, run, "/summary/by_status")
    if severities and "severity" not in run.call.arguments:
        writer.say("By severity: {}.", severities)
    if statuses and run.call.arguments.get("status") in (None, "Open"):
        writer.say("By status: {}.", statuses)


def _row(writer: AnswerWriter, run: ToolRun, place: int, shown: int) -> list[Fact]:
    row = f"/rows/{place}"
    return [
        Fact(f"[{shown}]"),
        writer.cell(run, f"{row}/number"),
        writer.cell(run, f"{row}/severity"),
        writer.cell(run, f"{row}/status"),
        writer.time_cell(run, f"{row}/created_time"),
        writer.cell(run, f"{row}/owner", limit=40),
        writer.cell(run, f"{row}/alert_count"),
        writer.cell(run, f"{row}/title"),
    ]
