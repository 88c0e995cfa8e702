"""Alerts that name every one of several things: what the answers for each of them have in common."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import alerts, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The alerts of the first result that all the others hold too, how many each has, and what was not compared."""
    first, others = runs[0], [{row.get("alert_id") for row in run.rows} for run in runs[1:]]
    places = [place for place, row in enumerate(first.rows) if all(row.get("alert_id") in ids for ids in others)]
    names = " and ".join("{}" for _ in plan.calls)
    echoes = [Echo(str(call.arguments["entity"])) for call in plan.calls]
    if len(runs) < len(plan.calls):
        writer.fixed("Not every one of them could be looked up, so nothing can be said about them together.")
    elif places:
        found = writer.tally([(first, f"/rows/{place}/alert_id") for place in places])
        writer.say(f"{{}} alert{' names' if len(places) == 1 else 's name'} {names} together.", found, *echoes)
    else:
        writer.say_compared([(run, "") for run in runs], f"No alert names {names} together.", *echoes)
    for run in runs:
        writer.say("Alerts that name {}: {}.", Echo(str(run.call.arguments["entity"])), scope.total_of(writer, run))
    if any(len(run.rows) < int(scope.total_of(writer, run).text) for run in runs):
        writer.fixed("Not all of these come at once, so only those that were returned were compared.")
    scope.say_window(writer, first)
    if len(runs) < len(plan.calls) or not places:
        return Composed(outcome=Outcome.NO_DATA)
    alerts.alert_table(writer, first, "/rows", places)
    items = tuple(alert_item(first.rows[place]) for place in places)
    return Composed(items=items, shown=len(items))
