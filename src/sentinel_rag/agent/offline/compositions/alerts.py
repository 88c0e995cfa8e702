"""Lists and counts of alerts, and one alert in detail."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.attributes import ATTRIBUTES, Attribute, values_of
from sentinel_rag.agent.offline.compositions import alert_fields, custom_details, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incidents import count_facts
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue

MOST_VALUES = 10
ONE_AT_A_TIME = "Events stand behind a single alert. Ask for the events behind one of these by its number, as in [1]."
WAYS_ON = ("Details of [1]", "10 minutes before and after alert [1]", "Top accounts by distinct alerts")
"""Questions that a list of several alerts suggests."""
COLUMNS = ("", "Time", "Severity", "Status", "Incident", "Entity", "Product", "Alert")


def compose_list(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """A numbered table with totals."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "alerts")
    if len(run.rows) == 1:
        writer.say(
            "{}: severity {}, status {}, at {}, incident {}.",
            writer.name(run, "/rows/0/name"),
            writer.number(run, "/rows/0/severity"),
            writer.number(run, "/rows/0/status"),
            writer.time(run, scope.event_time(run, "/rows/0")),
            writer.number(run, "/rows/0/incident_number"),
        )
    if plan.frame.has("attr:events"):
        writer.fixed(ONE_AT_A_TIME)
    if "fields" in plan.aspects:
        alert_fields.say_fields(writer, run, plan.aspects[1:])
    total = scope.total_of(writer, run)
    template, parts = scope.filters_shown(run)
    filtered = f" ({template})" if template else ""
    writer.say(f"{{}} alert{' matches' if total.text == '1' else 's match'}{filtered}.", total, *parts)
    _say_breakdown(writer, run)
    scope.say_workspaces(writer, run)
    scope.say_shown(writer, run, total, first=plan.first)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    places = range(len(run.rows))
    alert_table(writer, run, "/rows", list(places), first=plan.first)
    items = tuple(alert_item(run.rows[place]) for place in places)
    alert = items[0] if len(items) == 1 else None
    incident = run.call.arguments.get("incident")
    if incident is None and alert is not None and alert.incident:
        incident = alert.incident
    return Composed(
        items=items,
        first=plan.first,
        alert=alert,
        incident=None if incident is None else str(incident),
        suggestions=WAYS_ON if len(items) > 1 else (),
        shown=plan.first + len(run.rows),
    )


