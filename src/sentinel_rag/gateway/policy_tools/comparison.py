"""What differs between two policies, key by key. What that does to calls is the matter of cases and replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.fields import pointer_text

_TOOL_KEYS = {
    "description": "description",
    "server": "server",
    "effect": "effect",
    "aliases": "aliases",
    "timeout_s": "timeout_s",
    "accepts": "accepts",
    "reads": "reads",
    "writes": "writes",
    "approvers": "approvers",
    "rate": "rate",
    "row_labels": "row_labels",
    "sends_readers": "sends_readers",
    "across_sessions": "across_sessions",
    "named_limit": "named_limit",
    "result": "result",
}


def changed_keys(old: Policy, new: Policy) -> list[str]:
    """One line for each difference, such as `web_search.effect: external, was read`. Empty if they say the same."""
    lines = [f"{name}: the tool is gone" for name in old.tools if name not in new.tools]
    for name, tool in new.tools.items():
        before = old.tools.get(name)
        if before is None:
            lines.append(f"{name}: a new tool with {len(tool.rules)} rules")
        else:
            lines += [f"{name}.{line}" for line in _tool(before, tool)]
    lines += _named("declassification", _by_name(old.declassifications), _by_name(new.declassifications))
    lines += _named("endorsement", _by_name(old.endorsements), _by_name(new.endorsements))
    lines += _named("kinds", old.kinds, new.kinds)
    lines += _named("servers", old.server_specs, new.server_specs)
    lines += _named("volume", _by_name(old.volumes), _by_name(new.volumes))
    lines += _named("agents", old.agents, new.agents)
    lines += _value("client_confirms", sorted(old.confirming), sorted(new.confirming))
    lines += _value("memory_days", old.memory.days, new.memory.days)
    lines += _value("link_hosts", sorted(old.link_hosts), sorted(new.link_hosts))
    return lines


def _tool(old: ToolPolicy, new: ToolPolicy) -> Iterator[str]:
    for key, attribute in _TOOL_KEYS.items():
        yield from _value(key, getattr(old, attribute), getattr(new, attribute))
    yield from _named("parameters", old.parameters, new.parameters)
    labels = [{pointer_text(entry.path): entry.label for entry in tool.fields.labels} for tool in (old, new)]
    yield from _named("output_labels", labels[0], labels[1])
    modes = [{pointer_text(entry.path): entry.mode for entry in tool.fields.exposures} for tool in (old, new)]
    yield from _named("exposure", modes[0], modes[1])
    rules = [{rule.rule_id: rule for rule in tool.rules} for tool in (old, new)]
    yield from _named("taint_rules", rules[0], rules[1])
    common = [[rule_id for rule_id in one if rule_id in other] for one, other in (rules, rules[::-1])]
    if common[0] != common[1]:
        yield f"taint_rules: asked in the order {', '.join(common[1])}, was {', '.join(common[0])}"


def _named(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in old:
        if name not in new:
            yield f"{key}[{name}]: gone"
    for name, value in new.items():
        if name not in old:
            yield f"{key}[{name}]: new"
        elif is_dataclass(value) and not isinstance(value, Label):
            for part in fields(value):
                if part.compare and part.name not in ("line", "expression"):
                    yield from _value(
                        f"{key}[{name}].{part.name}", getattr(old[name], part.name), getattr(value, part.name)
                    )
        else:
            yield from _value(f"{key}[{name}]", old[name], value)


def _value(key: str, old: Any, new: Any) -> Iterator[str]:
    if old != new:
        yield f"{key}: {_text(new)}, was {_text(old)}"


def _text(value: Any) -> str:
    match value:
        case Label():
            return f"{value.sensitivity.name}/{value.integrity.name}"
        case Enum():
            return value.name if isinstance(value.value, int) else str(value.value)
        case None | () | []:
            return "nothing"
        case tuple() | list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _:
            return str(value)


def _by_name(rules: tuple[Any, ...]) -> dict[str, Any]:
    return {rule.name: rule for rule in rules}
