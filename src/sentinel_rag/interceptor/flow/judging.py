"""The judgement of one call: its labels, the policy's decision, and what its result will carry. Pure.

The gate, `sentinel policy explain` and the replay of a record all ask here, so a past decision comes out the same.

Argument labels (security model, "Labels"): a literal carries the context label, whatever its text; a handle carries the
label stored with it joined with the context; a value that the user's own words name carries the user's label. A text
of the user's whose places were filled in is the user's by its form, and as secret as the context. A named
declassification lowers a label where it would be too high for the tool, and is told in the judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.decisions import Allow, Decision, Deny, Reason
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.interceptor.flow.links import is_allowed, linked_hosts
from sentinel_rag.interceptor.flow.named_values import NamedValue, Naming, naming_of
from sentinel_rag.interceptor.flow.plans import PLAN, Planned, Step, planned
from sentinel_rag.interceptor.flow.public_forms import FORMS
from sentinel_rag.interceptor.policy.conditions import named_argument
from sentinel_rag.interceptor.policy.deciding import decide
from sentinel_rag.interceptor.policy.model import Declassification, Effect, Parameter, Policy, ToolPolicy, ValueKind

USER = BOTTOM
"""The label of the user's own words: they may be used anywhere, and the user answers for them."""

LINK_CEILING: Mapping[Effect, Label] = {
    # Whoever reads what was written draws the link, and may follow it.
    Effect.WRITE: Label(Sensitivity.LOW, Integrity.TRUSTED),
    Effect.EXTERNAL: Label(Sensitivity.LOW, Integrity.UNTRUSTED),
}
"""What a text may carry that holds a link to a host outside `link_hosts`."""


class Source(StrEnum):
    """Where an argument's label comes from."""

    LITERAL = "literal"
    HANDLE = "handle"
    NAMED = "named"
    DECLASSIFIED = "declassified"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the gateway knows beside the call. `handles`: for each argument with handles the join of their labels.
    `named`: what the user's words name in this session, and who says so. `resources`: the join of the labels stored
    with what the call reads."""

    context: Label = BOTTOM
    handles: Mapping[str, Label] = field(default_factory=dict)
    named: Mapping[NamedValue, str] = field(default_factory=dict)
    resources: Label = BOTTOM


@dataclass(frozen=True, slots=True)
class LabelledArgument:
    """`by` names the declassification, or who named the value (`user`, or an endorsement); `naming` tells of each named
    value, one for each element of a list, what named it."""

    name: str
    label: Label
    source: Source
    by: str = ""
    naming: tuple[Naming, ...] = field(default=(), compare=False)

    @property
    def is_whole(self) -> bool:
        """False for a text of the user's whose places were filled in."""
        return all(each.whole for each in self.naming)

    @property
    def is_named(self) -> bool:
        """What a condition asks by `named`: the value holds nothing but what was named."""
        return self.source is Source.NAMED and self.is_whole


@dataclass(frozen=True, slots=True)
class Violation:
    """An argument that carries more than its place accepts. `parameter` is empty for the fact of the call itself;
    `link` tells that a link in the text made its place stricter."""

    parameter: str
    label: Label
    accepts: Label
    link: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """`base` is the share of the result's label that rule, arguments and resources give; `revealed` an upper bound of
    what the agent may see of the result; `decision` an Allow only without violations; `step` is the one of the
    session's plan that the call is."""

    decision: Decision
    arguments: tuple[LabelledArgument, ...]
    violations: tuple[Violation, ...]
    base: Label
    revealed: Label
    step: Step | None = None

    @property
    def lowered(self) -> tuple[LabelledArgument, ...]:
        """Arguments whose label is not that of their text: each is an exception that the record names."""
        return tuple(entry for entry in self.arguments if entry.source in (Source.NAMED, Source.DECLASSIFIED))


def judge(policy: Policy, tool: ToolPolicy, arguments: Mapping[str, Any], facts: Facts) -> Judgement:
    """Judge a call whose arguments have the declared types, handles already replaced by their values. Never raises."""
    plan = planned(tool, arguments, facts.named) if facts.named else None
    origins = tuple(_by_origin(policy, tool.parameters[name], value, facts, plan) for name, value in arguments.items())
    decision = decide(tool, asked(tool, arguments, origins))
    labelled = tuple(_lowered(policy, tool, entry, arguments[entry.name], decision.rule_id) for entry in origins)
    violations = _violations(policy, tool, arguments, labelled, facts, decision.rule_id)
    if isinstance(decision, Allow) and violations:
        worst = join_all(violation.label for violation in violations)
        decision = Deny(Reason.SINK_LABEL, worst, decision.rule_id)
    share = tool.rule_label(decision.rule_id)
    base = join_all([share, facts.resources, *(entry.label for entry in labelled)])
    return Judgement(
        decision, labelled, violations, base, base.join(tool.revealed), None if plan is None else plan.step
    )


