"""Refusals and failures, told apart from empty results, each with the next step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.row_text import code, plain
from sentinel_rag.agent.tool_runs import READING_TOOLS, ToolRun
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed

MOST_ALLOWED = 40
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_NO_SECTIONS: Mapping[str, str] = MappingProxyType({})
_POLICY = "Ask whoever keeps the policy for access, or ask for something that needs another tool."
_WHY = {
    Reason.NO_RULE_MATCHED: ("no rule of the policy allows it", _POLICY),
    Reason.RULE_DENIES: ("the policy forbids it", _POLICY),
    Reason.APPROVAL_REQUIRED: (
        "it needs a person's approval first",
        "Ask whoever approves such calls, then ask again.",
    ),
    Reason.CONDITION_UNDECIDED: ("a condition of the policy could not be decided for these arguments", _POLICY),
    Reason.SINK_LABEL: (
        "what was read in this conversation may not be sent there",
        "Ask for it in a new conversation.",
    ),
    Reason.UNKNOWN_TOOL: ("the gateway knows no such tool", "Ask for something that needs another tool."),
    Reason.TOOL_QUARANTINED: (
        "the tool is set aside, because its description changed since it was approved",
        "Ask whoever keeps the gateway to look at it.",
    ),
    Reason.TOOL_SWITCHED_OFF: ("the tool is switched off", "Ask whoever keeps the gateway to switch it on."),
    Reason.MISSING_SCOPE: ("your account may not use it", "Ask whoever keeps the accounts."),
}
"""Why a call was refused, and what helps."""
LONGEST_ARGUMENT = 80


def call_in_words(run: ToolRun) -> str:
    """`update_incident, incident 124, status Closed`; long arguments by their beginning."""
    said = (f"{name} {_argument(value)}" for name, value in run.call.arguments.items())
    return ", ".join((plain(run.call.tool_name), *said))


def _argument(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Whoever wrote the arguments, nothing in them is markup.
    return text if text.isalnum() and len(text) <= LONGEST_ARGUMENT else code(text, limit=LONGEST_ARGUMENT)


def say_waiting(writer: AnswerWriter, run: ToolRun, approval_id: str, then: str = "") -> None:
    """What waits; who can let it run and how, and what to do `then`; that nothing has happened."""
    name = plain(approval_id)
    then = then or f"Then ask again in this conversation (`sentinel ask --session {plain(run.call.session_id)}`)."
    _say(writer, run, f"Waiting for approval: {call_in_words(run)}.")
    writer.fixed(
        f"Whoever may approve it looks at it with `sentinel approvals show {name}` and decides with `sentinel "
        f"approvals approve {name}` or `deny`; the approval is for these arguments, once. {then}"
    )
    writer.fixed(f"Nothing was {_done(run)} yet.")


def _say(writer: AnswerWriter, run: ToolRun, text: str) -> None:
    """A sentence about a call that has no result: what it says is the call and its outcome."""
    writer.say_compared([(run, "")], "{}", Fact(text))


def why_refused(denied: Denied) -> tuple[str, str]:
    """The reason with its rule, as the part of a sentence, and what helps. The gateway's own words stand in the
    footnote."""
    why, step = _WHY.get(denied.reason, ("the gateway refused it", _POLICY))
    if denied.reason is Reason.SINK_LABEL and denied.call.tool_name.startswith("web_"):
        step = "Your own words may: ask to “search the web for ...”."
    record = [f"{word} {plain(name)}" for word, name in (("rule", denied.rule_id), ("audit", denied.audit_id)) if name]
    return f"{why} ({', '.join(record)})" if record else why, step


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
            case Denied(approval_id=str() as approval_id):
                outcome = Outcome.DENIED
                say_waiting(writer, run, approval_id)
            case Denied() as denied:
                outcome = Outcome.DENIED
                why, step = why_refused(denied)
                step = f"{plain(denied.note)} {step}".strip()
                _say(writer, run, f"Not done{of}: {call_in_words(run)}; {why}. Nothing was {_done(run)}. {step}")
            case Failed(error=error, audit_id=audit_id) if by_model and error.code is QueryErrorCode.INVALID_ARGUMENT:
                record = f" (audit {plain(audit_id)})" if audit_id else ""
                allowed = _allowed([value for value in error.allowed if value not in _JSON_TYPES])
                _say(
                    writer,
                    run,
                    f"The model called {run.call.tool_name}{of} with an argument that the tool does not take, so it "
                    f"did not run: {plain(error.message).rstrip('.')}{record}.{allowed} Ask again in other words; if "
                    "it stays, choose another model.",
                )
            case Failed(error=error, audit_id=audit_id):
                record = f" (audit {plain(audit_id)})" if audit_id else ""
                step = plain(error.next_step) or "Ask again later; if it stays, run `sentinel doctor`."
                allowed = _allowed(error.allowed)
                _say(
                    writer,
                    run,
                    f"{run.call.tool_name}{of} failed, which is not the same as finding nothing: "
                    f"{plain(error.message).rstrip('.')}{record}.{allowed} {step}",
                )
    return outcome


def _done(run: ToolRun) -> str:
    return "read" if run.call.tool_name in READING_TOOLS else "changed"


def _allowed(values: Sequence[str]) -> str:
    if not values:
        return ""
    more = f" and {len(values) - MOST_ALLOWED} more" if len(values) > MOST_ALLOWED else ""
    return f" Allowed: {', '.join(plain(value) for value in values[:MOST_ALLOWED])}{more}."
