"""Values that a named endorsement derives from a record that the user named: its participants, say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentinel_rag.interceptor.flow.judging import Judgement, Source
from sentinel_rag.interceptor.flow.named_values import NamedValue, canonical_named
from sentinel_rag.interceptor.policy.fields import ANY, Path
from sentinel_rag.interceptor.policy.model import Policy, ToolPolicy

MAX_DERIVED = 200
"""Values that one endorsement takes from one result; a record with more is no answer to who takes part in it."""


def endorsed_values(
    policy: Policy, tool: ToolPolicy, judgement: Judgement, value: Any
) -> Mapping[str, frozenset[NamedValue]]:
    """For each endorsement that fits the call, the values it names. Only a record that the user's own words named
    counts: what an endorsement derived endorses nothing further, and what the agent chose by itself does not."""
    if not policy.endorsements:
        return {}
    by_user = {entry.name for entry in judgement.arguments if entry.source is Source.NAMED and entry.by == "user"}
    found: dict[str, frozenset[NamedValue]] = {}
    for rule in policy.endorsements:
        if rule.tool == tool.name and rule.parameter in by_user:
            values = {canonical_named(rule.kind, part) for part in _parts(value, rule.path)}
            named = frozenset(one for one in values if one is not None)
            if 0 < len(named) <= MAX_DERIVED:
                found[rule.name] = named
    return found


def _parts(value: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield value
        return
    segment, rest = path[0], path[1:]
    if isinstance(value, dict):
        chosen = list(value.values()) if segment == ANY else [value[segment]] if segment in value else []
    elif isinstance(value, list):
        chosen = value if segment == ANY else value[int(segment) : int(segment) + 1] if segment.isdecimal() else []
    else:
        chosen = []
    for part in chosen:
        yield from _parts(part, rest)
