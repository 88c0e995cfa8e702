"""A list or a count of everything without what the question leaves out, by the ids of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import alerts, incidents, scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """What is left, how many rows were left out, and whether all rows were seen."""
    everything, *parts = [_runs_of(call, runs) for call in plan.calls]
    noun, key = ("alert", "alert_id") if plan.calls[0].tool == "query_alerts" else ("incident", "incident_name")
    if not everything or not all(parts):
        writer.fixed("Not every part of it could be looked up, so nothing can be left out of the rest.")
        return Composed(outcome=Outcome.NO_DATA)
    if scope.is_empty(everything[0]):
        return scope.compose_empty(writer, plan, everything[0], f"{noun}s")
    leaving = [{str(row.get(key)) for run in part for row in run.rows} for part in parts]
    kept = [
        (run, place)
        for run in everything
        for place, row in enumerate(run.rows)
        if not any(str(row.get(key)) in ids for ids in leaving)
    ]
    template, echoes = scope.filters_shown(everything[0])
    of = f"{noun}s ({template})" if template else f"{noun}s"
    total = scope.total_of(writer, everything[0])
    if kept:
        count = writer.tally([(run, f"/rows/{place}/{key}") for run, place in kept])
        writer.say(f"{{}} of {{}} {of} {'is' if count.text == '1' else 'are'} left.", count, total, *echoes)
    else:
        writer.say(f"None of the {{}} {of} is left.", total, *echoes)
    for part, call in zip(parts, plan.calls[1:], strict=True):
        _say_left_out(writer, part[0], call, plan.calls[0].arguments)
    _say_unseen(writer, everything, parts)
    scope.say_window(writer, everything[0])
    scope.say_partial(writer, everything[0])
    if not kept or plan.view in (View.ALERT_COUNT, View.INCIDENT_COUNT):
        return Composed(outcome=Outcome.ANSWERED if kept else Outcome.NO_DATA)
    return _listed(writer, plan, kept)


def _runs_of(call: PlannedCall, runs: Sequence[ToolRun]) -> list[ToolRun]:
    """The pages of a call. A zone or a workspace that the turn has added does not make it another one."""
    asked = dict(call.arguments)
    return [
        run
        for run in runs
        if run.call.tool_name == call.tool
        and {name: value for name, value in run.call.arguments.items() if name in asked} == asked
        and not set(run.call.arguments) - set(asked) - {"offset", "workspace", "detail"}
    ]


def _say_left_out(writer: AnswerWriter, run: ToolRun, call: PlannedCall, whole: Mapping[str, JsonValue]) -> None:
    """How many rows this part leaves out, with the filters by which it differs from the whole."""
    if call.tool == "get_incident_detail":
        writer.say("Left out: incident {}.", Echo(str(call.arguments["incident"])))
        return
    template, echoes = scope.filters_shown(run, without=whole)
    writer.say(f"Left out: {{}} ({template}).", scope.total_of(writer, run), *echoes)


def _say_unseen(writer: AnswerWriter, everything: Sequence[ToolRun], parts: Sequence[Sequence[ToolRun]]) -> None:
    for runs in (everything, *parts):
        total = runs[0].at("/coverage/rows_total")
        seen = sum(len(run.rows) for run in runs)
        if total is None or (isinstance(total, int) and seen < total) or not all(run.worked for run in runs):
            writer.fixed("Not all rows could be looked at, so the count holds only for those that were.")
            return


def _listed(writer: AnswerWriter, plan: Plan, kept: Sequence[tuple[ToolRun, int]]) -> Composed:
    """The rows that are left, as one numbered list over their pages."""
    limit = int(plan.frame.one("limit") or (MAX_LIMIT if plan.frame.has("all") else DEFAULT_LIMIT))
    shown = list(kept[:limit])
    if len(shown) < len(kept):
        writer.say("Rows shown: {}.", writer.tally([(run, f"/rows/{place}") for run, place in shown]))
    items = []
    for page in {run.call.call_id: run for run, _ in shown}.values():
        places = [place for run, place in shown if run is page]
        if plan.calls[0].tool == "query_alerts":
            alerts.alert_table(writer, page, "/rows", places)
            items += [alert_item(page.rows[place]) for place in places]
        else:
            incidents.incident_table(writer, page, places, first=0)
            items += incidents.incident_items(page, places)
    only = items[0] if len(items) == 1 else None
    suggestions: tuple[str, ...] = ()
    if only is None and items[0].kind == "incident":
        suggestions = (f"What is incident {items[0].value} about?", f"Show the alerts of incident {items[0].value}")
    elif only is None:
        suggestions = ("Details of [1]", "+-10 minutes around alert [1]")
    return Composed(
        items=tuple(items),
        incident=None if only is None else only.incident or (only.value if only.kind == "incident" else None),
        alert=only if only is not None and only.kind == "alert" else None,
        suggestions=suggestions,
        shown=len(items),
    )
