"""What the person who is asked for an approval gets to see, put together from the judgement of the call."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.interceptor.approvals.binding import Question, Raise, Violation
from sentinel_rag.interceptor.flow import Violation as FlowViolation
from sentinel_rag.interceptor.policy import Rule, ToolPolicy
from sentinel_rag.interceptor.store import Raised


def question_about(
    tool: ToolPolicy,
    rule: Rule,
    reason: Reason,
    arguments: JsonObject,
    violations: Sequence[FlowViolation],
    raised_by: Sequence[Raised],
) -> Question:
    """The question for a call that `rule` lets pass only with an approval."""
    return Question(
        effect=tool.effect.value,
        server=tool.server,
        description=tool.description,
        condition=rule.condition,
        taint_level=rule.taint_level.name,
        why="sink_label" if reason is Reason.SINK_LABEL else "the rule requires it",
        arguments=arguments,
        violations=tuple(Violation(each.parameter, each.label, each.accepts) for each in violations),
        raised_by=tuple(Raise(each.audit_id, each.tool, each.label, each.at) for each in raised_by),
        approvers=tool.approvers,
    )
