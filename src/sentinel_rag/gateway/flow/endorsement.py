"""Values that a named endorsement derives from records that the user named: their participants, their ids.

A record is named by a parameter of the call that read it, or by a text of its own, such as a title. What an endorsement
derived endorses nothing further, and what the agent chose by itself names nothing: neither a record that it looked for
with words of its own after it had read what others wrote, nor the second of two records that answer to one text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any

from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label
from sentinel_rag.gateway.flow.judging import Judgement, LabelledArgument, LabelSource
from sentinel_rag.gateway.flow.named_values import NamedValue, canonical_named, is_telling, naming_of, values_inside
from sentinel_rag.gateway.policy.model import ANY, Endorsement, NoteKind, Path, Policy, ToolPolicy, ValueKind

USER = "user"
"""Who names a value by words of their own."""

MAX_DERIVED = 200
"""Values that one endorsement takes from one result; a record with more is no answer to who takes part in it."""


def endorsed_values(
    policy: Policy,
    tool: ToolPolicy,
    judgement: Judgement,
    value: Any,
    named: Mapping[NamedValue, str],
    memory: Label = BOTTOM,
) -> Mapping[str, frozenset[NamedValue]]:
    """For each endorsement that fits the call, the values it names. `named` is what is named in the session so far,
    `memory` what the agent may remember of other sessions."""
    if not policy.endorsements:
        return {}
    by_call = {entry.name for entry in judgement.arguments if entry.source is LabelSource.NAMED and entry.by == USER}
    by_user = {said: by for said, by in named.items() if by == USER}
    answers = {said for said in named if said.kind == NoteKind.ANSWER}
    found: dict[str, frozenset[NamedValue]] = {}
    for rule in policy.endorsements:
        if rule.tool != tool.name:
            continue
        if rule.rows is not None:
            if not all(_is_not_the_agents(argument, memory) for argument in judgement.arguments):
                continue
            values = _of_named_rows(policy, rule, value, by_user, answers)
        elif rule.parameter in by_call:
            values = frozenset(each for part in _parts(value, rule.path) for each in _values(policy, rule, part))
        else:
            continue
        if 0 < _count(values) <= MAX_DERIVED and not _is_too_many(rule, values, named):
            found[rule.name] = values
            answers.update(each for each in values if each.kind == NoteKind.ANSWER)
    return found


def _is_too_many(rule: Endorsement, values: Collection[NamedValue], named: Mapping[NamedValue, str]) -> bool:
    """Whether the session would have more values by this rule than it allows. Which of many the agent takes, and in
    which order, spells what it has read."""
    if rule.most is None:
        return False
    return _count({*values, *(said for said, by in named.items() if by == rule.name)}) > rule.most


def _count(values: Collection[NamedValue]) -> int:
    return sum(each.kind != NoteKind.ANSWER for each in values)


def _is_not_the_agents(argument: LabelledArgument, memory: Label) -> bool:
    """Whether an argument leaves the agent no choice of the rows that come: it is the user's, or it was written before
    anything was read, here or in a session that the agent remembers, that somebody else may have written, who then
    cannot have steered it."""
    label = argument.label if argument.source is LabelSource.NAMED else argument.label.join(memory)
    return (
        label.integrity is Integrity.TRUSTED and argument.source is not LabelSource.DECLASSIFIED and argument.is_whole
    )


def _of_named_rows(
    policy: Policy, rule: Endorsement, value: Any, by_user: Mapping[NamedValue, str], answers: Collection[NamedValue]
) -> frozenset[NamedValue]:
    """What the rows give whose own text the user named, and for each of them an ANSWER, which the session keeps. Two
    rows with one text are two things of one name: which of them was meant nobody said. If they come one after the
    other, in two results, the second gives nothing."""
    assert rule.rows is not None
    rows_of: dict[str, list[Any]] = {}
    for rows in _parts(value, rule.rows):
        for row in rows if isinstance(rows, list) else [rows]:
            for text in _parts(row, rule.match):
                naming = naming_of(_kinds_that_name(rule, text), text, by_user, policy.kinds)
                if naming is not None and naming.value.kind != NoteKind.FRAME:
                    rows_of.setdefault(naming.value.text.casefold(), []).append(row)
    found: set[NamedValue] = set()
    for text, rows in rows_of.items():
        values = frozenset(each for part in _parts(rows[0], rule.path) for each in _values(policy, rule, part))
        if len(rows) == 1 and values:
            start = _answer_to(rule.kind, text)
            answer = NamedValue(NoteKind.ANSWER, start + _digest(values))
            if all(said == answer for said in answers if said.text.startswith(start)):
                found |= {answer, *values}
    return frozenset(found)


def _kinds_that_name(rule: Endorsement, text: Any) -> list[str]:
    """A passage such as "the" or "lunch" stands in what anybody says, so as WORDS it names no record."""
    if rule.match_kind == ValueKind.WORDS and not (isinstance(text, str) and is_telling(text)):
        return [ValueKind.QUOTED]
    return [rule.match_kind]


def _answer_to(kind: str, text: str) -> str:
    """The beginning of every ANSWER to a text of the user's, as records with values of `kind`."""
    return f"{kind} {sha256(text.encode()).hexdigest()} "


def _digest(values: Collection[NamedValue]) -> str:
    return sha256(canonical_json(sorted(value.text for value in values))).hexdigest()


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
