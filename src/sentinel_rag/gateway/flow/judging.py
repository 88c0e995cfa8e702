"""The judgement of one call: its labels, the policy's decision, what its result will carry, and its record. Pure.

The gate, `sentinel policy explain` and the replay of a record (AUD-4) all ask here, so a past decision comes out the
same.

Argument labels (security model, "Labels"): a literal carries what the agent has seen, whatever its text; a handle
carries the label stored with it joined with that; a value that the user's own words name carries the user's label. A
text of the user's whose places were filled in is the user's by its form, and as secret as what the agent has seen. A
named declassification lowers a label where it would be too high for the tool, and is told in the judgement.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count
from typing import Any

from sentinel_rag.contracts.json_values import JsonForm, JsonObject, JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.tool_calls import Allow, Decision, Deny, Reason
from sentinel_rag.gateway.flow.links import is_allowed, linked_hosts, texts_in, without
from sentinel_rag.gateway.flow.named_values import NamedValue, Naming, may_name, naming_of, naming_together
from sentinel_rag.gateway.flow.plans import PLAN, Planned, Step, planned
from sentinel_rag.gateway.flow.view import HandleReference
from sentinel_rag.gateway.policy.conditions import named_argument
from sentinel_rag.gateway.policy.model import (
    Declassification,
    Effect,
    NoteKind,
    Parameter,
    Policy,
    PublicKind,
    ToolPolicy,
    ValueKind,
    decide,
)

USER = BOTTOM
"""The label of the user's own words: they may be used anywhere, and the user answers for them."""

PASSED = "passed"
"""Who names it in a session that a named value has passed."""

_ADDRESSES = (ValueKind.URL, ValueKind.HOST, ValueKind.EMAIL, ValueKind.IP)
"""What a user's words can name that a text may then link to."""

LINK_CEILING: Mapping[Effect, Label] = {
    # Whoever reads what was written draws the link, and may follow it.
    Effect.WRITE: Label(Sensitivity.LOW, Integrity.TRUSTED),
    Effect.EXTERNAL: Label(Sensitivity.LOW, Integrity.UNTRUSTED),
}
"""What a text may carry that holds a link to a host outside `link_hosts`."""


class LabelSource(StrEnum):
    """Where an argument's label comes from."""

    LITERAL = "literal"
    HANDLE = "handle"
    NAMED = "named"
    DECLASSIFIED = "declassified"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What the gateway knows beside the call. `handles`: for each argument with handles the join of their labels.
    `named`: what the user's words name in this session, and who says so. `resources`: the join of the labels stored
    with what the call reads. `memory`: for a tool with `across_sessions`, what the agent has seen in its other ones."""

    context: Label = BOTTOM
    handles: Mapping[str, Label] = field(default_factory=dict)
    named: Mapping[NamedValue, str] = field(default_factory=dict)
    resources: Label = BOTTOM
    memory: Label = BOTTOM

    @property
    def seen(self) -> Label:
        """What the agent may have put into the call."""
        return self.context.join(self.memory)


@dataclass(frozen=True, slots=True)
class LabelledArgument:
    """`links` are the addresses of the user's own words that links in it lead to, each an exception like a named value.
    `by` names the declassification, or who named the value (`user`, or an endorsement); `naming` tells of each named
    value, one for each element of a list, what named it."""

    name: str
    label: Label
    source: LabelSource
    by: str = ""
    naming: tuple[Naming, ...] = field(default=(), compare=False)
    links: tuple[Naming, ...] = field(default=(), compare=False)

    @property
    def is_whole(self) -> bool:
        """False for a text of the user's whose places were filled in."""
        return all(each.whole for each in self.naming)

    @property
    def is_named(self) -> bool:
        """What a condition asks by `named`: the value holds nothing but what was named."""
        return self.source is LabelSource.NAMED and self.is_whole


