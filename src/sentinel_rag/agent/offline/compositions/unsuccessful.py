"""Refusals and failures, told apart from empty results, each with the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sentinel_rag.agent.answer_writer import AnswerWriter
from sentinel_rag.agent.retry import READING_TOOLS
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed

MOST_ALLOWED = 40
_ANOTHER_WAY = "Ask whoever keeps the policy for access, or ask for something that needs another tool."
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_NO_SECTIONS: Mapping[str, str] = MappingProxyType({})
_STEPS = {
    Reason.APPROVAL_REQUIRED: "It needs a person's approval first: ask whoever approves such calls, then ask again.",
    Reason.SINK_LABEL: "What was read may not be sent there; your own words may: ask to “search the web for ...”.",
}


def say_failures(
    writer: AnswerWriter,
    runs: Sequence[ToolRun],
    *,
    some_worked: bool,
    sections: Mapping[str, str] = _NO_SECTIONS,
    by_model: bool = False,
) -> Outcome:
    """One line for each; the outcome for a turn in which nothing worked. `sections` tells the workspace of a call id
    where several were asked. `by_model` if a model wrote the arguments: what is wrong with them is nothing that the
    person could correct."""
    if some_worked:
        writer.fixed("Not all of it could be answered:")
    outcome = Outcome.TOOL_FAILED
    for run in runs:
        section = sections.get(run.call.call_id, "")
        of = f" for workspace {plain(section)}" if section else ""
        match run.outcome:
            case Denied(reason=reason, detail=detail, rule_id=rule_id, audit_id=audit_id, approval_id=approval_id):
                outcome = Outcome.DENIED
                done = "read" if run.call.tool_name in READING_TOOLS else "changed"
                rule = "no rule allows this call" if rule_id is None else f"rule {plain(rule_id)}"
                record = f"; its record is audit {plain(audit_id)}" if audit_id else ""
                step = _STEPS.get(reason, _ANOTHER_WAY)
                if approval_id is not None:
                    step = (
                        "A person may let exactly this call run, once: `sentinel approvals show "
                        f"{plain(approval_id)}`. Then ask again in this conversation "
                        f"(`sentinel ask --session {plain(run.call.session_id)}`)."
                    )
                writer.fixed(
                    f"{plain(detail).rstrip('.')}. The gateway refused {run.call.tool_name}{of} ({rule}){record}. "
                    f"Nothing was {done}. {step}"
                )
            case Failed(error=error, audit_id=audit_id) if by_model and error.code is QueryErrorCode.INVALID_ARGUMENT:
                record = f" (audit {plain(audit_id)})" if audit_id else ""
                allowed = _allowed([value for value in error.allowed if value not in _JSON_TYPES])
                writer.fixed(
                    f"The model called {run.call.tool_name}{of} with an argument that the tool does not take, so it "
                    f"did not run: {plain(error.message).rstrip('.')}{record}.{allowed} Ask again in other words; if "
                    "it stays, choose another model."
                )
            case Failed(error=error, audit_id=audit_id):
                record = f" (audit {plain(audit_id)})" if audit_id else ""
                step = plain(error.next_step) or "Ask again later; if it stays, run `sentinel doctor`."
                allowed = _allowed(error.allowed)
                writer.fixed(
                    f"{run.call.tool_name}{of} failed, which is not the same as finding nothing: "
                    f"{plain(error.message).rstrip('.')}{record}.{allowed} {step}"
                )
    return outcome


def _allowed(values: Sequence[str]) -> str:
    if not values:
        return ""
    more = f" and {len(values) - MOST_ALLOWED} more" if len(values) > MOST_ALLOWED else ""
    return f" Allowed: {', '.join(plain(value) for value in values[:MOST_ALLOWED])}{more}."
