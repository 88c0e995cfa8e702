"""Cases: what a policy must answer, as data beside it, each one call with the verdict that it must get.

A verdict is a decision in the few words in which two of them can be compared. A file of cases is read like a policy:
whole or not at all, with the line of each fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonForm, JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.flow import CallFacts, Judgement, judge
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.flow_section import label as read_label
from sentinel_rag.gateway.policy.loading import read_policy_file
from sentinel_rag.gateway.policy.model import UNKNOWN_TOOL
from sentinel_rag.gateway.policy.section import PolicyProblem, Section, UnreadableYaml, YamlItem, read_yaml
from sentinel_rag.gateway.request_body import ArgumentFault, fit

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
class CaseVerdict(JsonForm):
    """`label` is that of the result of an allowed call, or of the denial; None for refused arguments."""

    decision: str
    rule_id: str | None = None
    reason: str | None = None
    label: Label | None = None

    def __str__(self) -> str:
        rule = f" by {self.rule_id}" if self.rule_id else ""
        reason = f" ({self.reason})" if self.reason else ""
        label = f", {self.label.sensitivity.name}/{self.label.integrity.name}" if self.label is not None else ""
        return f"{self.decision}{rule}{reason}{label}"


@dataclass(frozen=True, slots=True)
class Decided:
    """A call decided by a policy: what was judged, and the outcome. `fault` instead of a judgement where the arguments
    do not fit; both are None for a tool that the policy does not have."""

    verdict: CaseVerdict
    tool: ToolPolicy | None = None
    arguments: JsonObject | None = None
    judgement: Judgement | None = None
    fault: ArgumentFault | None = None


def decide_call(policy: Policy, tool_name: str, arguments: Mapping[str, Any], facts: CallFacts) -> Decided:
    """Decide a call as the gate does: canonical form, labels, rules, sinks. Handles are values already."""
    tool = policy.tool(tool_name)
    if tool is None:
        return Decided(_denied(UNKNOWN_TOOL, may_ask=False))
    fitted = fit(tool, arguments)
    if isinstance(fitted, ArgumentFault):
        return Decided(CaseVerdict(REFUSE, reason=Reason.INVALID_ARGUMENT.value), tool, fault=fitted)
    judgement = judge(policy, tool, fitted.value, facts)
    return Decided(verdict_of(tool, judgement), tool, fitted.value, judgement)


def verdict_of(tool: ToolPolicy, judgement: Judgement) -> CaseVerdict:
    """A judgement as the caller would hear it: where the rule offers an approval, that is the reason."""
    decision = judgement.decision
    if isinstance(decision, Allow):
        return CaseVerdict(ALLOW, decision.rule_id, None, judgement.revealed)
    rule = tool.rule(decision.rule_id)
    return _denied(decision, may_ask=rule is not None and rule.may_ask)


def recorded_verdict(record: Mapping[str, Any]) -> CaseVerdict | None:
    """What a record says was decided before any approval; None for one that no policy decided."""
    label = None if record.get("label") is None else Label.from_dict(record["label"])
    if record["kind"] == "intent":
        if record.get("approval_id"):  # the label of the denial that was approved is not on record
            return CaseVerdict(DENY, record["rule_id"], Reason.APPROVAL_REQUIRED.value)
        return CaseVerdict(ALLOW, record["rule_id"], None, label)
    if record["kind"] == "refusal" and record["reason"] in DECIDED_BY_POLICY:
        return CaseVerdict(DENY, record["rule_id"], record["reason"], label)
    return None


def _denied(deny: Deny, *, may_ask: bool) -> CaseVerdict:
    asks = may_ask and deny.reason in (Reason.APPROVAL_REQUIRED, Reason.SINK_LABEL)
    reason = Reason.APPROVAL_REQUIRED if asks else deny.reason
    return CaseVerdict(DENY, deny.rule_id, reason.value, deny.label)


CASE_KEYS = (
    *("name", "tool", "args", "context", "memory", "handles", "words", "resources"),
    *("decision", "rule_id", "reason", "label", "result", "field", "forwarded"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what must come of it. `expected` holds only what the file states: `decision`, `rule_id`, `reason`,
    `label` (a level), `result` (the label of an allowed call's result), `field` (the argument that does not fit),
    `forwarded` (the arguments as the tool server gets them)."""

    name: str
    tool: str
    arguments: JsonObject
    facts: CallFacts
    expected: Mapping[str, JsonValue]
    place: str
    """File and line."""
    words: str = ""
    """What the user said in the session."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case. `differences` maps a key of `expected` to what the policy answers; empty if it passed."""

    case: Case
    decided: Decided
    differences: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.differences


