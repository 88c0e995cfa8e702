"""The name that a query found nothing for, and the same query for each name of the workspace that is like it.

`directory` compares names; `execution` fetches them and shows the offers. A name is proposed, never put in the place of
the one that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline import directory
from sentinel_rag.agent.planner import Option, offer
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain

_KINDS = (
    ("account", re.compile(r"account|user|upn|actor|caller|principal|mailbox", re.IGNORECASE)),
    ("host", re.compile(r"host|computer|device|machine", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class Sought:
    """`value` stands in the argument `entity`, or in the `parameter` of a stored query, whose names are of `kind`."""

    value: str
    parameter: str = ""
    kind: str = ""


def sought(plan: Plan) -> Sought | None:
    """The name that the first call of `plan` looks for; None if it looks for none."""
    arguments = plan.calls[0].arguments
    value = arguments.get("entity")
    if isinstance(value, str):
        return Sought(value)
    parameters = arguments.get("parameters")
    if not isinstance(parameters, Mapping) or len(parameters) != 1:
        return None
    for parameter, text in parameters.items():
        kind = next((kind for kind, pattern in _KINDS if pattern.search(parameter)), "")
        if kind and isinstance(text, str):
            return Sought(text, parameter, kind)
    return None


def offers(plan: Plan, name: Sought, names: Mapping[str, Sequence[str]]) -> tuple[Option, ...]:
    """The first call of `plan` for each name that is like the one that was sought."""
    call = plan.calls[0]
    found = directory.near_names(name.value, names)
    view = plan.view
    if not name.parameter:
        return tuple(
            offer(
                f"Show the alerts that name {kind} {plain(near)}",
                call.tool,
                {**call.arguments, "entity": near, "entity_kind": kind},
                view,
            )
            for kind, near in found
        )
    return tuple(
        offer(
            f"Run {plain(str(call.arguments.get('template')))} for {kind} {plain(near)}",
            call.tool,
            {**call.arguments, "parameters": {name.parameter: near}},
            view,
        )
        for kind, near in found
        if kind == name.kind
    )
