"""Values that a named endorsement derives from records that the user named: their participants, their ids.

A record is named by a parameter of the call that read it, or by a text of its own, such as a title. What an endorsement
derived endorses nothing further, and what the agent chose by itself names nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentinel_rag.interceptor.flow.judging import Judgement, Source
from sentinel_rag.interceptor.flow.named_values import NamedValue, canonical_named, naming_of, values_inside
from sentinel_rag.interceptor.policy.fields import ANY, Path
from sentinel_rag.interceptor.policy.model import Endorsement, Policy, ToolPolicy, ValueKind

USER = "user"
"""Who names a value by words of their own."""

MAX_DERIVED = 200
"""Values that one endorsement takes from one result; a record with more is no answer to who takes part in it."""


def endorsed_values(
    policy: Policy, tool: ToolPolicy, judgement: Judgement, value: Any, named: Mapping[NamedValue, str]
) -> Mapping[str, frozenset[NamedValue]]:
    """For each endorsement that fits the call, the values it names. `named` is what is named in the session so far."""
    if not policy.endorsements:
        return {}
    by_call = {entry.name for entry in judgement.arguments if entry.source is Source.NAMED and entry.by == USER}
    by_user = {said: by for said, by in named.items() if by == USER}
    found: dict[str, frozenset[NamedValue]] = {}
    for rule in policy.endorsements:
        if rule.tool != tool.name:
            continue
        if rule.rows is not None:
            parts = _of_named_rows(policy, rule, value, by_user)
        elif rule.parameter in by_call:
            parts = list(_parts(value, rule.path))
        else:
            continue
        values = frozenset(each for part in parts for each in _values(policy, rule, part))
        if 0 < len(values) <= MAX_DERIVED:
            found[rule.name] = values
    return found


def _of_named_rows(policy: Policy, rule: Endorsement, value: Any, by_user: Mapping[NamedValue, str]) -> list[Any]:
    """The parts of the rows whose own text the user named. Two rows with one text are two things of one name: which of
    them was meant nobody said."""
    assert rule.rows is not None
    rows_of: dict[Any, list[Any]] = {}
    for rows in _parts(value, rule.rows):
        for row in rows if isinstance(rows, list) else [rows]:
            for text in _parts(row, rule.match):
                naming = naming_of([rule.match_kind], text, by_user, policy.kinds)
                if naming is not None and naming.value.kind != ValueKind.FRAME:
                    rows_of.setdefault(naming.value.text, []).append(row)
    return [part for rows in rows_of.values() if len(rows) == 1 for part in _parts(rows[0], rule.path)]


def _values(policy: Policy, rule: Endorsement, part: Any) -> Iterator[NamedValue]:
    if rule.inside:
        if isinstance(part, str):
            yield from values_inside(rule.kind, part, policy.kinds)
        return
    named = canonical_named(rule.kind, part, policy.kinds)
    if named is not None:
        yield named


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
