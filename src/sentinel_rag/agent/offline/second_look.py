"""A second query where the first found nothing for a reason that the words explain.

A bare word may name an entity or stand in an alert's name; a product may carry its older name. Both are other readings
of the same question, and the answer says which one it took. Windows and filters are never widened here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline.plan import Plan, PlannedCall, View
from sentinel_rag.agent.offline.qualifiers import older_product_name
from sentinel_rag.agent.tool_runs import ToolRun

OTHER_TABLE = "The table of the first query that fits holds no rows, so I ran another one."


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
