"""The alert that began right before or right after another one of the same incident.

Alerts stand in the order in which what they tell of began, which may be days before they were raised. Where words fit
several names, or only a part of the incident's alerts came, nothing is singled out.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.offline.relations.alerts import Alert, alerts_in, fits, near_best, stems
from sentinel_rag.agent.offline.relations.focus import neighbours
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

_SIDES = {
    "before": "The alert that began right before {} ({}) is {}, which began at {}.",
    "after": "The alert that began right after {} ({}) is {}, which began at {}.",
}
_ENDS = {
    "before": "No alert of incident {} began before {}, which began at {}.",
    "after": "No alert of incident {} began after {}, which began at {}.",
}
MOST_NAMES = 6


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The neighbour, with both times; ties are all told."""
    side, words = plan.aspects
    alerts = alerts_in([run])
    if not alerts:
        return scope.compose_empty(writer, plan, run, "alerts")
    names = near_best(fits(stems(words), alerts))
    if len(names) != 1:
        return _ask_which(writer, run, [next(each for each in alerts if each.name == name) for name in names])
    same = [alert for alert in alerts if alert.name == names[0]]
    pivot, found = neighbours(same, alerts, side)
    number = writer.number(run, f"{pivot.pointer}/incident_number")
    name, time = writer.name(run, f"{pivot.pointer}/name"), _time(writer, pivot)
    if not found:
        writer.say(_ENDS[side], number, name, time)
    for alert in found:
        writer.say(_SIDES[side], name, time, writer.name(run, f"{alert.pointer}/name"), _time(writer, alert))
    if len(same) > 1:
        count = writer.tally([(run, f"{alert.pointer}/name") for alert in same])
        taken = Fact("earliest" if side == "before" else "latest")
        writer.say("{} alerts of that name are there; I took the {} of them.", count, taken)
    if run.at("/coverage/rows_total") != len(alerts):
        writer.say(
            "Only {} of the {} alerts of the incident were compared.",
            writer.number(run, "/coverage/rows_returned"),
            scope.total_of(writer, run),
        )
    items = tuple(alert_item(alert.row) for alert in found)
    outcome = Outcome.ANSWERED if found else Outcome.NO_DATA
    return Composed(outcome=outcome, items=items, alert=items[0] if len(items) == 1 else None, incident=number.text)


def _ask_which(writer: AnswerWriter, run: ToolRun, named: Sequence[Alert]) -> Composed:
    if not named:
        writer.say_none([run], "No alert of the incident is called so. Ask for its alerts to see their names.")
        return Composed(outcome=Outcome.NO_DATA)
    writer.say(
        "Several alerts of the incident are called so; which one do you mean: {}?",
        [writer.name(run, f"{alert.pointer}/name") for alert in named[:MOST_NAMES]],
    )
    return Composed(outcome=Outcome.CLARIFICATION)


def _time(writer: AnswerWriter, alert: Alert) -> Fact:
    return writer.time(alert.run, scope.event_time(alert.run, alert.pointer))
