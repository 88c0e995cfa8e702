"""Every audited call decided again: by the policy of its record (AUD-4: the verdict is the same), or by another one
(what would change). Reads the journal page by page, so that memory does not grow with history."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.gateway.flow import judge
from sentinel_rag.gateway.flow.record import facts_of
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.policy_tools.verdicts import Verdict, decide_call, recorded_verdict, verdict_of

MOST_EXAMPLES = 3
MOST_POLICIES = 16
"""Loaded policies of records that are kept at once."""

MOST_CHANGES = 10_000
"""Kinds of change that are told apart; beyond, they are counted under no name."""


@dataclass(frozen=True, slots=True)
class Change:
    """Calls of one tool whose verdict differs in one way; labels count too. `examples` are audit ids."""

    tool: str
    before: Verdict
    after: Verdict
    count: int
    examples: tuple[str, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "tool": self.tool,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "count": self.count,
            "examples": list(self.examples),
        }


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """`decided` calls were decided again, `same` of them as before. `not_policy` were refused for other reasons;
    `incomplete` lack their arguments or are damaged; `unknown_policies` counts calls by a policy that is not kept."""

    decided: int
    same: int
    changes: tuple[Change, ...]
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
        self._changes: dict[tuple[str, Verdict, Verdict], tuple[int, list[str]]] = {}

    def compare(self, record: Mapping[str, Any], before: Verdict, after: Verdict) -> None:
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
            Change(tool, before, after, count, tuple(examples))
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

    def _decide(self, record: Mapping[str, Any]) -> Verdict | None:
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


def _to_decide(record: Mapping[str, Any], tally: _Tally) -> Verdict | None:
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


def _same(before: Verdict, after: Verdict) -> bool:
    if before.label is None:
        return (before.decision, before.rule_id, before.reason) == (after.decision, after.rule_id, after.reason)
    return before == after
