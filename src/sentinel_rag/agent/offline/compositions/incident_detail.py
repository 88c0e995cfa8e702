"""One incident: all of it, or the fields that were asked for, and the analysis that a person may ask for afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sentinel_rag.agent.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.conversation import AskedCall, ListItem, Offer
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.alert_list import brief_alert_table
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incidents import incident_items, incident_table
from sentinel_rag.agent.offline.filters import TACTICS
from sentinel_rag.agent.offline.plan import Plan, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

ANALYSIS_OFFER = "Would you like me to analyze potential implications?"
ANALYSIS_NOTICE = "This is an analysis by rules and not a finding: a human must verify it before acting on it."
MAX_ALERTS = 12
MAX_ENTITIES = 15
_KINDS_SHOWN = {
    "account": "Accounts",
    "host": "Hosts",
    "ip": "IP addresses",
    "url": "URLs",
    "file": "Files",
    "filehash": "Hashes",
}
_MATCHED = {
    "incident_number": "a Sentinel incident number",
    "provider_incident_id": "the Defender id of a Sentinel incident, not a Sentinel number",
    "incident_name": "the GUID (IncidentName) of an incident",
    "alert_id": "the id of an alert in an incident",
    "url": "the URL of an incident",
}


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    if run.call.tool_name == "query_incidents":
        return _chosen_by_title(writer, plan, run)
    if not run.rows:
        return _not_found(writer, run)
    if len(run.rows) > 1:
        return _ambiguous(writer, run)
    _say_identity(writer, plan, run)
    aspects = plan.aspects
    if aspects:
        for aspect in aspects:
            _say_aspect(writer, run, aspect)
        items: tuple[ListItem, ...] = ()
        offers: tuple[Offer, ...] = ()
    else:
        items = _say_everything(writer, run)
        call = AskedCall("get_incident_detail", dict(run.call.arguments), View.ANALYSIS.value)
        offers = (Offer(ANALYSIS_OFFER, call),)
        writer.fixed(ANALYSIS_OFFER)
    scope.say_partial(writer, run)
    return Composed(incident=str(run.rows[0].get("number")), items=items, offers=offers)


def _chosen_by_title(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """ "The phishing incident": one fits and is told, several are asked back as a numbered list."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "incidents")
    total = scope.total_of(writer, run)
    title = Echo(str(run.call.arguments.get("title_contains", "")))
    places = list(range(len(run.rows)))
    items = incident_items(run, places)
    writer.say("{} incidents have {} in their title. Which one do you mean? Answer with [n].", total, title)
    scope.say_window(writer, run)
    incident_table(writer, run, places, first=0)
    return Composed(outcome=Outcome.CLARIFICATION, items=items, shown=len(items))


def _not_found(writer: AnswerWriter, run: ToolRun) -> Composed:
    writer.say(
        "No incident matches {}: I looked for it as a Sentinel number, a Defender id, a GUID, an alert id and a URL.",
        Echo(str(run.call.arguments["incident"])),
    )
    scope.say_partial(writer, run)
    return Composed(outcome=Outcome.NO_DATA, suggestions=("List the incidents, newest first",))


def _ambiguous(writer: AnswerWriter, run: ToolRun) -> Composed:
    writer.say(
        "{} may mean more than one incident. Which one do you mean? Answer with [n].",
        Echo(str(run.call.arguments["incident"])),
    )
    scope.say_partial(writer, run)
    places = list(range(len(run.rows)))
    incident_table(writer, run, places, first=0)
    return Composed(outcome=Outcome.CLARIFICATION, items=incident_items(run, places))


def _say_identity(writer: AnswerWriter, plan: Plan, run: ToolRun) -> None:
    """Which incident it is, and by what it was found where that is not its number."""
    matched = str(run.at("/summary/matched_by") or "")
    asked = str(run.call.arguments["incident"]).lstrip("#")
    if "ids" in plan.aspects or (matched and matched != "incident_number"):
        fact = writer.number(run, "/summary/matched_by")
        meaning = Fact(_MATCHED.get(matched, fact.text), fact.evidence)
        if "ids" in plan.aspects and matched == "incident_number":
            writer.say("{} is {}.", Echo(asked), meaning)
        else:
            writer.say(
                "{} is {}: it is Sentinel incident {}.", Echo(asked), meaning, writer.number(run, "/rows/0/number")
            )
    writer.say("Incident {}: {}.", writer.number(run, "/rows/0/number"), writer.name(run, "/rows/0/title"))


def _say_everything(writer: AnswerWriter, run: ToolRun) -> tuple[ListItem, ...]:
    row = run.rows[0]
    writer.say(
        "Severity {}, status {}, owner {}.",
        writer.number(run, "/rows/0/severity"),
        writer.number(run, "/rows/0/status"),
        writer.name(run, "/rows/0/owner"),
    )
    for aspect in ("created", "alert_count", "tactics", "techniques"):
        _say_aspect(writer, run, aspect)
    if row.get("description"):
        writer.say("Description: {}", writer.words(run, "/rows/0/description"))
    _say_ids(writer, run)
    entities = row.get("entities")
    for kind in entities if isinstance(entities, Mapping) else ():
        if kind in _KINDS_SHOWN:
            _say_entities(writer, run, kind, limit=5)
    comments = row.get("comments")
    if isinstance(comments, list | tuple) and comments:
        _say_comments(writer, run)
    return brief_alert_table(writer, run, "/rows/0/alerts", limit=MAX_ALERTS)


def _say_aspect(writer: AnswerWriter, run: ToolRun, aspect: str) -> None:
    if aspect.startswith("entities:"):
        kind = aspect.partition(":")[2]
        if kind:
            _say_entities(writer, run, kind, limit=MAX_ENTITIES, say_none=True)
        else:
            entities = run.rows[0].get("entities")
            for each in entities if isinstance(entities, Mapping) else ():
                _say_entities(writer, run, each, limit=MAX_ENTITIES)
        return
    _ASPECTS[aspect](writer, run)