def load_cases(paths: Iterable[Path]) -> list[Case]:
    """The cases of files and folders (`*.yaml` in them), in order. Raises ConfigurationError with every problem."""
    cases: list[Case] = []
    problems: list[str] = []
    for path in paths:
        for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
            found, faults = _read_file(file)
            cases += found
            problems += [f"{file}:{fault.line}: {fault.message}" for fault in faults]
    if problems:
        raise ConfigurationError(
            f"The cases were not run: {'one problem' if len(problems) == 1 else f'{len(problems)} problems'}.",
            problems=tuple(problems),
            next_step="Correct the lines above.",
        )
    return cases


def run_case(policy: Policy, case: Case) -> CaseResult:
    """Decide the call of a case and compare."""
    facts = replace(case.facts, named=dict.fromkeys(named_in(case.words, policy), "user"))
    decided = decide_call(policy, case.tool, case.arguments, facts)
    got = _answers(decided)
    different = {key: got[key] for key, value in case.expected.items() if got[key] != value}
    return CaseResult(case, decided, different)


def uncovered_rules(policy: Policy, results: Sequence[CaseResult]) -> list[tuple[str, str, int]]:
    """Tool, rule and line of each rule that decided none of the cases."""
    decided = {result.decided.verdict.rule_id for result in results}
    return [
        (tool.name, rule.rule_id, rule.line)
        for tool in policy.tools.values()
        for rule in tool.rules
        if rule.rule_id not in decided
    ]


def _answers(decided: Decided) -> dict[str, JsonValue]:
    verdict, judgement = decided.verdict, decided.judgement
    label = None if judgement is None or verdict.decision != ALLOW else judgement.decision.label
    shown = verdict.label if label is None else label
    return {
        "decision": verdict.decision,
        "rule_id": verdict.rule_id,
        "reason": verdict.reason,
        "label": None if shown is None else shown.sensitivity.name,
        "result": None if judgement is None or verdict.decision != ALLOW else judgement.revealed.to_dict(),
        "field": None if decided.fault is None else decided.fault.field,
        "forwarded": decided.arguments,
    }


def _read_file(path: Path) -> tuple[list[Case], list[PolicyProblem]]:
    content = read_policy_file(path)
    try:
        root, problems = read_yaml(content.decode())
    except UnicodeDecodeError as error:
        return [], [PolicyProblem(1, f"byte {error.start} is not UTF-8")]
    except UnreadableYaml as error:
        return [], [error.problem]
    file = Section(root, "the file", ("cases",), problems)
    return [_case(each, path) for each in file.sections("cases", "a case", CASE_KEYS, required=True)], problems


def _case(section: Section, path: Path) -> Case:
    arguments = section.item("args")
    if arguments is not None and not isinstance(arguments.value, dict):
        section.fault(arguments.line, f"args must be a mapping, not {arguments.kind()}")
    expected: dict[str, JsonValue] = {}
    expected["decision"] = section.choice("decision", [ALLOW, DENY, REFUSE], DENY, required=True)
    if section.has("rule_id"):
        expected["rule_id"] = section.text("rule_id")
    if section.has("reason"):
        expected["reason"] = section.choice("reason", [reason.value for reason in Reason], "")
    if section.has("label"):
        expected["label"] = section.choice("label", [level.name for level in Sensitivity], "HIGH")
    if section.has("field"):
        expected["field"] = section.text("field")
    result = read_label(section, "result")
    if result is not None:
        expected["result"] = result.to_dict()
    forwarded = section.item("forwarded")
    if forwarded is not None:
        expected["forwarded"] = forwarded.plain()
    return Case(
        name=section.text("name", required=True),
        tool=section.text("tool", required=True),
        arguments=_mapping(arguments),
        facts=CallFacts(
            context=read_label(section, "context") or BOTTOM,
            handles=_handles(section),
            resources=read_label(section, "resources") or BOTTOM,
            memory=read_label(section, "memory") or BOTTOM,
        ),
        expected=expected,
        words=section.text("words"),
        place=f"{path}:{section.start}",
    )


def _mapping(item: YamlItem | None) -> JsonObject:
    value = None if item is None else item.plain()
    return value if isinstance(value, dict) else {}


def _handles(section: Section) -> dict[str, Label]:
    """The stored labels of arguments that stand for hidden values."""
    names = tuple(section.mapping("handles", "arguments to labels"))
    inner = section.section("handles", names) if names else None
    found = {} if inner is None else {name: read_label(inner, name) for name in names}
    return {name: label for name, label in found.items() if label is not None}
