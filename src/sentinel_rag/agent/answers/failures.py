"""Refusals and failures, told apart from empty results, each with the next step; and calls in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sentinel_rag.agent.answers.renderer import view_data
from sentinel_rag.agent.answers.writer import AnswerWriter, Fact
from sentinel_rag.agent.row_text import code, plain
from sentinel_rag.agent.tool_runs import READING_TOOLS, ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed, Reason

MOST_ALLOWED = 40
LONGEST_ARGUMENT = 80
LONGEST_STATUS = 200
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_NO_SECTIONS: Mapping[str, str] = MappingProxyType({})
_POLICY = "Ask whoever keeps the policy for access, or ask for something that needs another tool."


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """The call as it is sent, on one line, for a status line."""
    said = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return plain(f"{tool}({said})", limit=LONGEST_STATUS)


def _call_in_words(run: ToolRun) -> str:
    """`update_incident, incident 124, status Closed`; long arguments by their beginning."""
    said = (f"{name} {_argument(value)}" for name, value in run.call.arguments.items())
    return ", ".join((plain(run.call.tool_name), *said))


def _argument(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Whoever wrote the arguments, nothing in them is markup.
    return text if text.isalnum() and len(text) <= LONGEST_ARGUMENT else code(text, limit=LONGEST_ARGUMENT)


def say_waiting(writer: AnswerWriter, run: ToolRun, denied: Denied, then: str = "") -> None:
    """What waits; who can let it run and how, and what to do `then`; that nothing has happened."""
    name = plain(denied.approval_id or "")
    then = then or f"Then ask again in this conversation (`sentinel ask --session {plain(run.call.session_id)}`)."
    then = "It runs at the yes." if denied.runs_at_yes else then
    why = f"{plain(denied.note)} " if denied.note else ""
    if denied.decided_by:
        _say(writer, run, f"Waiting for your yes: {_call_in_words(run)}.")
        writer.fixed(
            f"You are shown exactly what it would change, here or by `sentinel approvals show {name}`; say yes or no, "
            f"here or with `sentinel approvals approve {name}` or `deny`. {then}"
        )
    else:
        _say(writer, run, f"Waiting for approval: {_call_in_words(run)}.")
        writer.fixed(
            f"{why}Whoever may approve it looks at it with `sentinel approvals show {name}` and decides with `sentinel "
            f"approvals approve {name}` or `deny`; the approval is for these arguments, once. {then}"
        )
    writer.fixed(f"Nothing was {_done(run)} yet.")


def _say_several_waiting(writer: AnswerWriter, waiting: Sequence[tuple[ToolRun, Denied]]) -> None:
    """What waits for somebody else, a line for each call, and once how it is decided and what was not done."""
    for run, denied in waiting:
        _say(writer, run, f"Waiting for approval: {_call_in_words(run)} ({plain(denied.approval_id or '')}).")
    why = "".join(f"{plain(note)} " for note in dict.fromkeys(denied.note for _, denied in waiting) if note)
    done = " or ".join(dict.fromkeys(_done(run) for run, _ in waiting))
    session = plain(waiting[0][0].call.session_id)
    writer.fixed(
        f"{why}Whoever may approve them looks with `sentinel approvals list` and decides each with `sentinel approvals "
        f"approve ID` or `deny`. Then ask again in this conversation (`sentinel ask --session {session}`). Nothing of "
        f"it was {done} yet."
    )


def _say(writer: AnswerWriter, run: ToolRun, text: str) -> None:
    """A sentence about a call that has no result: what it says is the call and its outcome."""
    writer.say_compared([(run, "")], "{}", Fact(text))


def why_refused(denied: Denied) -> tuple[str, str]:
    """The reason with its rule, as the part of a sentence, and what helps. The gateway's own words stand in the
    footnote."""
    why, step = (*view_data()["refused"].get(denied.reason.value, ("the gateway refused it",)), _POLICY)[:2]
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
    refused = [(run, run.outcome) for run in runs if isinstance(run.outcome, Denied)]
    waiting = [(run, denied) for run, denied in refused if denied.approval_id and not denied.decided_by]
    if len(waiting) > 1:
        outcome = Outcome.DENIED
        _say_several_waiting(writer, waiting)
        runs = [run for run in runs if all(run is not each for each, _ in waiting)]
    for run in runs:
        section = sections.get(run.call.call_id, "")
        of = f" for workspace {plain(section)}" if section else ""
        match run.outcome:
            case Denied(approval_id=str()) as waits:
                outcome = Outcome.DENIED
                say_waiting(writer, run, waits)
            case Denied() as denied:
                outcome = Outcome.DENIED
                why, step = why_refused(denied)
                step = f"{plain(denied.note)} {step}".strip()
                _say(writer, run, f"Not done{of}: {_call_in_words(run)}; {why}. Nothing was {_done(run)}. {step}")
            case Failed() as failed:
                _say(writer, run, _failure(run.call.tool_name + of, failed, by_model=by_model))
    return outcome


def _failure(what: str, failed: Failed, *, by_model: bool) -> str:
    error = failed.error
    record = f" (audit {plain(failed.audit_id)})" if failed.audit_id else ""
    message = plain(error.message).rstrip(".") + record
    if by_model and error.code is QueryErrorCode.INVALID_ARGUMENT:
        allowed = _allowed([value for value in error.allowed if value not in _JSON_TYPES])
        return (
            f"The model called {what} with an argument that the tool does not take, so it did not run: {message}."
            f"{allowed} Ask again in other words; if it stays, choose another model."
        )
    step = plain(error.next_step) or "Ask again later; if it stays, run `sentinel doctor`."
    return f"{what} failed, which is not the same as finding nothing: {message}.{_allowed(error.allowed)} {step}"


def _done(run: ToolRun) -> str:
    return "read" if run.call.tool_name in READING_TOOLS else "changed"


def _allowed(values: Sequence[str]) -> str:
    more = f" and {len(values) - MOST_ALLOWED} more" if len(values) > MOST_ALLOWED else ""
    return f" Allowed: {', '.join(plain(value) for value in values[:MOST_ALLOWED])}{more}." if values else ""
