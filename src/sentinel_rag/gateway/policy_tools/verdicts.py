"""A decision in the few words in which two of them can be compared, made anew or read from a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.decisions import Allow, Deny, Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.arguments import ArgumentFault, fit
from sentinel_rag.gateway.flow import Facts, Judgement, judge
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.deciding import UNKNOWN_TOOL

ALLOW, DENY, REFUSE = "allow", "deny", "refuse"
"""Runs; the policy says no (403); the arguments do not fit the tool (422)."""

DECIDED_BY_POLICY = frozenset(
    {
        Reason.NO_RULE_MATCHED,
        Reason.RULE_DENIES,
        Reason.APPROVAL_REQUIRED,
        Reason.CONDITION_UNDECIDED,
        Reason.SINK_LABEL,
        Reason.UNKNOWN_TOOL,
    }
)
"""Reasons of a refusal that a policy gave; the others depend on keys, limits, sessions or the form of the body."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`label` is that of the result of an allowed call, or of the denial; None for refused arguments."""

    decision: str
    rule_id: str | None = None
    reason: str | None = None
    label: Label | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "decision": self.decision,
            "rule_id": self.rule_id,
            "reason": self.reason,
            "label": None if self.label is None else self.label.to_dict(),
        }

    def __str__(self) -> str:
        rule = f" by {self.rule_id}" if self.rule_id else ""
        reason = f" ({self.reason})" if self.reason else ""
        label = f", {self.label.sensitivity.name}/{self.label.integrity.name}" if self.label is not None else ""
        return f"{self.decision}{rule}{reason}{label}"


@dataclass(frozen=True, slots=True)
class Decided:
    """A call decided by a policy: what was judged, and the outcome. `fault` instead of a judgement where the arguments
    do not fit; both are None for a tool that the policy does not have."""

    verdict: Verdict
    tool: ToolPolicy | None = None
    arguments: JsonObject | None = None
    judgement: Judgement | None = None
    fault: ArgumentFault | None = None


def decide_call(policy: Policy, tool_name: str, arguments: Mapping[str, Any], facts: Facts) -> Decided:
    """Decide a call as the gate does: canonical form, labels, rules, sinks. Handles are values already."""
    tool = policy.tool(tool_name)
    if tool is None:
        return Decided(_denied(UNKNOWN_TOOL, may_ask=False))
    fitted = fit(tool, arguments)
    if isinstance(fitted, ArgumentFault):
        return Decided(Verdict(REFUSE, reason=Reason.INVALID_ARGUMENT.value), tool, fault=fitted)
    judgement = judge(policy, tool, fitted.value, facts)
    return Decided(verdict_of(tool, judgement), tool, fitted.value, judgement)


def verdict_of(tool: ToolPolicy, judgement: Judgement) -> Verdict:
    """A judgement as the caller would hear it: where the rule offers an approval, that is the reason."""
    decision = judgement.decision
    if isinstance(decision, Allow):
        return Verdict(ALLOW, decision.rule_id, None, judgement.revealed)
    rule = tool.rule(decision.rule_id)
    return _denied(decision, may_ask=rule is not None and rule.may_ask)


def recorded_verdict(record: Mapping[str, Any]) -> Verdict | None:
    """What a record says was decided before any approval; None for one that no policy decided."""
    label = None if record.get("label") is None else Label.from_dict(record["label"])
    if record["kind"] == "intent":
        if record.get("approval_id"):  # the label of the denial that was approved is not on record
            return Verdict(DENY, record["rule_id"], Reason.APPROVAL_REQUIRED.value)
        return Verdict(ALLOW, record["rule_id"], None, label)
    if record["kind"] == "refusal" and record["reason"] in DECIDED_BY_POLICY:
        return Verdict(DENY, record["rule_id"], record["reason"], label)
    return None


def _denied(deny: Deny, *, may_ask: bool) -> Verdict:
    asks = may_ask and deny.reason in (Reason.APPROVAL_REQUIRED, Reason.SINK_LABEL)
    reason = Reason.APPROVAL_REQUIRED if asks else deny.reason
    return Verdict(DENY, deny.rule_id, reason.value, deny.label)
