"""What became of a change: made, with before and after; waiting for a person; refused; failed; or not known.

Arguments are the person's own words and shown as they are sent. Nothing that was not written is told as written.
"""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.failures import LONGEST_ARGUMENT, say_waiting, why_refused
from sentinel_rag.agent.offline.renderer import Composed
from sentinel_rag.agent.row_text import plain, quoted
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, Failed

LONGEST_SHOWN = 1_000
_NOTHING_WRITTEN = frozenset(
    {
        QueryErrorCode.INVALID_ARGUMENT,
        QueryErrorCode.QUERY_REJECTED,
        QueryErrorCode.THROTTLED,
        QueryErrorCode.ACCESS_DENIED,
        QueryErrorCode.WORKSPACE_NOT_FOUND,
        QueryErrorCode.CONFLICT,
    }
)
"""Failures after which it is certain that nothing was written; after the others somebody has to look."""


def may_have_been_made(failed: Failed) -> bool:
    """True for a failure after which somebody has to look whether the change was made."""
    return failed.error.code not in _NOTHING_WRITTEN


def compose(writer: AnswerWriter, run: ToolRun, *, title: str = "", status: str = "", earlier: str = "") -> Composed:
    """One call of a writing tool. `title` and `status` are the incident's as this conversation has shown it, if it has;
    `earlier` the approval that was asked for when the same call was made before."""
    match run.outcome:
        case Denied() as denied:
            return _say_denied(writer, run, denied, _seen(run, title, status), earlier)
        case Failed() as failed:
            return _say_failed(writer, run, failed)
    if run.call.tool_name == "add_incident_comment":
        _say_comment(writer, run)
    else:
        _say_changes(writer, run)
    return Composed()


def _say_changes(writer: AnswerWriter, run: ToolRun) -> None:
    made = run.at("/rows/0/changes")
    count = len(made) if isinstance(made, list | tuple) else 0
    first = 0
    if count:
        first = 1  # the tool's first note tells the changes, which the table tells with their evidence
        writer.say(
            "Done. Incident {} ({}) was changed.",
            writer.number(run, "/rows/0/number"),
            writer.name(run, "/rows/0/title"),
        )
        writer.table(
            "What was changed",
            ("Field", "Before", "After"),
            [
                [
                    writer.cell(run, f"/rows/0/changes/{place}/{key}", limit=LONGEST_SHOWN)
                    for key in ("field", "before", "after")
                ]
                for place in range(count)
            ],
        )
    else:
        writer.say("Incident {} ({}):", writer.number(run, "/rows/0/number"), writer.name(run, "/rows/0/title"))
    for place in range(first, len(run.result.notes) if run.result is not None else 0):
        writer.note(run, place)


def _say_comment(writer: AnswerWriter, run: ToolRun) -> None:
    writer.say(
        "Done. The comment was added to incident {} ({}) at {} by {}: {}",
        writer.number(run, "/rows/0/number"),
        writer.name(run, "/rows/0/title"),
        writer.time(run, "/rows/0/time"),
        writer.name(run, "/rows/0/author"),
        writer.words(run, "/rows/0/message", limit=LONGEST_SHOWN),
    )
    if run.at("/rows/0/comment_count") is not None:
        writer.say("Comments of the incident now: {}.", writer.number(run, "/rows/0/comment_count"))
    for place in range(1, len(run.result.notes) if run.result is not None else 0):
        writer.note(run, place)


def _say_denied(writer: AnswerWriter, run: ToolRun, denied: Denied, seen: str, earlier: str) -> Composed:
    approval_id = denied.approval_id
    if approval_id is not None:
        then = (
            "When it is approved, say: do it now. (From another shell: "
            f'`sentinel ask --session {plain(run.call.session_id)} "do it now"`.)'
        )
        say_waiting(writer, run, approval_id, then)
        if earlier and earlier != approval_id:
            writer.fixed(
                f"Approval {plain(earlier)} does not cover it any more: it has ended, or something was read or said "
                "since that the call is judged by. Approve the new one before anything else is asked here."
            )
        writer.fixed(seen)
        _say_call(writer, run, LONGEST_ARGUMENT)
        return Composed(outcome=Outcome.DENIED)
    why, step = why_refused(denied)
    writer.fixed(f"Nothing was changed: {why}.")
    if denied.note:
        writer.fixed(plain(denied.note))
    _say_call(writer, run)
    if denied.reason is Reason.SINK_LABEL:
        writer.fixed("What was read in this session may not go into the incident: ask for the change in a new session.")
    elif denied.reason in (Reason.NO_RULE_MATCHED, Reason.RULE_DENIES, Reason.APPROVAL_REQUIRED):
        writer.fixed("Ask whoever keeps the policy, or make the change in the portal.")
    else:
        writer.fixed(step)
    return Composed(outcome=Outcome.DENIED)


def _seen(run: ToolRun, title: str, status: str) -> str:
    """What this conversation knows of the incident: whoever decides can tell a wrong number by it. It is no fact of
    this turn, so it says when it was one."""
    if not title:
        incident = plain(str(run.call.arguments.get("incident")))
        return f"This conversation has not shown incident {incident}, so make sure that it is the one you mean."
    wanted = run.call.arguments.get("status")
    text = f"This conversation showed the incident as {quoted(title)}{f', status {plain(status)}' if status else ''}."
    if wanted == "Active" and status in ("New", "Active"):
        return f"{text} It was not closed then, so there may be nothing to reopen."
    return f"{text} It was so already." if wanted and wanted == status == "Closed" else text


def _say_failed(writer: AnswerWriter, run: ToolRun, failed: Failed) -> Composed:
    error = failed.error
    message = plain(error.message, limit=600).rstrip(".")
    if not may_have_been_made(failed):
        writer.fixed(f"Nothing was changed: {message}.")
    else:
        writer.fixed(f"Whether it was changed is not known: {message}. It was not tried again. Look before you do:")
        writer.say("ask what incident {} is about.", Echo(str(run.call.arguments["incident"])))
    _say_call(writer, run)
    if error.allowed:
        writer.fixed(f"Allowed: {', '.join(plain(value) for value in error.allowed[:20])}.")
    if error.next_step:
        writer.fixed(plain(error.next_step))
    return Composed(outcome=Outcome.TOOL_FAILED)


def _say_call(writer: AnswerWriter, run: ToolRun, told: int = 0) -> None:
    """The tool and every argument, each on a line of its own; nothing where none is longer than what is `told`."""
    arguments = {name: str(value) for name, value in run.call.arguments.items()}
    if all(len(text) <= told for text in arguments.values()):
        return
    writer.fixed(f"The call: {run.call.tool_name}")
    for name, text in arguments.items():
        writer.say("- " + name + ": {}", Echo(text[:LONGEST_SHOWN]))
        if len(text) > LONGEST_SHOWN:
            writer.fixed(f"  (its beginning; {len(text)} characters in all)")
