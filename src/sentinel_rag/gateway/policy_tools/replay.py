"""What another policy would change: every audited call decided again, and two policies compared key by key.

By the policy of its record a replay gives the same verdict (AUD-4). The journal is read page by page, so that memory
does not grow with history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonForm, JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.flow import judge
from sentinel_rag.gateway.flow.judging import facts_of
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.policy.model import pointer_text
from sentinel_rag.gateway.policy_tools.cases import CaseVerdict, decide_call, recorded_verdict, verdict_of

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
    lines += _value("denial_hours", *(policy.denial_holds // timedelta(hours=1) for policy in (old, new)))
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


MOST_EXAMPLES = 3
MOST_POLICIES = 16
"""Loaded policies of records that are kept at once."""

MOST_CHANGES = 10_000
"""Kinds of change that are told apart; beyond, they are counted under no name."""


@dataclass(frozen=True, slots=True)
class VerdictChange(JsonForm):
    """Calls of one tool whose verdict differs in one way; labels count too. `examples` are audit ids."""

    tool: str
    before: CaseVerdict
    after: CaseVerdict
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """`decided` calls were decided again, `same` of them as before. `not_policy` were refused for other reasons;
    `incomplete` lack their arguments or are damaged; `unknown_policies` counts calls by a policy that is not kept."""

    decided: int
    same: int
    changes: tuple[VerdictChange, ...]
    not_policy: int
    incomplete: int
    unknown_policies: Mapping[str, int]
    changes_not_named: int = 0

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "decided": self.decided,
            "same": self.same,
            "changed": self.decided - self.same,
            "changes": [change.to_dict() for change in self.changes],
            "changes_not_named": self.changes_not_named,
            "not_decided_by_policy": self.not_policy,
            "incomplete": self.incomplete,
            "unknown_policies": dict(self.unknown_policies),
        }


class _Tally:
    """Counts calls by how their verdict changed."""

    def __init__(self) -> None:
        self.decided = 0
        self.same = 0
        self.not_policy = 0
        self.incomplete = 0
        self.unknown: dict[str, int] = {}
        self._unnamed = 0
        self._changes: dict[tuple[str, CaseVerdict, CaseVerdict], tuple[int, list[str]]] = {}

    def compare(self, record: Mapping[str, Any], before: CaseVerdict, after: CaseVerdict) -> None:
        self.decided += 1
        if _same(before, after):
            self.same += 1
            return
        key = (record["tool"] or "(unknown tool)", before, after)
        if key not in self._changes and len(self._changes) >= MOST_CHANGES:
            self._unnamed += 1
            return
        count, examples = self._changes.get(key, (0, []))
        if len(examples) < MOST_EXAMPLES:
            examples.append(record["audit_id"])
        self._changes[key] = (count + 1, examples)

    def report(self) -> ReplayReport:
        """What was found, the most frequent change first."""
        changes = [
            VerdictChange(tool, before, after, count, tuple(examples))
            for (tool, before, after), (count, examples) in self._changes.items()
        ]
        changes.sort(key=lambda change: (-change.count, change.tool, str(change.before), str(change.after)))
        return ReplayReport(
            self.decided,
            self.same,
            tuple(changes),
            self.not_policy,
            self.incomplete,
            dict(self.unknown),
            self._unnamed,
        )


class Replay:
    """Takes records in any order. With `candidate` each call is decided by it, else by the policy of its record, whose
    bytes `find_policy` gives for a hash."""

    def __init__(self, find_policy: Callable[[str], bytes | None], candidate: Policy | None = None) -> None:
        self._find_policy = find_policy
        self._candidate = candidate
        self._policies: OrderedDict[str, Policy | None] = OrderedDict()
        self._tally = _Tally()

    def add_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Decide the call of one record; records of other kinds are passed over."""
        before = _to_decide(record, self._tally)
        if before is None:
            return
        try:
            after = self._decide(record)
        except _MALFORMED:
            self._tally.incomplete += 1
            return
        if after is None:
            sha256 = record["policy_sha256"]
            self._tally.unknown[sha256] = self._tally.unknown.get(sha256, 0) + 1
        else:
            self._tally.compare(record, before, after)

    def report(self) -> ReplayReport:
        """What was found so far."""
        return self._tally.report()

    def _decide(self, record: Mapping[str, Any]) -> CaseVerdict | None:
        name, arguments, facts = record["requested_tool"], record["arguments"], facts_of(record)
        if self._candidate is not None:
            return decide_call(self._candidate, name, arguments, facts).verdict
        policy = self._policy(record["policy_sha256"])
        if policy is None:
            return None
        tool = policy.tool(name)
        if tool is None:
            return decide_call(policy, name, arguments, facts).verdict
        # As recorded: the arguments are canonical already, and were judged so.
        return verdict_of(tool, judge(policy, tool, arguments, facts))

    def _policy(self, sha256: str) -> Policy | None:
        if sha256 not in self._policies:
            content = self._find_policy(sha256)
            try:
                policy = None if content is None else parse_policy_bytes(content, source=f"policy {sha256[:12]}")
            except ConfigurationError:  # this version of the product takes no such policy any more
                policy = None
            self._policies[sha256] = policy
            if len(self._policies) > MOST_POLICIES:
                self._policies.popitem(last=False)
        self._policies.move_to_end(sha256)
        return self._policies[sha256]


class Compared:
    """Takes records and decides each call by two policies, whatever the record says."""

    def __init__(self, old: Policy, new: Policy) -> None:
        self._old = old
        self._new = new
        self._tally = _Tally()

    def add(self, record: Mapping[str, Any]) -> None:
        """Decide the call of one record twice."""
        if _to_decide(record, self._tally) is None:
            return
        try:
            call = (record["requested_tool"], record["arguments"], facts_of(record))
            before, after = (decide_call(policy, *call).verdict for policy in (self._old, self._new))
        except _MALFORMED:
            self._tally.incomplete += 1
            return
        self._tally.compare(record, before, after)

    def report(self) -> ReplayReport:
        """What was found so far; `before` is the old policy."""
        return self._tally.report()


_MALFORMED = (KeyError, ValueError, TypeError, AttributeError)
"""What a record raises that another version wrote, or that is damaged."""


def _to_decide(record: Mapping[str, Any], tally: _Tally) -> CaseVerdict | None:
    """The verdict on record, if a policy gave it and what it was given on is there too."""
    if record["kind"] not in ("intent", "refusal"):
        return None
    try:
        before = recorded_verdict(record)
        arguments = record["arguments"]
    except _MALFORMED:
        tally.incomplete += 1
        return None
    if before is None:
        tally.not_policy += 1
    elif arguments is None:
        tally.incomplete += 1
    else:
        return before
    return None


def _same(before: CaseVerdict, after: CaseVerdict) -> bool:
    if before.label is None:
        return (before.decision, before.rule_id, before.reason) == (after.decision, after.rule_id, after.reason)
    return before == after
