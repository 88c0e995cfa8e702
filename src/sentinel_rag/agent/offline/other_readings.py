"""Other readings of a question whose calls found nothing: an older name of a product, a name that is like it.

A bare word may name an entity or stand in the name of an alert; a product may carry its older name. The answer says
which reading it took. Windows and filters are never widened here; a near name is proposed, never put in the place of
the one that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.renderer import view_data
from sentinel_rag.agent.planner import Option, offer
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames.asides import technique_called
from sentinel_rag.language.frames.frame import WorkspaceNames, short_name

MAX_NEAR = 5


_PARAMETERS = (
    ("account", re.compile(r"account|user|upn|actor|caller|principal|mailbox", re.IGNORECASE)),
    ("host", re.compile(r"host|computer|device|machine", re.IGNORECASE)),
)
"""Parameters of stored queries that name an account or a host."""


def sought(plan: Plan) -> tuple[str, str, str] | None:
    """(name, parameter, kind) that the first call of `plan` looks for: the argument `entity`, without a parameter, or
    the parameter of a stored query; None if it looks for none."""
    arguments = plan.calls[0].arguments
    parameters = arguments.get("parameters")
    if isinstance(arguments.get("entity"), str):
        return str(arguments["entity"]), "", ""
    for parameter, text in parameters.items() if isinstance(parameters, Mapping) and len(parameters) == 1 else ():
        kind = next((kind for kind, pattern in _PARAMETERS if pattern.search(parameter)), "")
        if kind and isinstance(text, str):
            return text, parameter, kind
    return None


def offers(plan: Plan, names: Mapping[str, Sequence[str]]) -> tuple[Option, ...]:
    """The first call of `plan` for each name that is like the one that was sought."""
    call, (value, parameter, wanted) = plan.calls[0], sought(plan) or ("", "", "")
    made = []
    more: dict[str, JsonValue]
    known = WorkspaceNames.of(names)
    found = ((one.kind, name) for name in known.near(short_name(value)) for one in known.exact(name))
    for kind, near in tuple(pair for pair in found if short_name(pair[1]) != short_name(value))[:MAX_NEAR]:
        if not parameter:
            told, more = f"Show the alerts that name {kind} {plain(near)}", {"entity": near, "entity_kind": kind}
        elif kind == wanted:
            told = f"Run {plain(str(call.arguments.get('template')))} for {kind} {plain(near)}"
            more = {"parameters": {parameter: near}}
        else:
            continue
        view = (View.KQL if parameter else View.ALERTS) if plan.view is View.PROFILE else plan.view
        made.append(offer(told, call.tool, {**call.arguments, **more}, view))
    return tuple(made)


# --- another query


def other_calls(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """The other reading, or None if there is none or the first one found rows."""
    if plan.then or plan.view in (View.ALERTS, View.ALERT_COUNT):
        return _by_older_names(plan, runs)
    if any(run.result is None or run.rows for run in runs):
        return None
    words = str(plan.calls[0].arguments.get("title_contains", ""))
    technique = technique_called(words)
    window = ("time_window", "start_time", "end_time")
    kept = {name: value for name, value in plan.calls[0].arguments.items() if name in window}
    if plan.view is View.KEYWORD:
        if technique is not None:
            return _alerts_of(plan, "no_title_but_technique", {"tactic": technique})
        # A lone word that no title and no name holds may be called so itself.
        return _alerts_of(plan, "no_title_but_entity", {"entity": words}) if _LONE_WORD.fullmatch(words) else None
    if plan.view in (View.INCIDENTS, View.INCIDENT_COUNT, View.INCIDENT) and words and len(runs) == 1:
        arguments = [{"name_contains": words, **kept}, *([{"tactic": technique, **kept}] if technique else [])]
        return replace(_alerts_of(plan, "no_title", *arguments), view=View.KEYWORD)
    return None


def _by_older_names(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """The calls for alerts of a product whose present name no row carries, with its older name."""
    older, found = (
        view_data()["older_name"],
        {run.call.arguments.get("product") for run in runs if run.result is None or run.rows},
    )
    calls = tuple(
        replace(call, arguments={**call.arguments, "product": older[product]})
        if (product := str(call.arguments.get("product"))) in older and product not in found
        else call
        for call in plan.calls
    )
    sentence = view_data()["sentence"]["older_name"]
    return replace(plan, calls=calls, opening=(*plan.opening, sentence)) if calls != plan.calls else None


def _alerts_of(plan: Plan, sentence: str, *arguments: Mapping[str, JsonValue]) -> Plan:
    """The plan with calls for alerts instead, which its answer says first."""
    calls = tuple(PlannedCall("query_alerts", each) for each in arguments)
    return replace(plan, view=View.ALERTS, calls=calls, opening=(*plan.opening, view_data()["sentence"][sentence]))


_LONE_WORD = re.compile(r"[\w.$@-]{3,}")