@dataclass(frozen=True, slots=True)
class Violation(JsonForm):
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
    session's plan that the call is; `passes` is what the session notes once the call runs, since named values of the
    tool pass only so often."""

    decision: Decision
    arguments: tuple[LabelledArgument, ...]
    violations: tuple[Violation, ...]
    base: Label
    revealed: Label
    step: Step | None = None
    passes: tuple[NamedValue, ...] = ()

    @property
    def lowered(self) -> tuple[LabelledArgument, ...]:
        """Arguments whose label is not that of their text: each is an exception that the record names."""
        return tuple(entry for entry in self.arguments if entry.source in (LabelSource.NAMED, LabelSource.DECLASSIFIED))


def judge(policy: Policy, tool: ToolPolicy, arguments: Mapping[str, Any], facts: CallFacts) -> Judgement:
    """Judge a call whose arguments have the declared types, handles already replaced by their values. Never raises."""
    plan = planned(tool, arguments, facts.named)
    origins = tuple(_by_origin(policy, tool, name, arguments, facts, plan) for name in arguments)
    decision = decide(tool, asked(tool, arguments, origins))
    labelled = tuple(
        _with_links(
            policy, tool, _lowered(policy, tool, entry, arguments[entry.name], decision.rule_id), arguments, facts
        )
        for entry in origins
    )
    violations = _violations(policy, tool, arguments, labelled, facts, decision.rule_id)
    if isinstance(decision, Allow) and violations:
        worst = join_all(violation.label for violation in violations)
        decision = Deny(Reason.SINK_LABEL, worst, decision.rule_id)
    share = tool.rule_label(decision.rule_id)
    base = join_all([share, facts.resources, *(entry.label for entry in labelled)])
    step = None if plan is None else plan.step
    passes = _passes(tool, labelled, facts, decision.rule_id)
    return Judgement(decision, labelled, violations, base, base.join(tool.revealed), step, passes)


def refused_whatever(policy: Policy, tool: ToolPolicy, facts: CallFacts) -> tuple[Violation, ...]:
    """What every call of the tool violates, whatever its arguments are, because of what the session has seen: nothing
    where some call may pass or a person may be asked, and where the rules deny all calls by themselves."""
    required = [name for name, parameter in tool.parameters.items() if parameter.required]
    # Each further argument can only add a violation; a call without any is judged by its fact.
    least = [required] if required else [[], *([name] for name in tool.parameters)]
    found: tuple[Violation, ...] = ()
    for rule in tool.rules:
        if rule.deny:
            continue
        if rule.may_ask:
            return ()
        for names in least:
            best = tuple(_at_best(policy, tool, name, facts, rule.rule_id) for name in names)
            violations = _violations(policy, tool, dict.fromkeys(names), best, facts, rule.rule_id)
            if not violations:
                return ()
            found = found or violations
    return found


def _at_best(policy: Policy, tool: ToolPolicy, name: str, facts: CallFacts, rule_id: str) -> LabelledArgument:
    """The lowest label that an argument may get in this session, whatever its value is."""
    attest = tool.parameters[name].attest
    # A step of a plan names every parameter that it gives.
    if may_name(attest, facts.named):
        return LabelledArgument(name, USER, LabelSource.NAMED)
    literal = LabelledArgument(name, facts.seen, LabelSource.LITERAL)
    lower = (rule.to for rule in policy.declassifications if (rule.tool, rule.parameter) == (tool.name, name))
    ceiling = tool.ceiling(name, rule_id)
    return next((LabelledArgument(name, to, LabelSource.DECLASSIFIED) for to in lower if to.flows_to(ceiling)), literal)


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
                return LabelledArgument(found.name, rule.to, LabelSource.DECLASSIFIED, rule.name)
    return found


def _by_origin(
    policy: Policy,
    tool: ToolPolicy,
    name: str,
    arguments: Mapping[str, JsonValue],
    facts: CallFacts,
    plan: Planned | None,
) -> LabelledArgument:
    parameter = tool.parameters[name]
    stored = facts.handles.get(name)
    if stored is not None:
        return LabelledArgument(name, stored.join(facts.seen), LabelSource.HANDLE)
    naming = _naming(policy, tool, parameter, arguments, facts)
    by = next((each.by for each in naming if each.by != "user"), "user")
    # A list that says one thing again and again says how often.
    told_once = len({each.form if each.value.kind == ValueKind.DAY else each.value for each in naming}) == len(naming)
    whole = all(each.whole for each in naming) and told_once
    by_plan = None if plan is None else plan.by_parameter.get(name)
    # What is named without the plan, and more openly than the plan does, needs none.
    if by_plan is not None and not (naming and whole and (by == "user" or by_plan.kind == NoteKind.CHOSEN)):
        # What a slot chose is a text of somebody else's: the person answers for the choice, and its words stay secret.
        stands_there = by_plan.kind != NoteKind.CHOSEN
        label = USER if stands_there else Label(facts.seen.sensitivity, USER.integrity)
        return LabelledArgument(name, label, LabelSource.NAMED, PLAN, (Naming(PLAN, by_plan, stands_there),))
    if naming and not _has_passed(tool, name, naming, facts):
        label = USER if whole else Label(facts.seen.sensitivity, USER.integrity)
        told = naming if whole else tuple(replace(each, whole=False) for each in naming)
        return LabelledArgument(name, label, LabelSource.NAMED, by, told)
    return LabelledArgument(name, facts.seen, LabelSource.LITERAL)


def _has_passed(tool: ToolPolicy, parameter: str, naming: Iterable[Naming], facts: CallFacts) -> bool:
    """Whether a named value has passed as often as the tool's `named_limit` lets it. Which of several values an agent
    takes, and how often, tells something of what it has seen; so where it may tell nothing, that comes to an end."""
    if tool.named_limit is None:
        return False
    counts = Counter(_counted(each) for each in naming)
    # Passes are noted in order, so there is room for so many if the first that would be one too many is not noted.
    return any(
        often > tool.named_limit or _pass(tool, parameter, form, tool.named_limit + 1 - often) in facts.named
        for form, often in counts.items()
    )


def _passes(
    tool: ToolPolicy, labelled: Iterable[LabelledArgument], facts: CallFacts, rule_id: str | None
) -> tuple[NamedValue, ...]:
    """The next pass of each named value without whose name the argument would carry too much."""
    if tool.named_limit is None:
        return ()
    found: dict[NamedValue, None] = {}
    for entry in labelled:
        if (
            entry.source is LabelSource.NAMED
            and entry.by != PLAN
            and not facts.seen.flows_to(tool.ceiling(entry.name, rule_id))
        ):
            for each in entry.naming:
                form = _counted(each)
                ways = (_pass(tool, entry.name, form, number) for number in count(1))
                # One is free within the limit, or `_has_passed` would have left the argument a literal.
                found[next(way for way in ways if way not in facts.named and way not in found)] = None
    return tuple(found)


def _counted(naming: Naming) -> NamedValue:
    """What a pass is counted by: what was named, whichever of its values it is, and in any case, so that neither the
    year of a day, nor the passage of a message, nor the case of a word is another one."""
    return NamedValue(naming.form.kind, naming.form.text.casefold())


def _pass(tool: ToolPolicy, parameter: str, form: NamedValue, number: int) -> NamedValue:
    """That what was named passed for the `number`th time."""
    return NamedValue(NoteKind.PASSED, f"{tool.name} {parameter} {form.kind} {form.text} {number}")


def _naming(
    policy: Policy, tool: ToolPolicy, parameter: Parameter, arguments: Mapping[str, JsonValue], facts: CallFacts
) -> tuple[Naming, ...]:
    """Who names the value, or each element of it; nothing unless all are named."""
    value = arguments[parameter.name]
    if parameter.together:
        other = tool.parameters[parameter.together]
        beside = arguments.get(other.name)
        pair = naming_together(parameter.attest, value, other.attest, beside, facts.named, policy.kinds)
        return () if pair is None else (pair,)
    parts = value if isinstance(value, list) else [value]
    found = [naming_of(parameter.attest, part, facts.named, policy.kinds) for part in parts]
    return tuple(each for each in found if each is not None) if None not in found else ()


def _violations(
    policy: Policy,
    tool: ToolPolicy,
    arguments: Mapping[str, JsonValue],
    labelled: tuple[LabelledArgument, ...],
    facts: CallFacts,
    rule_id: str | None,
) -> tuple[Violation, ...]:
    found: list[Violation] = []
    if not labelled and not facts.seen.flows_to(tool.call_ceiling()):
        # A call without arguments says one thing: that it was made.
        found.append(Violation("", facts.seen, tool.call_ceiling()))
    stricter = LINK_CEILING.get(tool.effect)
    for entry in labelled:
        ceiling = tool.ceiling(entry.name, rule_id)
        if not entry.label.flows_to(ceiling):
            found.append(Violation(entry.name, entry.label, ceiling))
        elif (
            stricter is not None
            # What fills a place of the user's text is not the user's, whatever its form.
            and not (entry.label if entry.is_whole else facts.seen).flows_to(stricter)
            # A parameter that is an address by its format is judged by what it accepts.
            and tool.parameters[entry.name].format is None
            and _foreign_hosts(policy, arguments[entry.name], [each.value for each in entry.links])
        ):
            found.append(Violation(entry.name, entry.label, stricter, link=True))
    return tuple(found)


def _with_links(
    policy: Policy, tool: ToolPolicy, found: LabelledArgument, arguments: Mapping[str, JsonValue], facts: CallFacts
) -> LabelledArgument:
    """The argument with the addresses of the user's words that it links to, where links count. An address is the
    user's as a whole: at a host that they only named, what stands behind it would be the agent's own."""
    value = arguments[found.name]
    stricter = LINK_CEILING.get(tool.effect)
    if stricter is None or tool.parameters[found.name].format is not None:
        return found
    if (
        (found.label if found.is_whole else facts.seen).flows_to(stricter)
        or not facts.named
        or not _foreign_hosts(policy, value, ())
    ):
        return found
    addresses = _addresses(said for said, by in facts.named.items() if by == "user" and said.kind in _ADDRESSES)
    used = {addresses[form] for text in texts_in(value) for form in without(text, addresses)[1]}
    return replace(found, links=tuple(Naming("user", said) for said in sorted(used, key=lambda said: said.text)))


def _foreign_hosts(policy: Policy, value: JsonValue, known: Iterable[NamedValue]) -> bool:
    """Whether a text links to a host that the policy does not list, but for the addresses of `known`."""
    addresses = _addresses(known)
    return any(
        not is_allowed(host, policy.link_hosts)
        for text in texts_in(value)
        for host in linked_hosts(without(text, addresses)[0] if addresses else text)
    )


def _addresses(named: Iterable[NamedValue]) -> Mapping[str, NamedValue]:
    return {form: said for said in named for form in _written(said)}


def _written(said: NamedValue) -> Iterable[str]:
    """How an address that the user named may stand in a text; of a host alone, its name and its front page."""
    if said.kind == ValueKind.EMAIL:
        return [said.text, f"mailto:{said.text}"]
    bare = said.text.removeprefix("https://")
    whole = [said.text, bare] if said.kind == ValueKind.URL else [f"https://{bare}/", f"http://{bare}/", bare]
    return [form for each in whole for form in (each, each.removesuffix("/"))]


def _fits(rule: Declassification, value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= rule.max_length and FORMS[rule.form](value)


# The typed conditions of a declassification: forms of values that are looked up and read as no sentence.
#
# A form bounds what a value can carry and does not make it harmless: 64 bytes fit into the writing of a SHA-512.


_HASH = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})", re.IGNORECASE)
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}")
_LOCAL_SUFFIXES = (".local", ".internal", ".lan", ".corp", ".home", ".localdomain", ".intranet", ".private", ".arpa")


def is_public_ip(text: str) -> bool:
    """A globally routable address in its canonical text; private, mapped, documentation and zone forms are none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and (
        address.ipv4_mapped or address.sixtofour or address.teredo or address.scope_id
    ):
        return False
    return address.is_global and not address.is_multicast and str(address) == text


