"""Incidents with more or fewer alerts than a number that the question gives, counted over the incidents returned."""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import incidents, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The aspects are more|fewer, "or equal" or nothing, and the number. Only returned rows are compared; that is
    told."""
    if scope.is_empty(run):
        return scope.compose_empty(writer, plan, run, "incidents")
    direction, equal, number = plan.aspects
    limit = int(number)
    places = []
    for place, row in enumerate(run.rows):
        count = row.get("alert_count")
        if isinstance(count, int) and (
            (count > limit if direction == "more" else count < limit) or (bool(equal) and count == limit)
        ):
            places.append(place)
    words = {"more": "at least" if equal else "more than", "fewer": "at most" if equal else "fewer than"}[direction]
    total = scope.total_of(writer, run)
    noun = "alert" if limit == 1 else "alerts"
    template, parts = scope.filters_shown(run)
    those = f"incidents ({template})" if template else "incidents"
    if not places:
        writer.say(f"None of the {{}} {those} has {words} {{}} {noun}.", total, *parts, Echo(number, word=True))
    else:
        found = writer.tally([(run, f"/rows/{place}/alert_count") for place in places])
        verb = "has" if found.text == "1" else "have"
        writer.say(f"{{}} of {{}} {those} {verb} {words} {{}} {noun}.", found, total, *parts, Echo(number, word=True))
    if len(run.rows) < int(total.text):
        writer.say("Only the {} incidents returned were compared.", writer.number(run, "/coverage/rows_returned"))
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    if places:
        incidents.incident_table(writer, run, places, first=0)
    items = incidents.incident_items(run, places)
    return Composed(items=items, incident=items[0].value if len(items) == 1 else None, shown=len(items))