def _say_owner(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/rows/0/owner"):
        writer.say("Owner: {}.", writer.name(run, "/rows/0/owner"))
    else:
        writer.fixed("It has no owner.")


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
        "Created {}, last updated {}.",
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


def _say_list(label: str, name: str) -> Callable[[AnswerWriter, ToolRun], None]:
    def say(writer: AnswerWriter, run: ToolRun) -> None:
        facts = writer.joined(run, f"/rows/0/{name}", writer.number, limit=30)
        if facts:
            writer.say(f"{label}: {{}}.", facts)
        else:
            writer.fixed(f"{label}: none recorded.")

    return say


def _say_comments(writer: AnswerWriter, run: ToolRun) -> None:
    comments = run.at("/rows/0/comments")
    if not isinstance(comments, list | tuple) or not comments:
        writer.fixed("Nobody has commented on it.")
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


def _say_timeline(writer: AnswerWriter, run: ToolRun) -> None:
    events = run.at("/rows/0/timeline")
    if not isinstance(events, list | tuple) or not events:
        writer.fixed("No timeline is recorded.")
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


def _say_ids(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say(
        "Sentinel number {}, Defender id {}, GUID {}.",
        writer.number(run, "/rows/0/number"),
        writer.number(run, "/rows/0/provider_incident_id"),
        writer.exact(run, "/rows/0/incident_name"),
    )
    if run.at("/rows/0/url"):
        writer.say("Page: {}", writer.exact(run, "/rows/0/url"))


def _say_classification(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say("Classification: {}.", writer.number(run, "/rows/0/classification"))


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


def _say_entities(writer: AnswerWriter, run: ToolRun, kind: str, *, limit: int, say_none: bool = False) -> None:
    base = f"/rows/0/entities/{escape(kind)}"
    entities = run.at(base)
    label = _KINDS_SHOWN.get(kind, kind)
    if not isinstance(entities, list | tuple) or not entities:
        if say_none:
            writer.fixed(f"{label}: none recorded.")
        return
    facts = []
    for place in range(min(len(entities), limit)):
        name = writer.exact(run, f"{base}/{place}/name", limit=200)
        facts.append(name)
    if len(entities) > limit:
        writer.say(f"{label} ({{}} in all, the first of them here): {{}}.", writer.count(run, base), facts)
    elif say_none:
        writer.say(f"{label} ({{}}): {{}}.", writer.count(run, base), facts)
    else:
        writer.say(f"{label}: {{}}.", facts)


_ASPECTS: dict[str, Callable[[AnswerWriter, ToolRun], None]] = {
    "owner": _say_owner,
    "severity": _say_severity,
    "status": _say_status,
    "created": _say_created,
    "updated": _say_created,
    "closed": _say_closed,
    "tactics": _say_list("Tactics", "tactics"),
    "techniques": _say_list("Techniques", "techniques"),
    "comments": _say_comments,
    "timeline": _say_timeline,
    "alert_count": _say_alert_count,
    "ids": _say_ids,
    "classification": _say_classification,
    "products": _say_products,
}


def compose_analysis(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """What the recorded facts suggest: tactics in the order of ATT&CK, and entities that tie alerts together."""
    if len(run.rows) != 1:
        return compose(writer, plan, run)
    writer.fixed(ANALYSIS_NOTICE)
    _say_identity(writer, plan, run)
    tactics = run.at("/rows/0/tactics")
    found = [str(tactic) for tactic in tactics] if isinstance(tactics, list | tuple) else []
    ordered = sorted(range(len(found)), key=lambda place: _tactic_rank(found[place]))
    if ordered:
        writer.say(
            "In the order of the ATT&CK matrix its alerts cover: {}.",
            [writer.number(run, f"/rows/0/tactics/{place}") for place in ordered],
        )
        latest = found[ordered[-1]].replace(" ", "")
        if latest in ("Exfiltration", "Impact"):
            writer.fixed("The last of these tactics means that harm may have been done already; look at it first.")
        elif latest in ("LateralMovement", "Collection", "CommandAndControl", "CredentialAccess"):
            writer.fixed("The last of these tactics means that the attacker may hold more than the first machine.")
    else:
        writer.fixed("No tactics are recorded, so the stage of the attack cannot be told from the alerts.")
    entities = run.at("/rows/0/entities")
    shared: list[tuple[int, str]] = []
    for kind, members in entities.items() if isinstance(entities, Mapping) else ():
        for place, member in enumerate(members if isinstance(members, list | tuple) else ()):
            count = member.get("alerts") if isinstance(member, Mapping) else None
            if isinstance(count, int) and count > 1 and kind in ("account", "host", "ip", "url", "file", "process"):
                shared.append((count, f"/rows/0/entities/{escape(kind)}/{place}"))
    shared.sort(key=lambda item: -item[0])
    if shared:
        writer.fixed("Entities that several of its alerts share, which tie them together:")
        writer.table(
            "Shared entities",
            ("Alerts", "Entity"),
            [[writer.cell(run, f"{at}/alerts"), writer.cell(run, f"{at}/name", limit=200)] for _, at in shared[:10]],
        )
    else:
        writer.fixed("No entity is shared by several of its alerts; they may be separate events.")
    scope.say_partial(writer, run)
    return Composed(incident=str(run.rows[0].get("number")))


def _tactic_rank(tactic: str) -> int:
    name = tactic.replace(" ", "").lower()
    known = [each.lower() for each in TACTICS]
    return known.index(name) if name in known else len(known)