def is_hash(text: str) -> bool:
    """The hexadecimal text of an MD5, SHA-1, SHA-256, SHA-384 or SHA-512."""
    return _HASH.fullmatch(text) is not None


def is_domain(text: str) -> bool:
    """A DNS name of ASCII letters in lower case with a public-looking end; no IDNA, no name of an inner network."""
    return _DOMAIN.fullmatch(text) is not None and not text.endswith(_LOCAL_SUFFIXES) and "xn--" not in text


FORMS: Mapping[PublicKind, Callable[[str], bool]] = {
    PublicKind.PUBLIC_IP: is_public_ip,
    PublicKind.HASH: is_hash,
    PublicKind.DOMAIN: is_domain,
}


def flow_record(
    judgement: Judgement,
    facts: CallFacts,
    references: Mapping[str, tuple[HandleReference, ...]],
) -> JsonObject | None:
    """The record's `flow`; None for a call of literals alone to a tool that takes them."""
    named: list[JsonValue] = []
    declassified: list[JsonValue] = []
    for entry in judgement.lowered:
        if entry.source is LabelSource.DECLASSIFIED:
            declassified.append({"parameter": entry.name, "rule": entry.by, "to": entry.label.to_dict()})
            continue
        said = {each.value: each.by for each in entry.naming}
        if entry.by == PLAN and judgement.step is not None:
            said[judgement.step.said] = PLAN  # what was chosen counts in its step alone
        named += [
            {"parameter": entry.name, "kind": str(value.kind), "text": value.text, "by": by}
            for value, by in said.items()
        ]
    links: list[JsonValue] = [
        {"parameter": entry.name, "kind": str(each.value.kind), "text": each.value.text, "by": each.by}
        for entry in judgement.arguments
        for each in entry.links
    ]
    found: dict[str, JsonValue] = {}
    if facts.handles:
        found["handles"] = {
            name: {"handles": [str(one) for one in references.get(name, ())], "label": label.to_dict()}
            for name, label in facts.handles.items()
        }
    if named:
        found["named"] = named
    if links:
        found["links"] = links
    if declassified:
        found["declassified"] = declassified
    if facts.resources != BOTTOM:
        found["resources"] = facts.resources.to_dict()
    if not facts.memory.flows_to(facts.context):
        found["memory"] = facts.memory.to_dict()
    if judgement.violations:
        found["violations"] = [
            {
                "parameter": violation.parameter,
                "label": violation.label.to_dict(),
                "accepts": violation.accepts.to_dict(),
                "link": violation.link,
            }
            for violation in judgement.violations
        ]
    return found or None


def facts_of(record: Mapping[str, Any]) -> CallFacts:
    """The facts that a recorded call was judged by. Raises KeyError or ValueError for what is no such record."""
    flow = record.get("flow") or {}
    return CallFacts(
        context=Label.from_dict(record["context_before"]),
        handles={name: Label.from_dict(entry["label"]) for name, entry in flow.get("handles", {}).items()},
        named={
            NamedValue(one["kind"], one["text"]): one["by"] for key in ("links", "named") for one in flow.get(key, ())
        },
        resources=Label.from_dict(flow["resources"]) if "resources" in flow else BOTTOM,
        memory=Label.from_dict(flow["memory"]) if "memory" in flow else BOTTOM,
    )