def asked(tool: ToolPolicy, arguments: Mapping[str, Any], labelled: Iterable[LabelledArgument]) -> Mapping[str, Any]:
    """What the conditions of a tool's rules may ask about a call: its arguments, and which of them are named."""
    attested = [name for name, parameter in tool.parameters.items() if parameter.attest]
    if not attested:
        return arguments
    # What stands in a plan is the person's as their words are, so `named` holds of it too.
    named = {entry.name for entry in labelled if entry.is_named}
    return {**arguments, **{named_argument(name): name in named for name in attested}}


def _lowered(
    policy: Policy, tool: ToolPolicy, found: LabelledArgument, value: JsonValue, rule_id: str | None
) -> LabelledArgument:
    if not found.label.flows_to(tool.ceiling(found.name, rule_id)):
        for rule in policy.declassifications:
            if rule.tool == tool.name and rule.parameter == found.name and _fits(rule, value):
                return LabelledArgument(found.name, rule.to, Source.DECLASSIFIED, rule.name)
    return found


def _by_origin(
    policy: Policy, parameter: Parameter, value: JsonValue, facts: Facts, plan: Planned | None
) -> LabelledArgument:
    stored = facts.handles.get(parameter.name)
    if stored is not None:
        return LabelledArgument(parameter.name, stored.join(facts.context), Source.HANDLE)
    naming = _naming(policy, parameter, value, facts) if parameter.attest and facts.named else ()
    by = next((each.by for each in naming if each.by != "user"), "user")
    # A list that says one thing again and again says how often.
    whole = all(each.whole for each in naming) and len({each.value for each in naming}) == len(naming)
    if plan is not None and parameter.name in plan.by_parameter and not (naming and whole and by == "user"):
        by_plan = plan.by_parameter[parameter.name]
        # What a slot chose is a text of somebody else's: the person answers for the choice, and its words stay secret.
        stands_there = by_plan.kind != ValueKind.CHOSEN
        label = USER if stands_there else Label(facts.context.sensitivity, USER.integrity)
        return LabelledArgument(parameter.name, label, Source.NAMED, PLAN, (Naming(PLAN, by_plan, stands_there),))
    if naming:
        label = USER if whole else Label(facts.context.sensitivity, USER.integrity)
        told = naming if whole else tuple(replace(each, whole=False) for each in naming)
        return LabelledArgument(parameter.name, label, Source.NAMED, by, told)
    return LabelledArgument(parameter.name, facts.context, Source.LITERAL)


def _naming(policy: Policy, parameter: Parameter, value: JsonValue, facts: Facts) -> tuple[Naming, ...]:
    """Who names the value, or each element of it; nothing unless all are named."""
    parts = value if isinstance(value, list) else [value]
    found = [naming_of(parameter.attest, part, facts.named, policy.kinds) for part in parts]
    return tuple(each for each in found if each is not None) if None not in found else ()


def _violations(
    policy: Policy,
    tool: ToolPolicy,
    arguments: Mapping[str, JsonValue],
    labelled: tuple[LabelledArgument, ...],
    facts: Facts,
    rule_id: str | None,
) -> tuple[Violation, ...]:
    found: list[Violation] = []
    if not labelled and not facts.context.flows_to(tool.call_ceiling()):
        # A call without arguments says one thing: that it was made.
        found.append(Violation("", facts.context, tool.call_ceiling()))
    stricter = LINK_CEILING.get(tool.effect)
    for entry in labelled:
        ceiling = tool.ceiling(entry.name, rule_id)
        if not entry.label.flows_to(ceiling):
            found.append(Violation(entry.name, entry.label, ceiling))
        elif (
            stricter is not None
            # What fills a place of the user's text is not the user's, whatever its form.
            and not (entry.label if entry.is_whole else facts.context).flows_to(stricter)
            # A parameter that is an address by its format is judged by what it accepts.
            and tool.parameters[entry.name].format is None
            and _holds_foreign_link(policy, arguments[entry.name], facts)
        ):
            found.append(Violation(entry.name, entry.label, stricter, link=True))
    return tuple(found)


def _holds_foreign_link(policy: Policy, value: JsonValue, facts: Facts) -> bool:
    """Whether a text names a host that neither the policy nor the user knows."""
    return any(
        not is_allowed(host, policy.link_hosts) and NamedValue(ValueKind.HOST, host) not in facts.named
        for host in linked_hosts(value)
    )


def _fits(rule: Declassification, value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= rule.max_length and FORMS[rule.form](value)
