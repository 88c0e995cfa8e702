"""Which composer shows which view, and what is said when some or all calls of a plan did not succeed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions import (
    alert_events,
    alert_order,
    alerts,
    catalogues,
    computed,
    entity_properties,
    files,
    incident_analysis,
    incident_comparison,
    incident_detail,
    incidents,
    keywords,
    rankings,
    related,
    situation,
    table_columns,
    unsuccessful,
    web_pages,
)
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.every_workspace import section_of
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.tool_runs import ToolRun

_COMPOSERS: dict[View, Callable[[AnswerWriter, Plan, ToolRun], Composed]] = {
    View.INCIDENTS: incidents.compose_list,
    View.INCIDENT_COUNT: incidents.compose_count,
    View.INCIDENT: incident_detail.compose,
    View.ANALYSIS: incident_analysis.compose_analysis,
    View.ALERTS: alerts.compose_list,
    View.ALERT_COUNT: alerts.compose_count,
    View.ALERT: alerts.compose_one,
    View.EVENTS: alert_events.compose,
    View.NEIGHBOUR: alert_order.compose,
    View.TREND: rankings.compose_trend,
    View.TOP: rankings.compose_top,
    View.SUMMARY: situation.compose,
    View.KQL: catalogues.compose_kql,
    View.TEMPLATES: catalogues.compose_templates,
    View.TABLES: catalogues.compose_tables,
    View.WORKSPACES: catalogues.compose_workspaces,
    View.COLUMNS: table_columns.compose,
    View.WEB: web_pages.compose,
    View.FILE: files.compose_file,
    View.FILES: files.compose_list,
}


_TOGETHER: dict[View, Callable[[AnswerWriter, Plan, Sequence[ToolRun]], Composed]] = {
    View.ATTRIBUTE: related.compose,
    View.PROPERTY: entity_properties.compose,
    View.KEYWORD: keywords.compose,
    View.COMPARISON: incident_comparison.compose,
    View.COMPUTED: computed.compose,
}
"""Views that tell the results of all calls as one answer."""


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The answer to a plan. Facts of the calls that worked come first, then what did not."""
    for sentence in plan.opening:
        writer.fixed(sentence)
    worked = [run for run in runs if run.worked]
    composed = Composed()
    together = _TOGETHER.get(plan.view)
    if together is not None and worked:
        composed = together(writer, plan, worked)
    else:
        for place, run in enumerate(worked):
            part = _section(writer, plan, run, section_of(run, runs))
            composed = part if place == 0 else _joined(composed, part)
    failed = [run for run in runs if not run.worked]
    if failed:
        sections = {run.call.call_id: section_of(run, runs) for run in failed}
        outcome = unsuccessful.say_failures(writer, failed, some_worked=bool(worked), sections=sections)
        composed = replace(composed, outcome=composed.outcome if worked else outcome)
    return composed


def _section(writer: AnswerWriter, plan: Plan, run: ToolRun, workspace: str) -> Composed:
    """One result; lines and tables of a `workspace` among several say that they are of it."""
    if not workspace:
        return _COMPOSERS[plan.view](writer, plan, run)
    writer.say("In workspace {}:", Echo(workspace))
    above = len(writer.tables)
    composed = _COMPOSERS[plan.view](writer, replace(plan, section=True), run)
    for place, table in enumerate(writer.tables[above:], start=above):
        title = f"{table.title} in workspace {workspace}" if table.title else f"Workspace {workspace}"
        writer.tables[place] = replace(table, title=title)
    guids = {str(row.get("number")): str(row.get("incident_name") or "") for row in run.rows}
    items = tuple(
        replace(item, value=guids.get(item.value) or item.value) if item.kind == "incident" else item
        for item in composed.items
    )  # a number may be another incident's in the next workspace
    return replace(composed, items=items, suggestions=())


def _joined(first: Composed, second: Composed) -> Composed:
    """Two answers of one turn: lists follow each other, an answer beats an empty one."""
    better = first.outcome if first.outcome.value == "answered" else second.outcome
    return replace(
        first,
        outcome=better,
        items=first.items + second.items,
        incident=second.incident or first.incident,
        offers=first.offers or second.offers,
        suggestions=first.suggestions or second.suggestions,
        shown=first.shown + second.shown,
    )
