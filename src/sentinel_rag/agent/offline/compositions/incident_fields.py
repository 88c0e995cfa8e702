"""The fields of one incident, each said in a line or a table of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact, phrase
from sentinel_rag.agent.offline.compositions import custom_details
from sentinel_rag.agent.offline.compositions.incident_entities import MAX_ENTITIES, say_entities
from sentinel_rag.agent.offline.compositions.incident_properties import say_property
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

MOST_ALERTS, MOST_DRAWN, MAX_NAMED = 5, 40, 12
_MATCHED = {
    "incident_number": "a Sentinel incident number",
    "provider_incident_id": "the Defender id of a Sentinel incident, not a Sentinel number",
    "incident_name": "the GUID (IncidentName) of an incident",
    "alert_id": "the id of an alert in an incident",
    "url": "the URL of an incident",
}


def say_identity(writer: AnswerWriter, plan: Plan, run: ToolRun) -> None:
    """Which incident it is, and by what it was found where that is not its number."""
    matched = str(run.at("/summary/matched_by") or "")
    asked = str(run.call.arguments["incident"]).lstrip("#")
    if "ids" in plan.aspects or (matched and matched != "incident_number"):
        fact = writer.number(run, "/summary/matched_by")
        meaning = fact.shown_as(_MATCHED.get(matched, fact.text))
        if "ids" in plan.aspects and matched == "incident_number":
            writer.say("{} is {}.", Echo(asked), meaning)
        else:
            writer.say(
                "{} is {}: it is Sentinel incident {}.", Echo(asked), meaning, writer.number(run, "/rows/0/number")
            )
    writer.say("Incident {}: {}.", writer.number(run, "/rows/0/number"), writer.name(run, "/rows/0/title"))


def say_aspect(writer: AnswerWriter, run: ToolRun, aspect: str) -> None:
    """One field by its name in `views.toml`, or `entities:KIND`."""
    if aspect.startswith("values:"):
        say_property(writer, run, aspect.partition(":")[2])
        return
    if aspect.startswith("entities:"):
        kind = aspect.partition(":")[2]
        if kind:
            say_entities(writer, run, kind, limit=MAX_ENTITIES, say_none=True)
        else:
            entities = run.rows[0].get("entities")
            for each in entities if isinstance(entities, Mapping) else ():
                say_entities(writer, run, each, limit=MAX_ENTITIES)
        return
    _ASPECTS[aspect](writer, run)


def _say_owner(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/rows/0/owner"):
        writer.say("Owner: {}.", writer.name(run, "/rows/0/owner"))
    else:
        writer.say_compared([(run, "/rows/0")], "It has no owner.")


def _say_status(writer: AnswerWriter, run: ToolRun) -> None:
    closed = run.at("/rows/0/closed_time")
    if closed and run.at("/rows/0/status") == "Closed":
        writer.say(
            "Status: {}, since {}.", writer.number(run, "/rows/0/status"), writer.time(run, "/rows/0/closed_time")
        )
    else:
        writer.say("Status: {}.", writer.number(run, "/rows/0/status"))


def _say_severity(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say("Severity: {}.", writer.number(run, "/rows/0/severity"))


def _say_created(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say(
        "Created {}, updated {}.",
        writer.time(run, "/rows/0/created_time"),
        writer.time(run, "/rows/0/updated_time"),
    )


def _say_closed(writer: AnswerWriter, run: ToolRun) -> None:
    if not run.at("/rows/0/closed_time"):
        writer.say("No closing time is recorded; its status is {}.", writer.number(run, "/rows/0/status"))
    elif run.at("/rows/0/status") == "Closed":
        writer.say("Closed {}.", writer.time(run, "/rows/0/closed_time"))
    else:
        writer.say(
            "A closing time of {} is recorded, but its status is {}: it was closed once and is open again.",
            writer.time(run, "/rows/0/closed_time"),
            writer.number(run, "/rows/0/status"),
        )


def _say_reopened(writer: AnswerWriter, run: ToolRun) -> None:
    """Reopened, if it carries a closing time and is open; otherwise its newest version does not tell."""
    if run.at("/rows/0/closed_time") and run.at("/rows/0/status") != "Closed":
        writer.say_compared([(run, "/rows/0")], "It was reopened.")
        _say_closed(writer, run)
    else:
        writer.fixed(
            "Its newest version does not tell whether it was ever reopened; the query incidents_reopened does."
        )
        _say_status(writer, run)


def _say_list(label: str, name: str) -> Callable[[AnswerWriter, ToolRun], None]:
    def say(writer: AnswerWriter, run: ToolRun) -> None:
        facts = writer.joined(run, f"/rows/0/{name}", writer.number, limit=30)
        if facts:
            writer.say(f"{label}: {{}}.", facts)
        else:
            writer.say_compared([(run, "/rows/0")], f"{label}: none recorded.")

    return say


def say_comments(writer: AnswerWriter, run: ToolRun) -> None:
    """The comments as a table."""
    comments = run.at("/rows/0/comments")
    if not isinstance(comments, list | tuple) or not comments:
        writer.say_compared([(run, "/rows/0")], "Nobody has commented on it.")
        return
    rows = [
        [
            writer.time_cell(run, f"/rows/0/comments/{place}/time"),
            writer.cell(run, f"/rows/0/comments/{place}/author", limit=60),
            writer.cell(run, f"/rows/0/comments/{place}/message", limit=400),
        ]
        for place in range(min(len(comments), 30))
    ]
    writer.fixed("Its comments are in the table below.")
    writer.table("Comments", ("Time", "Author", "Comment"), rows)


def say_bookmarks(writer: AnswerWriter, run: ToolRun) -> None:
    """The bookmarks of hunters as a table."""
    bookmarks = run.at("/rows/0/bookmarks")
    if not isinstance(bookmarks, list | tuple) or not bookmarks:
        writer.say_compared([(run, "/rows/0")], "It shows no bookmarks.")
        return
    rows = [
        [
            writer.time_cell(run, f"/rows/0/bookmarks/{place}/event_time"),
            writer.cell(run, f"/rows/0/bookmarks/{place}/name", limit=100),
            writer.cell(run, f"/rows/0/bookmarks/{place}/created_by", limit=60),
            writer.cell(run, f"/rows/0/bookmarks/{place}/notes", limit=400),
            writer.cell(run, f"/rows/0/bookmarks/{place}/query", limit=400),
        ]
        for place in range(len(bookmarks))
    ]
    writer.fixed("Its bookmarks are in the table below.")
    writer.table("Bookmarks", ("Time", "Bookmark", "Made by", "Notes", "Query"), rows)


def _say_timeline(writer: AnswerWriter, run: ToolRun) -> None:
    events = run.at("/rows/0/timeline")
    if not isinstance(events, list | tuple) or not events:
        writer.say_compared([(run, "/rows/0")], "No timeline is recorded.")
        return
    rows = [
        [
            writer.time_cell(run, f"/rows/0/timeline/{place}/time"),
            writer.cell(run, f"/rows/0/timeline/{place}/event", limit=300),
        ]
        for place in range(min(len(events), 100))
    ]
    writer.fixed("Its timeline is in the table below, in order of time.")
    writer.table("Timeline", ("Time", "Event"), rows)


def _say_alert_count(writer: AnswerWriter, run: ToolRun) -> None:
    pointer = "/summary/alert_count" if run.at("/summary/alert_count") is not None else "/rows/0/alert_count"
    writer.say("Alerts: {}.", writer.number(run, pointer))
    missing = run.at("/rows/0/alert_ids_without_row")
    if isinstance(missing, list | tuple) and missing:
        ids = writer.joined(run, "/rows/0/alert_ids_without_row", writer.exact)
        writer.say("Of these the workspace holds no row for: {}.", ids)


def say_ids(writer: AnswerWriter, run: ToolRun) -> None:
    """Every id of the incident, told apart."""
    writer.say(
        "Sentinel number {}, Defender id {}, GUID {}.",
        writer.number(run, "/rows/0/number"),
        writer.number(run, "/rows/0/provider_incident_id"),
        writer.exact(run, "/rows/0/incident_name"),
    )
    if run.at("/rows/0/url"):
        writer.say("Page: {}", writer.exact(run, "/rows/0/url"))
    if run.at("/rows/0/defender_url"):
        writer.say("Page in the Defender portal: {}", writer.exact(run, "/rows/0/defender_url"))


def _say_began(writer: AnswerWriter, run: ToolRun) -> None:
    """The earliest start of an alert's activity, else when the incident was created."""
    alerts = run.at("/rows/0/alerts")
    starts = [
        (str(alert.get("start_time") or alert.get("time")), place, "start_time" if alert.get("start_time") else "time")
        for place, alert in enumerate(alerts if isinstance(alerts, list | tuple) else ())
        if isinstance(alert, Mapping) and (alert.get("start_time") or alert.get("time"))
    ]
    if starts:
        _, place, key = min(starts)
        writer.say(
            "The earliest activity that its alerts tell began {} (alert {}).",
            writer.time(run, f"/rows/0/alerts/{place}/{key}"),
            writer.name(run, f"/rows/0/alerts/{place}/name"),
        )
    else:
        _say_created(writer, run)