def compose_count(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Totals without a list."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "alerts")
    total = scope.total_of(writer, run)
    template, parts = scope.filters_shown(run)
    filtered = f" ({template})" if template else ""
    writer.say(f"{{}} alert{'' if total.text == '1' else 's'}{filtered}.", total, *parts)
    _say_breakdown(writer, run)
    scope.say_workspaces(writer, run)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    incident = run.call.arguments.get("incident")
    return Composed(incident=None if incident is None else str(incident))


def alert_table(
    writer: AnswerWriter, run: ToolRun, base: str, places: list[int], *, first: int = 0, title: str = ""
) -> None:
    """Alerts that stand in a list at `base` as a numbered table."""
    rows = []
    start = first + writer.listed + 1
    writer.listed += len(places)
    for shown, place in enumerate(places, start=start):
        row = f"{base}/{place}"
        rows.append(
            [
                Fact(f"[{shown}]"),
                writer.time_cell(run, scope.event_time(run, row)),
                writer.cell(run, f"{row}/severity"),
                writer.cell(run, f"{row}/status"),
                writer.cell(run, f"{row}/incident_number"),
                writer.cell(run, f"{row}/compromised_entity", limit=50),
                writer.cell(run, f"{row}/product", limit=50),
                writer.cell(run, f"{row}/name"),
            ]
        )
    placed = scope.workspace_column(run) if base == "/rows" else ()
    if placed:
        for line, place in zip(rows, places, strict=True):
            line.insert(1, writer.cell(run, f"{base}/{place}/workspace"))
    writer.table(title, (COLUMNS[0], *placed, *COLUMNS[1:]), rows)


def compose_one(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """One alert, found through its incident; `plan.alert_id` names it."""
    for row_place, row in enumerate(run.rows):
        alerts = row.get("alerts")
        for place, alert in enumerate(alerts if isinstance(alerts, list | tuple) else ()):
            if isinstance(alert, Mapping) and str(alert.get("alert_id", "")).lower() == plan.alert_id.lower():
                return _say_alert(writer, plan, run, row_place, f"/rows/{row_place}/alerts/{place}", alert)
    if run.rows:
        row = run.rows[0]
        writer.say(
            "The alert belongs to incident {} ({}), but its own row is not in this workspace.",
            writer.number(run, "/rows/0/number"),
            writer.name(run, "/rows/0/title"),
        )
        scope.say_partial(writer, run)
        return Composed(incident=str(row.get("number")))
    writer.say_none(
        [run], "No incident holds an alert with that id. The alert may have no incident, or its id may be mistyped."
    )
    scope.say_partial(writer, run)
    return Composed(outcome=Outcome.NO_DATA, suggestions=("Show the newest alerts",))


def _say_alert(
    writer: AnswerWriter, plan: Plan, run: ToolRun, row_place: int, at: str, alert: Mapping[str, JsonValue]
) -> Composed:
    number = f"/rows/{row_place}/number"
    item = alert_item(alert, incident=str(run.at(number) or ""))
    composed = Composed(alert=item, incident=str(run.at(number)))
    asked = plan.aspects[0] if plan.aspects else ""
    if asked == "incident":
        writer.say(
            "Alert {} belongs to incident {}, {}, severity {}, status {}.",
            writer.exact(run, f"{at}/alert_id"),
            writer.number(run, number),
            writer.name(run, f"/rows/{row_place}/title"),
            writer.number(run, f"/rows/{row_place}/severity"),
            writer.number(run, f"/rows/{row_place}/status"),
        )
        for label, name in (("Page", "url"), ("Page in the Defender portal", "defender_url")):
            if run.at(f"/rows/{row_place}/{name}"):
                writer.say(f"{label}: {{}}", writer.exact(run, f"/rows/{row_place}/{name}"))
        return composed
    if asked.startswith("attribute:"):
        attribute = next(known for known in ATTRIBUTES if known.label == asked.partition(":")[2])
        if _say_property(writer, run, at, attribute):
            return composed
        writer.say_compared([(run, at)], "That alert names no {}. Here is what it does hold:", Fact(attribute.label))
    writer.say(
        "{}: severity {}, status {}, at {}.",
        writer.name(run, f"{at}/name"),
        writer.number(run, f"{at}/severity"),
        writer.number(run, f"{at}/status"),
        writer.time(run, scope.event_time(run, at)),
    )
    if alert.get("start_time") or alert.get("end_time"):
        writer.say("Activity from {} to {}.", writer.time(run, f"{at}/start_time"), writer.time(run, f"{at}/end_time"))
    if alert.get("row_time"):
        writer.say(
            "Told as of {} (ProcessingEndTime); Defender may have changed it since.",
            writer.time(run, f"{at}/row_time"),
        )
    writer.say("Raised by {}; alert id {}.", writer.name(run, f"{at}/product"), writer.exact(run, f"{at}/alert_id"))
    writer.say(
        "It belongs to incident {}, {}.", writer.number(run, number), writer.name(run, f"/rows/{row_place}/title")
    )
    for field_name, label in (("tactics", "Tactics"), ("techniques", "Techniques")):
        facts = writer.joined(run, f"{at}/{field_name}", writer.number)
        if facts:
            writer.say(f"{label}: {{}}.", facts)
    if alert.get("description"):
        writer.say("Description: {}", writer.words(run, f"{at}/description"))
    if alert.get("url"):
        writer.say("Page: {}", writer.exact(run, f"{at}/url"))
    custom_details.say(writer, run, f"{at}/custom_details")
    entities = alert.get("entities")
    if isinstance(entities, list | tuple) and entities:
        rows = [
            [
                writer.cell(run, f"{at}/entities/{place}/kind"),
                writer.cell(run, f"{at}/entities/{place}/name", limit=300),
            ]
            for place in range(len(entities))
        ]
        writer.table("Entities of the alert", ("Kind", "Name"), rows)
    scope.say_partial(writer, run)
    return composed


def _say_property(writer: AnswerWriter, run: ToolRun, at: str, attribute: Attribute) -> bool:
    """The values of a property in one alert, each once; False if it tells none."""
    entities = run.at(f"{at}/entities")
    found = {
        str(value): f"{at}/entities/{place}{pointer}"
        for place, entity in enumerate(entities if isinstance(entities, list | tuple) else ())
        if isinstance(entity, Mapping)
        for pointer, value in values_of(attribute, entity)
    }
    if found:
        facts = [writer.exact(run, pointer) for pointer in list(found.values())[:MOST_VALUES]]
        writer.say("{}: {} (alert {}).", Fact(attribute.label), facts, writer.name(run, f"{at}/name"))
    return bool(found)


def _say_breakdown(writer: AnswerWriter, run: ToolRun) -> None:
    severities = count_facts(writer, run, "/summary/by_severity")
    if severities and "severity" not in run.call.arguments:
        writer.say("By severity: {}.", severities)
    statuses = count_facts(writer, run, "/summary/by_status")
    if statuses and "status" not in run.call.arguments:
        writer.say("By status: {}.", statuses)
