"""The alert that began right before or right after another one of the same incident.

Alerts stand in the order in which what they tell of began, which may be days before they were raised. Where words fit
several names, or only a part of the incident's alerts came, nothing is singled out.
"""

from __future__ import annotations

from datetime import datetime

from sentinel_rag.agent.offline.alert_walk.fitting import fits, name_of, near_best
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import parse_time

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
    rows = run.rows
    if not rows:
        return scope.compose_empty(writer, plan, run, "alerts")
    names = near_best(fits(words, rows))
    if len(names) != 1:
        return _ask_which(writer, run, names)
    order = sorted(range(len(rows)), key=lambda place: _began(run, place))
    same = [place for place in order if name_of(rows[place]) == names[0]]
    pivot = same[0] if side == "before" else same[-1]
    others = [place for place in order if place not in same]
    moments = [_began(run, place) for place in others]
    begun = _began(run, pivot)
    beyond = [moment for moment in moments if (moment < begun if side == "before" else moment > begun)]
    number = writer.number(run, f"/rows/{pivot}/incident_number")
    name, time = writer.name(run, f"/rows/{pivot}/name"), _time(writer, run, pivot)
    if not beyond:
        writer.say(_ENDS[side], number, name, time)
        found: list[int] = []
    else:
        nearest = max(beyond) if side == "before" else min(beyond)
        found = [place for place in others if _began(run, place) == nearest]
        for place in found:
            writer.say(_SIDES[side], name, time, writer.name(run, f"/rows/{place}/name"), _time(writer, run, place))
    if len(same) > 1:
        writer.say(
            "{} alerts of that name are there; I took the {} of them.",
            _count(writer, run, same),
            Fact("earliest" if side == "before" else "latest"),
        )
    if run.at("/coverage/rows_total") != len(rows):
        writer.say(
            "Only {} of the {} alerts of the incident were compared.",
            writer.number(run, "/coverage/rows_returned"),
            scope.total_of(writer, run),
        )
    items = tuple(alert_item(rows[place]) for place in found)
    outcome = Outcome.ANSWERED if found else Outcome.NO_DATA
    return Composed(outcome=outcome, items=items, alert=items[0] if len(items) == 1 else None, incident=number.text)


def _ask_which(writer: AnswerWriter, run: ToolRun, names: tuple[str, ...]) -> Composed:
    places = [next(place for place, row in enumerate(run.rows) if name_of(row) == name) for name in names[:MOST_NAMES]]
    if not places:
        writer.say_none([run], "No alert of the incident is called so. Ask for its alerts to see their names.")
        return Composed(outcome=Outcome.NO_DATA)
    writer.say(
        "Several alerts of the incident are called so; which one do you mean: {}?",
        [writer.name(run, f"/rows/{place}/name") for place in places],
    )
    return Composed(outcome=Outcome.CLARIFICATION)


def _count(writer: AnswerWriter, run: ToolRun, places: list[int]) -> Fact:
    return writer.tally([(run, f"/rows/{place}/name") for place in places])


def _began(run: ToolRun, place: int) -> datetime:
    """When what the alert tells of began."""
    row = run.rows[place]
    return parse_time(str(row.get("start_time") or row.get("time")))


def _time(writer: AnswerWriter, run: ToolRun, place: int) -> Fact:
    return writer.time(run, scope.event_time(run, f"/rows/{place}"))
