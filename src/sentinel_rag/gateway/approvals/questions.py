"""From a judged call to the question that a person is asked about it.

The gate knows the tool, the rule and what the labels said; here that becomes what the person sees. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.approvals.binding import (
    ApprovalQuestion,
    Asker,
    DecidedBy,
    Raise,
    RememberedApproval,
    Violation,
)
from sentinel_rag.gateway.approvals.subject import CallSubject, EarlierRead, title_of
from sentinel_rag.gateway.policy.model import Rule, ToolPolicy

RULE_REQUIRES = "the rule requires it"
"""`ApprovalQuestion.why` of a rule with `requires_approval`; any other is the reason code of the denial that it
replaces."""


NOBODY = Asker()


class Violating(Protocol):
    """An argument whose label is above what its place accepts."""

    @property
    def parameter(self) -> str: ...
    @property
    def label(self) -> Label: ...
    @property
    def accepts(self) -> Label: ...
    @property
    def link(self) -> bool: ...


class Raising(Protocol):
    """A call that raised the context label; `at` is a time in ISO 8601."""

    @property
    def audit_id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def label(self) -> Label: ...
    @property
    def at(self) -> str: ...


def question_about(
    tool: ToolPolicy,
    rule: Rule,
    reason: Reason,
    arguments: JsonObject,
    violations: Iterable[Violating],
    raised_by: Iterable[Raising],
    *,
    asker: Asker = NOBODY,
    memory: Label = BOTTOM,
    remembered: Iterable[Raising] = (),
    subject: CallSubject | None = None,
    evidence: Iterable[EarlierRead] = (),
) -> ApprovalQuestion:
    """What a person is asked about a call of `tool` that `rule` lets nobody run alone. `reason` is why it was denied,
    `arguments` are those that would be sent, whole; `memory` is what the agent may remember of other sessions, and
    `remembered` are the calls there that raised it; `subject` is what the call would change, `evidence` what the
    conversation had read."""
    return ApprovalQuestion(
        effect=tool.effect.value,
        server=tool.server,
        description=tool.description,
        condition=rule.condition,
        taint_level=rule.taint_level.name,
        why=RULE_REQUIRES if reason is Reason.APPROVAL_REQUIRED else reason.value,
        arguments=arguments,
        violations=tuple(Violation(each.parameter, each.label, each.accepts, each.link) for each in violations),
        raised_by=_raises(raised_by),
        approvers=tool.approvers,
        decided_by=DecidedBy.ASKER if rule.asks_the_asker else DecidedBy.OTHER,
        asker=asker,
        remembered=RememberedApproval(memory, _raises(remembered)),
        title=title_of(tool, arguments, subject, asker.person),
        subject=subject,
        runs_at_yes=rule.runs_at_yes,
        evidence=tuple(evidence),
    )


def _raises(found: Iterable[Raising]) -> tuple[Raise, ...]:
    return tuple(Raise(each.audit_id, each.tool, each.label, each.at) for each in found)
