"""Filters that a question says and no call of its plan takes: "trend of MDE alerts", "top accounts in open incidents".

A ranking or a trend cannot be narrowed by everything that a list can. What it counts instead is said first, so that it
is not taken for what was asked. Nothing is queried or changed here.
"""

from __future__ import annotations

from dataclasses import replace

from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain

_LOOKED_AT = frozenset(
    {"query_incidents", "query_alerts", "get_alert_trend", "get_top_entities", "get_threat_summary", "run_kql_query"}
)


def with_dropped_said(plan: Plan) -> Plan:
    """The plan, with a sentence for the filters that none of its calls takes."""
    tools = {call.tool for call in plan.calls}
    if plan.without or not tools or not tools <= _LOOKED_AT:
        return plan
    taken = {name for call in plan.calls for name in call.arguments}
    for call in plan.calls:
        parameters = call.arguments.get("parameters")
        taken |= set(parameters) if isinstance(parameters, dict) else set()
    template = str(plan.calls[0].arguments.get("template", ""))
    dropped = _dropped(plan.reading, taken, template)
    if not dropped or any("cannot be narrowed" in sentence for sentence in plan.opening):
        return plan
    unless = ", unless a column tells them apart" if template else ""
    sentence = f"This could not be narrowed to {', '.join(dropped)}: what follows is of all of them{unless}."
    return replace(plan, opening=(sentence, *plan.opening))


def _dropped(reading: Reading, taken: set[str], template: str) -> list[str]:
    found: list[str] = []
    severities = reading.severity.arguments()
    if severities and not {"severity", "min_severity"} & taken and not template.startswith("raw_"):
        found += [f"severity {value}" for value in severities.values()]
    counts = not template or "_by_" in template or template.startswith("mean_")
    if reading.status and "status" not in taken and reading.status not in template and counts:
        # "What is new" asks for no status, and a time to close is of what was closed.
        idle = reading.status == "new" if not template else template.startswith("mean_")
        found += [] if idle else [f"status {reading.status}"]
    if reading.product is not None and "product" not in taken:
        found.append(f"product {plain(reading.product)}")
    if reading.tactic is not None and not {"tactic", "title_contains"} & taken and not template:
        found.append(f"tactic {plain(reading.tactic)}")
    if reading.owner.name is not None and "owner" not in taken:
        found.append(f"owner {plain(reading.owner.name)}")
    if reading.owner.nobody and "owner" not in taken and "owner" not in template:
        found.append("those without an owner")
    return found
