"""A second query where the first found nothing for a reason that the words explain.

A bare word may name an entity or stand in an alert's name; a product may carry its older name. Both are other readings
of the same question, and the answer says which one it took. Windows and filters are never widened here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from sentinel_rag.agent.offline.alert_ranking import NEAR_BEST, candidates_of, ranked_alerts
from sentinel_rag.agent.offline.plan import Plan, PlannedCall, View
from sentinel_rag.agent.offline.qualifiers import older_product_name
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import format_time, parse_time

OTHER_TABLE = "The table of the first query that fits holds no rows, so I ran another one."


MOST_CLOSER = 3


def closer_calls(plan: Plan, runs: Sequence[ToolRun]) -> tuple[PlannedCall, ...]:
    """Calls that read the best fitting alerts again, alone: a row among many names only some of its entities.

    An alert is asked for by its own time, never by its text, so that nothing an attacker wrote becomes an argument.
    """
    if plan.view is not View.ATTRIBUTE:
        return ()
    ranked = ranked_alerts(plan.reading, candidates_of([run for run in runs if run.result is not None]))
    calls: dict[str, PlannedCall] = {}
    for score, run, place in ranked[:MOST_CLOSER]:
        row = run.rows[place]
        entities, count, when = row.get("entities"), row.get("entity_count"), row.get("time")
        shown = len(entities) if isinstance(entities, list | tuple) else 0
        if (
            score < NEAR_BEST * ranked[0][0]
            or not isinstance(count, int)
            or count <= shown
            or not isinstance(when, str)
        ):
            continue
        moment = parse_time(when)
        window = {"start_time": format_time(moment), "end_time": format_time(moment + timedelta(microseconds=1))}
        incident = run.call.arguments.get("incident")
        calls[when] = PlannedCall("query_alerts", window if incident is None else {"incident": incident, **window})
    return tuple(calls.values())


def other_calls(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """The other reading, or None if there is none or the first one found rows."""
    if len(runs) != 1 or runs[0].result is None or runs[0].rows or plan.view not in (View.ALERTS, View.ALERT_COUNT):
        return None
    call = plan.calls[0]
    arguments = dict(call.arguments)
    product = arguments.get("product")
    if isinstance(product, str) and older_product_name(product):
        arguments["product"] = older_product_name(product)
        sentence = "No alert carries the product's present name, so I looked for its older name."
        return replace(plan, calls=(PlannedCall(call.tool, arguments),), opening=(*plan.opening, sentence))
    name = plan.reading.names[0] if plan.reading.names else None
    if name is not None and not name.shaped and name.kind is None and arguments.get("entity") == name.value:
        del arguments["entity"]
        arguments["name_contains"] = name.value
        sentence = "No alert names that as an entity, so I looked for it in the names of alerts."
        return replace(plan, calls=(PlannedCall(call.tool, arguments),), opening=(*plan.opening, sentence))
    return None
