"""The raw events behind an alert, or why there are none to show and what evidence there is instead."""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions import catalogues, custom_details, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MOST_ENTITIES = 25
_WHY_NOT = {
    "no_query": "No query is stored with this alert.",
    "refused": "The query that is stored with this alert was not run.",
    "failed": "The query that is stored with this alert was run and gave no answer.",
}


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """What stands behind one alert."""
    if not run.at("/summary/alert_id"):
        writer.say_none([run], "There is no such alert in this workspace.")
        scope.say_partial(writer, run)
        return Composed(outcome=Outcome.NO_DATA, suggestions=("Show the newest alerts",))
    number = run.at("/summary/incident_number")
    incident = None if number is None else str(number)
    alert_id, time = str(run.at("/summary/alert_id")), str(run.at("/summary/start_time") or "")
    composed = Composed(alert=ListItem("alert", alert_id, time=time, incident=incident or ""), incident=incident)
    if run.at("/summary/ran"):
        _say_events(writer, run)
        outcome = Outcome.ANSWERED if run.rows else Outcome.NO_DATA
        return Composed(outcome=outcome, alert=composed.alert, incident=incident, shown=len(run.rows))
    writer.fixed(_WHY_NOT.get(str(run.at("/summary/why_not")), "There are no events to show."))
    scope.say_partial(writer, run)
    _say_query(writer, run)
    _say_evidence(writer, run)
    return composed


def _say_events(writer: AnswerWriter, run: ToolRun) -> None:
    total = scope.total_of(writer, run)
    carried = run.at("/summary/source") == "alert"
    what = "lies, by its own record," if carried else "the query of its rule finds"
    writer.say(
        f"Behind the alert {{}} ({{}}) {what} {{}} event{'' if total.text == '1' else 's'}.",
        writer.name(run, "/summary/alert_name"),
        writer.number(run, "/summary/severity"),
        total,
    )
    if run.at("/summary/events_told") is not None:
        writer.say("The alert itself told {} when it was raised.", writer.number(run, "/summary/events_told"))
    if len(run.rows) < int(total.text):
        writer.say("Rows shown: {}.", writer.number(run, "/coverage/rows_returned"))
    scope.say_window(writer, run)
    writer.say("That window is {}.", writer.words(run, "/summary/window_told_by"))
    scope.say_partial(writer, run)
    _say_query(writer, run)
    if run.rows:
        catalogues.say_rows(writer, run)


def _say_query(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/summary/rule_name"):
        writer.say("The rule: {}.", writer.name(run, "/summary/rule_name"))
    if run.at("/summary/query"):
        writer.say("Its query, shown as data: {}", writer.exact(run, "/summary/query", limit=1500))


def _say_evidence(writer: AnswerWriter, run: ToolRun) -> None:
    """What an alert without rows still tells."""
    writer.say(
        "{}: severity {}, raised by {}, activity from {} to {}.",
        writer.name(run, "/summary/alert_name"),
        writer.number(run, "/summary/severity"),
        writer.name(run, "/summary/product"),
        writer.time(run, "/summary/start_time"),
        writer.time(run, "/summary/end_time"),
    )
    writer.say(
        "Alert id {}, id in its product {}.",
        writer.exact(run, "/summary/alert_id"),
        writer.exact(run, "/summary/vendor_id"),
    )
    if run.at("/summary/url"):
        writer.say("Page: {}", writer.exact(run, "/summary/url"))
    custom_details.say(writer, run, "/summary/custom_details")
    entities = run.at("/summary/entities")
    count = min(len(entities), MOST_ENTITIES) if isinstance(entities, list | tuple) else 0
    if count:
        writer.say("Its entities: {} in all.", writer.number(run, "/summary/entity_count"))
        rows = [
            [
                writer.cell(run, f"/summary/entities/{place}/kind"),
                writer.cell(run, f"/summary/entities/{place}/name", limit=300),
            ]
            for place in range(count)
        ]
        writer.table("Entities of the alert", ("Kind", "Name"), rows)
