"""What a record keeps of a judgement, beside context, arguments and rule, so that it can be judged again (AUD-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.flow.judging import Facts, Judgement, Source
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN
from sentinel_rag.gateway.flow.references import Reference


def flow_record(
    judgement: Judgement,
    facts: Facts,
    references: Mapping[str, tuple[Reference, ...]],
) -> JsonObject | None:
    """The record's `flow`; None for a call of literals alone to a tool that takes them."""
    named: list[JsonValue] = []
    declassified: list[JsonValue] = []
    for entry in judgement.lowered:
        if entry.source is Source.DECLASSIFIED:
            declassified.append({"parameter": entry.name, "rule": entry.by, "to": entry.label.to_dict()})
            continue
        said = {each.value: each.by for each in entry.naming}
        if entry.by == PLAN and judgement.step is not None:
            said[judgement.step.said] = PLAN  # what was chosen counts in its step alone
        named += [
            {"parameter": entry.name, "kind": str(value.kind), "text": value.text, "by": by}
            for value, by in said.items()
        ]
    links: list[JsonValue] = [
        {"parameter": entry.name, "kind": str(each.value.kind), "text": each.value.text, "by": each.by}
        for entry in judgement.arguments
        for each in entry.links
    ]
    found: dict[str, JsonValue] = {}
    if facts.handles:
        found["handles"] = {
            name: {"handles": [str(one) for one in references.get(name, ())], "label": label.to_dict()}
            for name, label in facts.handles.items()
        }
    if named:
        found["named"] = named
    if links:
        found["links"] = links
    if declassified:
        found["declassified"] = declassified
    if facts.resources != BOTTOM:
        found["resources"] = facts.resources.to_dict()
    if not facts.memory.flows_to(facts.context):
        found["memory"] = facts.memory.to_dict()
    if judgement.violations:
        found["violations"] = [
            {
                "parameter": violation.parameter,
                "label": violation.label.to_dict(),
                "accepts": violation.accepts.to_dict(),
                "link": violation.link,
            }
            for violation in judgement.violations
        ]
    return found or None


def facts_of(record: Mapping[str, Any]) -> Facts:
    """The facts that a recorded call was judged by. Raises KeyError or ValueError for what is no such record."""
    flow = record.get("flow") or {}
    return Facts(
        context=Label.from_dict(record["context_before"]),
        handles={name: Label.from_dict(entry["label"]) for name, entry in flow.get("handles", {}).items()},
        named={
            NamedValue(one["kind"], one["text"]): one["by"] for key in ("links", "named") for one in flow.get(key, ())
        },
        resources=Label.from_dict(flow["resources"]) if "resources" in flow else BOTTOM,
        memory=Label.from_dict(flow["memory"]) if "memory" in flow else BOTTOM,
    )