def _say_duration(writer: AnswerWriter, run: ToolRun) -> None:
    """How long it was open beside its times, or that it still is."""
    seconds = run.at("/rows/0/open_duration_s")
    closed = run.at("/rows/0/status") == "Closed"
    if isinstance(seconds, int | float) and closed:
        writer.say("It was open for {}.", writer.duration(run, "/rows/0/open_duration_s"))
    elif not closed:
        writer.say(
            "It is still open, status {}, created {}.",
            writer.number(run, "/rows/0/status"),
            writer.time(run, "/rows/0/created_time"),
        )
        if run.at("/rows/0/closed_time"):
            _say_closed(writer, run)
        return
    writer.say("Created {}, status {}.", writer.time(run, "/rows/0/created_time"), writer.number(run, "/rows/0/status"))
    _say_closed(writer, run)


def _say_response(writer: AnswerWriter, run: ToolRun) -> None:
    """How long after its creation somebody first changed it."""
    if run.at("/rows/0/first_response_s") is None:
        writer.say_compared(
            [(run, "/rows/0")], "Nobody has touched it so far, or the time of the first change is lost."
        )
    else:
        writer.say("First changed {} after it was created.", writer.duration(run, "/rows/0/first_response_s"))
    _say_created(writer, run)


def _say_description(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/rows/0/description"):
        writer.say("Description: {}", writer.words(run, "/rows/0/description"))
    else:
        writer.say_compared([(run, "/rows/0")], "It has no description.")


def _alerts_of(run: ToolRun) -> list[tuple[str, Mapping[str, JsonValue]]]:
    """The alerts of the incident with their places, in order of time."""
    alerts = run.at("/rows/0/alerts")
    found = [
        (f"/rows/0/alerts/{place}", alert)
        for place, alert in enumerate(alerts if isinstance(alerts, list | tuple) else ())
        if isinstance(alert, Mapping)
    ]
    return sorted(found, key=lambda each: str(each[1].get("start_time") or each[1].get("time") or ""))


def _say_why(writer: AnswerWriter, run: ToolRun) -> None:
    """No field says why it has its severity; what stands beside it does."""
    _say_severity(writer, run)
    writer.fixed("No field says why; the rule that raised an alert gives the severity. These alerts carry the same:")
    severity = run.at("/rows/0/severity")
    same = [at for at, alert in _alerts_of(run) if alert.get("severity") == severity]
    for at in same[:MOST_ALERTS]:
        writer.say("{} ({}).", writer.name(run, f"{at}/name"), writer.name(run, f"{at}/product"))
    if not same:
        writer.say_compared([(run, "/rows/0")], "None of its alerts here has that severity.")
    _say_list("Tactics", "tactics")(writer, run)


def _say_diagram(writer: AnswerWriter, run: ToolRun) -> None:
    """The alerts in order of time, each with what it names: what a picture would join by lines."""
    writer.fixed("I draw no pictures. Its alerts stand below in order of time, each with what it names.")
    rows = []
    for at, alert in _alerts_of(run)[:MOST_DRAWN]:
        entities = alert.get("entities")
        count = len(entities) if isinstance(entities, list | tuple) else 0
        named = [writer.cell(run, f"{at}/entities/{each}/name", limit=80) for each in range(min(count, MAX_NAMED))]
        began = f"{at}/start_time" if alert.get("start_time") else f"{at}/time"
        names = phrase("{}", named) if named else Fact("-")
        rows.append([writer.time_cell(run, began), writer.cell(run, f"{at}/name"), names])
    writer.table("Alerts and what they name", ("Time", "Alert", "Names"), rows)


def _say_classification(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/rows/0/classification_reason"):
        writer.say(
            "Classification: {} ({}).",
            writer.number(run, "/rows/0/classification"),
            writer.number(run, "/rows/0/classification_reason"),
        )
    else:
        writer.say("Classification: {}.", writer.number(run, "/rows/0/classification"))


def say_ending(writer: AnswerWriter, run: ToolRun) -> None:
    """How and why it was closed: when, its classification with the reason, and what people wrote."""
    closed = run.at("/rows/0/status") == "Closed"
    if not closed:
        writer.say("It is not closed: its status is {}.", writer.number(run, "/rows/0/status"))
    if closed or run.at("/rows/0/closed_time"):
        _say_closed(writer, run)
    if run.at("/rows/0/classification"):
        _say_classification(writer, run)
    elif closed:
        writer.say_compared([(run, "/rows/0")], "No reason for closing is recorded: it has no classification.")
    if run.at("/rows/0/classification_comment"):
        writer.say("Closing comment: {}", writer.words(run, "/rows/0/classification_comment"))
    elif closed:
        writer.say_compared([(run, "/rows/0")], "No closing comment was written.")
    say_comments(writer, run)


def _say_closer(writer: AnswerWriter, run: ToolRun) -> None:
    writer.fixed("Who closed it is not recorded in its row; the owner need not be the one.")
    _say_owner(writer, run)


def _say_products(writer: AnswerWriter, run: ToolRun) -> None:
    alerts = run.at("/rows/0/alerts")
    facts: list[Fact] = []
    seen: set[object] = set()
    for place, alert in enumerate(alerts if isinstance(alerts, list | tuple) else ()):
        product = alert.get("product") if isinstance(alert, Mapping) else None
        if product and product not in seen:
            seen.add(product)
            facts.append(writer.name(run, f"/rows/0/alerts/{place}/product"))
    writer.say(
        "Provider {}; products of its alerts: {}.", writer.name(run, "/rows/0/provider"), facts or [Fact("none")]
    )


def _say_custom_details(writer: AnswerWriter, run: ToolRun) -> None:
    if not custom_details.say(writer, run, "/rows/0/custom_details"):
        writer.say_compared([(run, "/rows/0")], "No custom details are recorded with its alerts.")
    else:
        writer.fixed("Its custom details, over all its alerts, are told here as the analytic rules wrote them.")


_ASPECTS: dict[str, Callable[[AnswerWriter, ToolRun], None]] = {
    "owner": _say_owner,
    "severity": _say_severity,
    "status": _say_status,
    "created": _say_created,
    "updated": _say_created,
    "closed": _say_closed,
    "duration": _say_duration,
    "response": _say_response,
    "description": _say_description,
    "why": _say_why,
    "diagram": _say_diagram,
    "began": _say_began,
    "tactics": _say_list("Tactics", "tactics"),
    "techniques": _say_list("Techniques", "techniques"),
    "comments": say_comments,
    "bookmarks": say_bookmarks,
    "timeline": _say_timeline,
    "alert_count": _say_alert_count,
    "ids": say_ids,
    "classification": _say_classification,
    "reason": say_ending,
    "closer": _say_closer,
    "reopened": _say_reopened,
    "products": _say_products,
    "custom_details": _say_custom_details,
}
