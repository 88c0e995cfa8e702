"""Why a call was decided as it was, step by step: arguments, labels, rules and which part of a condition held, sinks.

A story is a value; `lines()` tells it to a person. It is for operators and quotes arguments: agents never see one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, JsonValue, canonical_json
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow import CallFacts, LabelledArgument, LabelSource, Violation, judge
from sentinel_rag.gateway.flow.judging import asked, facts_of
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.conditions import Expression, evaluate, reads, text_of, tree
from sentinel_rag.gateway.policy.model import Exposure, pointer_text
from sentinel_rag.gateway.policy_tools.cases import CaseVerdict, Decided, decide_call, recorded_verdict, verdict_of

_MARKS = {True: "holds    ", False: "no       ", None: "unknown  "}


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """One rule that was asked. `verdict` is None where the condition could not be decided; `why` says what made it so,
    empty where the whole condition says it."""

    rule_id: str
    line: int
    condition: str
    verdict: bool | None
    why: str

    @property
    def mark(self) -> str:
        return _MARKS[self.verdict]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "rule_id": self.rule_id,
            "line": self.line,
            "condition": self.condition,
            "holds": self.verdict,
            "why": self.why,
        }


def trace_rules(tool: ToolPolicy, arguments: Mapping[str, Any]) -> tuple[RuleTrace, ...]:
    """The rules in order, up to the one that decides."""
    found: list[RuleTrace] = []
    for rule in tool.rules:
        verdict = evaluate(rule.expression, arguments)
        why = _why(rule.expression, verdict, arguments)
        found.append(RuleTrace(rule.rule_id, rule.line, rule.condition, verdict, why))
        if verdict is not False:
            break
    return tuple(found)


def _why(condition: Expression, verdict: bool | None, arguments: Mapping[str, Any]) -> str:
    if verdict is None:
        missing = sorted(name for name in reads(condition) if name not in arguments)
        return (
            f"the call does not give {', '.join(missing)}, so this cannot be decided; write has({missing[0]}) and ..."
        )
    blamed = _blamed(condition, verdict, arguments)
    if blamed == condition:
        return ""
    return f"because {text_of(blamed)} is {'true' if evaluate(blamed, arguments) else 'not true'}"


def _blamed(node: Expression, verdict: bool, arguments: Mapping[str, Any]) -> Expression:
    """The smallest part whose own value makes the whole what it is."""
    match node, verdict:
        case (tree.Every(operands), False) | (tree.Some(operands), True):
            for operand in operands:
                if evaluate(operand, arguments) is verdict:
                    return _blamed(operand, verdict, arguments)
            return node
        case tree.Not(operand), _ if isinstance(operand, tree.Every | tree.Some):
            return _blamed(operand, not verdict, arguments)
        case _:
            return node


MAX_SHOWN = 120
"""Characters of an argument that a line quotes."""


@dataclass(frozen=True, slots=True)
class Story:
    """`sent` are the arguments as they came, `decided` what was made of them; `rules` are the rules that were asked, in
    order. `recorded` is the verdict on record, for a call of the journal."""

    tool_name: str
    policy: Policy
    sent: Mapping[str, Any]
    facts: CallFacts
    decided: Decided
    rules: tuple[RuleTrace, ...]
    recorded: CaseVerdict | None = None

    def lines(self) -> Iterator[str]:
        """The story as text, one sentence or fact a line; indented lines belong to the one before."""
        yield f"{self.tool_name} under policy {self.policy.sha256[:12]} ({self.policy.source})"
        tool, judgement = self.decided.tool, self.decided.judgement
        if tool is None:
            yield "The policy has no tool of this name, so the call is denied."
            yield from self._ending()
            return
        if tool.name != self.tool_name:
            yield f"  an alias of {tool.name}"
        yield f"  effect {tool.effect.value}, server {tool.server}; its session's context: {_label(self.facts.context)}"
        if self.decided.fault is not None:
            yield f"The arguments do not fit: {self.decided.fault.message}"
            yield "No rule was asked."
            yield from self._ending()
            return
        assert judgement is not None
        yield "Arguments"
        if not judgement.arguments:
            yield "  none"
        for entry in judgement.arguments:
            yield from self._argument(tool, entry)
        if self.facts.resources != BOTTOM:
            yield f"  what it reads carries {_label(self.facts.resources)} ({', '.join(tool.reads)})"
        yield "Rules, the first that holds decides"
        for trace in self.rules:
            yield f"  {trace.mark} {trace.rule_id} (line {trace.line}): {trace.condition}"
            if trace.why:
                yield f"      {trace.why}"
        if not self.rules:
            yield "  the tool has none, so every call is denied"
        elif self.rules[-1].verdict is False:
            yield "  none holds, so the call is denied"
        yield "Sink"
        yield from self._sink(tool, judgement.violations)
        yield from self._result(tool)
        yield from self._ending()

    def to_dict(self) -> dict[str, JsonValue]:
        """The story for programs; `lines` is the text."""
        judgement, tool = self.decided.judgement, self.decided.tool
        return {
            "tool": self.tool_name if tool is None else tool.name,
            "requested_tool": self.tool_name,
            "policy": self.policy.sha256,
            "context": self.facts.context.to_dict(),
            "fault": None if self.decided.fault is None else self.decided.fault.message,
            "arguments": [] if judgement is None else [self._argument_dict(entry) for entry in judgement.arguments],
            "rules": [trace.to_dict() for trace in self.rules],
            "violations": [] if judgement is None else [_violation_dict(entry) for entry in judgement.violations],
            "result": None if judgement is None else judgement.revealed.to_dict(),
            "verdict": self.decided.verdict.to_dict(),
            "recorded": None if self.recorded is None else self.recorded.to_dict(),
            "lines": list(self.lines()),
        }

    def _argument(self, tool: ToolPolicy, entry: LabelledArgument) -> Iterator[str]:
        assert self.decided.arguments is not None
        value = self.decided.arguments[entry.name]
        yield f"  {entry.name} = {_shown(value)}"
        if entry.name in self.sent and self.sent[entry.name] != value and entry.source is not LabelSource.HANDLE:
            form = tool.parameters[entry.name].format
            yield f"      sent as {_shown(self.sent[entry.name])}; judged and forwarded in the form of {form}"
        yield f"      carries {_label(entry.label)}: {self._origin(entry)}"
        for link in entry.links:
            yield f"      links to {_shown(link.value.text)}, which the user's own words hold"

    def _origin(self, entry: LabelledArgument) -> str:
        context = _label(self.facts.seen)
        if not self.facts.memory.flows_to(self.facts.context):
            context = f"{context} (this session and the key's other recent ones)"
        match entry.source:
            case LabelSource.LITERAL:
                return f"a literal carries the session's context, {context}"
            case LabelSource.HANDLE:
                stored = _label(self.facts.handles[entry.name])
                return f"a hidden value that was stored with {stored}, joined with the context {context}"
            case LabelSource.NAMED:
                who = "the user's own words name it" if entry.by == "user" else f"the endorsement {entry.by} names it"
                if not entry.is_named:
                    return f"{who}, with places filled in that are as secret as the context, {context}"
                return f"{who}, so it carries the user's label"
            case LabelSource.DECLASSIFIED:
                return f"the declassification {entry.by} lowers it from what the context gives, {context}"

    def _sink(self, tool: ToolPolicy, violations: tuple[Violation, ...]) -> Iterator[str]:
        if not violations:
            yield f"  every argument may go there; the tool accepts at most {_label(tool.call_ceiling())}"
        for violation in violations:
            what = violation.parameter or "the call itself"
            because = " because it holds a link to a host outside link_hosts" if violation.link else ""
            yield (
                f"  {what} carries {_label(violation.label)} and at most {_label(violation.accepts)} "
                f"is accepted there{because}"
            )

    def _result(self, tool: ToolPolicy) -> Iterator[str]:
        judgement = self.decided.judgement
        assert judgement is not None
        if not isinstance(judgement.decision, Allow):
            return
        yield "Result"
        bound = "most" if tool.row_labels is None else "least"
        context = _label(self._context_after())
        yield f"  at {bound} {_label(judgement.revealed)}; then the session's context is {context}"
        if tool.row_labels is not None:
            yield f"  each row of {pointer_text(tool.row_labels) or 'it'} adds its own label, which its server tells"
        for entry in tool.fields.exposures:
            place = pointer_text(entry.path) or "the whole result"
            match entry.mode:
                case Exposure.HIDE:
                    yield f"  {place} stays hidden, with {_label(tool.fields.label_at(entry.path))}: a handle is shown"
                case Exposure.QUOTE:
                    yield f"  {place} is shown, marked as words of others"
                case Exposure.REVEAL:
                    yield f"  {place} is shown"

    def _ending(self) -> Iterator[str]:
        yield f"Decision: {self.decided.verdict}"
        if self.recorded is not None:
            same = self.recorded.decision == self.decided.verdict.decision
            same = same and self.recorded.rule_id == self.decided.verdict.rule_id
            yield f"On record: {self.recorded}{'' if same else '  (not the same)'}"

    def _context_after(self) -> Label:
        judgement = self.decided.judgement
        return self.facts.context if judgement is None else self.facts.context.join(judgement.revealed)

    def _argument_dict(self, entry: LabelledArgument) -> JsonObject:
        assert self.decided.arguments is not None
        return {
            "name": entry.name,
            "value": self.decided.arguments[entry.name],
            "label": entry.label.to_dict(),
            "source": entry.source.value,
            "by": entry.by,
        }


def story_of_call(policy: Policy, tool_name: str, arguments: Mapping[str, Any], facts: CallFacts) -> Story:
    """What the policy would make of a call. Handles in `arguments` stand as their values, with labels in `facts`."""
    decided = decide_call(policy, tool_name, arguments, facts)
    return Story(tool_name, policy, arguments, facts, decided, _trace(decided))


def story_of_record(policy: Policy, record: Mapping[str, Any]) -> Story:
    """What `policy` makes of an audited call (an intent or a refusal that a policy decided, with its arguments).

    Raises KeyError or ValueError for a record that is none.
    """
    facts, name, arguments = facts_of(record), record["requested_tool"], record["arguments"]
    tool = policy.tool(name)
    if policy.sha256 != record["policy_sha256"] or tool is None or recorded_verdict(record) is None:
        decided = decide_call(policy, name, arguments, facts)
    else:  # the arguments on record are canonical already, and were judged so
        judgement = judge(policy, tool, arguments, facts)
        decided = Decided(verdict_of(tool, judgement), tool, arguments, judgement)
    return Story(name, policy, arguments, facts, decided, _trace(decided), recorded_verdict(record))


def _trace(decided: Decided) -> tuple[RuleTrace, ...]:
    if decided.tool is None or decided.arguments is None:
        return ()
    labelled = () if decided.judgement is None else decided.judgement.arguments
    return trace_rules(decided.tool, asked(decided.tool, decided.arguments, labelled))


def _violation_dict(violation: Violation) -> JsonObject:
    return {
        "parameter": violation.parameter,
        "label": violation.label.to_dict(),
        "accepts": violation.accepts.to_dict(),
        "link": violation.link,
    }


def _label(label: Label) -> str:
    return f"{label.sensitivity.name}/{label.integrity.name}"


def _shown(value: Any) -> str:
    text = canonical_json(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"
