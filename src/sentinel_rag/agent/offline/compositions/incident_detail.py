"""One incident: all of it, or the fields that were asked for, and the analysis that a person may ask for afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.alert_list import brief_alert_table
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incident_entities import KINDS_SHOWN, say_entities
from sentinel_rag.agent.offline.compositions.incident_fields import (
    say_aspect,
    say_bookmarks,
    say_comments,
    say_identity,
    say_ids,
)
from sentinel_rag.agent.offline.compositions.incidents import incident_items, incident_table
from sentinel_rag.agent.planner import Option, offer
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.things import ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

ANALYSIS_OFFER = "Would you like me to analyze potential implications?"
MAX_ALERTS = 12


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """One incident whole or in the fields asked for; several that fit are asked back."""
    if run.call.tool_name == "query_incidents":
        return _chosen_by_title(writer, plan, run)
    if not run.rows:
        return _not_found(writer, run)
    if len(run.rows) > 1:
        return _ambiguous(writer, run)
    say_identity(writer, plan, run)
    aspects = plan.aspects
    items: tuple[ListItem, ...] = ()
    offers: tuple[Option, ...] = ()
    whole = not aspects or "everything" in aspects
    if whole:
        _say_state(writer, run)
    for aspect in aspects:
        if aspect != "everything":
            say_aspect(writer, run, aspect)
    if whole:
        said = frozenset(aspect.partition(":")[2] for aspect in aspects if aspect.startswith("entities:"))
        items = _say_rest(writer, run, without=said)
        offers = (offer(ANALYSIS_OFFER, "get_incident_detail", run.call.arguments, View.ANALYSIS),)
        writer.fixed(ANALYSIS_OFFER)
    scope.say_partial(writer, run, () if whole else aspects)
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
    writer.say_none(
        [run],
        "No incident matches {}: I looked for it as a Sentinel number, a Defender id, a GUID, an alert id and a URL.",
        Echo(str(run.call.arguments["incident"])),
    )
    scope.say_partial(writer, run)
    if run.at("/coverage/table_rows") == 0:
        writer.say_none([run], "The workspace holds no incident at all: nothing was collected or imported yet.")
        scope.say_how_to_fill(writer)
        return Composed(outcome=Outcome.NO_DATA, suggestions=("What data do you have?",))
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


def _say_state(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say(
        "Severity {}, status {}, owner {}.",
        writer.number(run, "/rows/0/severity"),
        writer.number(run, "/rows/0/status"),
        writer.name(run, "/rows/0/owner"),
    )
    for aspect in ("created", "alert_count"):
        say_aspect(writer, run, aspect)


def _say_rest(writer: AnswerWriter, run: ToolRun, *, without: frozenset[str]) -> tuple[ListItem, ...]:
    """Tactics, description, ids, comments, the first alerts, and the entities of the kinds that are not told yet."""
    row = run.rows[0]
    for aspect in ("tactics", "techniques"):
        say_aspect(writer, run, aspect)
    if row.get("description"):
        writer.say("Description: {}", writer.words(run, "/rows/0/description"))
    say_ids(writer, run)
    entities = row.get("entities")
    for kind in entities if isinstance(entities, Mapping) else ():
        if kind in KINDS_SHOWN and kind not in without:
            say_entities(writer, run, kind, limit=5)
    comments = row.get("comments")
    if isinstance(comments, list | tuple) and comments:
        say_comments(writer, run)
    bookmarks = row.get("bookmarks")
    if isinstance(bookmarks, list | tuple) and bookmarks:
        say_bookmarks(writer, run)
    return brief_alert_table(writer, run, "/rows/0/alerts", limit=MAX_ALERTS)
