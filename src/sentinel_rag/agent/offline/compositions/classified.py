"""The closed incidents of one classification, counted over the rows of every page that was read."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import incidents, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The first aspect is the classification, the second `count` where no list is wanted."""
    first = runs[0]
    if scope.is_empty(first):
        return scope.compose_empty(writer, plan, first, "incidents")
    wanted = plan.aspects[0]
    found = [
        (run, place)
        for run in runs
        for place, row in enumerate(run.rows)
        if "".join(str(row.get("classification") or "").split()).lower() == wanted.lower()
    ]
    template, echoes = scope.filters_shown(first)
    those = f"incidents ({template})" if template else "incidents"
    total, classification = scope.total_of(writer, first), Echo(wanted, word=True)
    if found:
        count = writer.tally([(run, f"/rows/{place}/classification") for run, place in found])
        verb = "is" if count.text == "1" else "are"
        writer.say(f"{{}} of {{}} {those} {verb} classified as {{}}.", count, total, *echoes, classification)
    else:
        writer.say(f"None of the {{}} {those} is classified as {{}}.", total, *echoes, classification)
    if sum(len(run.rows) for run in runs) < int(total.text):
        writer.fixed("Not all rows could be looked at, so the count holds only for those that were.")
    scope.say_window(writer, first)
    scope.say_partial(writer, first)
    if not found or "count" in plan.aspects:
        return Composed()
    limit = int(plan.frame.one("limit") or (MAX_LIMIT if plan.frame.has("all") else DEFAULT_LIMIT))
    shown = found[:limit]
    if len(shown) < len(found):
        writer.say("Rows shown: {}.", writer.tally([(run, f"/rows/{place}") for run, place in shown]))
    items: list[ListItem] = []
    for run in {run.call.call_id: run for run, _ in shown}.values():
        places = [place for each, place in shown if each is run]
        incidents.incident_table(writer, run, places, first=0)
        items += incidents.incident_items(run, places)
    return Composed(items=tuple(items), incident=items[0].value if len(items) == 1 else None, shown=len(items))
