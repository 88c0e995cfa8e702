"""The calls of one response of a model: which run, together, and the answer that each of them gets.

Every call is answered, in its place, whatever became of it: providers refuse a conversation with an orphan. Nothing is
decided here about what is allowed; the gateway judges each call that is sent. `compute` and `read_rows` work on results
that the conversation holds already: they run here and need no right.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.answers.compute import COMPUTE, ComputeError, compute
from sentinel_rag.agent.answers.results import Result, numbered
from sentinel_rag.agent.answers.view import READ_ROWS, read_rows, view
from sentinel_rag.agent.model_analyst.arguments import fitted
from sentinel_rag.agent.model_analyst.offered import OWN_TOOLS
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models.port import ModelToolCall, ToolResultMessage
from sentinel_rag.agent.offline.change_repeats import means_again
from sentinel_rag.agent.offline.compositions.changes import call_text
from sentinel_rag.agent.offline.turn import MISSHAPEN
from sentinel_rag.agent.offline.workspace_words import placed, remember_places
from sentinel_rag.agent.tool_runs import ToolRun, changed_something, run_calls
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Failed, Succeeded, ToolCall, ToolOutcome

_TOO_MANY = "Not run: this is more calls than one question may make. Answer with what you have."
_TOO_MANY_AT_ONCE = "Not run: too many calls in one response. Make the ones that matter again."
_UNSURE = "Not run: your answer ended without saying so, so it may be cut. Make the call again if it is meant."
_NOT_WAITING = (
    "Not sent: the person said to make the change that waits for an approval, which is {}. Make that very call, or "
    "say that it cannot be made."
)
_REPEATED = "Not run again: the same call was sent already for this question. Its result stands above."
_UNREADABLE = QueryError(
    code=QueryErrorCode.INTERNAL,
    message="Its result does not have the agreed shape, so nothing of it can be read.",
    next_step="The agent and a tool server do not match: install one version of both. The agent's log has the details.",
)
_log = logging.getLogger(__name__)
_OWN_NAMES = frozenset(tool.name for tool in OWN_TOOLS)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One call of the model: with `call` it is sent, else `refusal` answers it."""

    asked: ModelToolCall
    call: ToolCall | None = None
    refusal: str = ""


async def answer_calls(
    gateway: ToolGateway, turn: Turn, calls: Sequence[ModelToolCall], *, stated: bool
) -> list[ToolResultMessage]:
    """Run what can run and answer every call, in the order of the calls. `stated`: the provider said that the answer
    is whole; without its word no call that may change something is made.

    Calls that only read run together; the others run after them, one at a time, and the agent's own last, since they
    may work on what the others brought.
    """
    chosen = [_choose(turn, asked, place, stated=stated) for place, asked in enumerate(calls)]
    sent = [each.call for each in chosen if each.call is not None]
    if not sent:
        turn.faulty_rounds += 1
    reading = [call for call in sent if call.tool_name in turn.reading - _OWN_NAMES]
    runs = await _run(gateway, turn, reading) if reading else []
    done = {run.call.call_id: result_text(turn, run) for run in runs}
    for call in sent:
        if call.tool_name in turn.reading:
            continue
        if not _was_sent(turn, call):
            turn.begin_acting()
            done |= {run.call.call_id: result_text(turn, run) for run in await _run(gateway, turn, [call])}
    for call in sent:
        if call.tool_name in _OWN_NAMES:
            done[call.call_id] = _own(turn, call)
    answers = []
    for each in chosen:
        text = None if each.call is None else done.get(each.call.call_id)
        answers.append(ToolResultMessage(each.asked.call_id, text or each.refusal or _REPEATED))
    return answers


def unanswered(calls: Sequence[ModelToolCall], why: str = _TOO_MANY) -> list[ToolResultMessage]:
    """The answers to calls that a model makes although none can be made now."""
    return [ToolResultMessage(call.call_id, call.explanation or why) for call in calls]


def only_own(calls: Sequence[ModelToolCall]) -> bool:
    """True if every call is one of the agent's own tools."""
    return all(call.name in _OWN_NAMES for call in calls)


def result_text(turn: Turn, run: ToolRun) -> str:
    """What came back of a call, as the text that a model reads, in its share of the context."""
    match run.outcome:
        case Denied():
            return refusal_text(run.outcome)
        case Failed(error=error):
            return f'<tool_result call="{run.call.call_id}">\nfailed: {failure_text(error)}\n</tool_result>'
        case Succeeded():
            result = turn.memory.results.get(run.call.call_id)
            return "" if result is None else _view(turn, result)


def refusal_text(denied: Denied) -> str:
    """What a model is told of a refusal: that it is final for now, and what the person can do."""
    ref = denied.call.call_id
    rule = "no rule allows this call" if denied.rule_id is None else f"rule {denied.rule_id}"
    if denied.approval_id is None:
        return (
            f"[{ref}] Not run: the policy does not allow this call ({rule}, {denied.reason.value}). It will not be "
            "run. Do not try it in another way; tell the person in your own words."
        )
    return (
        f"[{ref}] Not run yet: this call waits for a person's approval ({rule}, approval {denied.approval_id}). They "
        "decide outside this conversation. Do not repeat it now; tell the person what waits for approval."
    )


def failure_text(error: QueryError) -> str:
    """An error as JSON without its empty fields: the field, what is allowed, each problem with its place."""
    told = {name: value for name, value in error.to_dict().items() if value not in (None, "", [], "error")}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _view(turn: Turn, result: Result) -> str:
    history = turn.memory.history
    return view(result, limit=history.budget.tool_result, counter=history.counter).text


def _own(turn: Turn, call: ToolCall) -> str:
    """Run one of the agent's own tools. A computed result is one like any other: it is cited, and the footnote has
    it."""
    memory = turn.memory
    if call.tool_name == READ_ROWS.name:
        budget = memory.history.budget
        return read_rows(
            call.arguments, memory.results, limit=budget.tool_result, counter=memory.history.counter, now=turn.now
        )
    outcome: ToolOutcome
    try:
        result = compute(call.call_id, call.arguments, memory.results, now=turn.now)
    except ComputeError as error:
        outcome = Failed(call, error.as_query_error(), "")
        turn.add_run(ToolRun(call, outcome))
        return result_text(turn, turn.runs[-1])
    rows = [
        {name: list(cell) if isinstance(cell, tuple) else cell for name, cell in row.cells.items()}
        for row in result.rows
    ]
    turn.add_run(ToolRun(call, Succeeded(call, DocumentResult({"rows": rows}), "")), result)
    return _view(turn, result)


def _choose(turn: Turn, asked: ModelToolCall, place: int, *, stated: bool) -> _Chosen:
    if asked.problem is not None or asked.arguments is None:
        turn.faulty_calls.append(asked)
        return _Chosen(asked, refusal=asked.explanation)
    if place >= turn.limits.calls_a_round:
        return _Chosen(asked, refusal=_TOO_MANY_AT_ONCE)
    if turn.calls >= turn.limits.calls:
        return _Chosen(asked, refusal=_TOO_MANY)
    if not stated and asked.name not in turn.reading:
        return _Chosen(asked, refusal=_UNSURE)
    turn.calls += 1
    places = turn.memory.places
    arguments = _arguments(turn, asked)
    if asked.name in _OWN_NAMES:
        ref = places.next_call_id() if asked.name == COMPUTE.name else ""
        return _Chosen(asked, ToolCall(ref or f"own_{turn.calls}", turn.session_id, asked.name, arguments))
    call = ToolCall(places.next_call_id(), turn.session_id, asked.name, placed(asked.name, arguments, places))
    if (
        asked.name not in turn.reading
        and turn.memory.awaited
        and means_again(turn.question, just_now=turn.memory.asked_before)
    ):
        return _as_it_waits(turn, asked, call)
    return _Chosen(asked, call)


def _as_it_waits(turn: Turn, asked: ModelToolCall, call: ToolCall) -> _Chosen:
    """The call with the very arguments that wait for an approval; refused if it is another one. "Do it now" names no
    incident, so it must not become a change that nobody spoke of."""
    waiting = turn.memory.last_awaited
    for each in waiting:
        if _key(each) == _key(call):
            return _Chosen(asked, replace(call, arguments=dict(each.arguments)))
    named = " or ".join(call_text(each.tool_name, each.arguments) for each in waiting)
    return _Chosen(asked, refusal=_NOT_WAITING.format(named))


def _arguments(turn: Turn, asked: ModelToolCall) -> dict[str, JsonValue]:
    """The model's arguments as the tool types them, with the session's time zone where the tool takes one, and every
    part of an incident: the agent pages by itself."""
    arguments = dict(asked.arguments or {})
    schema = next((tool for tool in turn.tools if tool.name == asked.name), None)
    if schema is None:
        return arguments
    properties = schema.parameter_schemas()
    arguments = dict(fitted(arguments, schema, turn.memory.results))
    if "timezone" in properties and turn.memory.zone_name != "UTC":
        arguments.setdefault("timezone", turn.memory.zone_name)
    if asked.name == "get_incident_detail" and "detail" in properties:
        arguments["detail"] = "full"
    return arguments


async def _run(gateway: ToolGateway, turn: Turn, calls: Sequence[ToolCall]) -> list[ToolRun]:
    runs = await run_calls(gateway, calls, progress=turn.progress, started=turn.started)
    remember_places(turn.memory.places, runs)
    return [_kept(turn, run) for run in runs]


def _kept(turn: Turn, run: ToolRun) -> ToolRun:
    """The run, kept with its numbered rows; a failed one where the result does not have the agreed shape."""
    changed = changed_something(run, turn.reading)
    try:
        result = numbered(run, writes=changed, read_at=turn.clock())
    except MISSHAPEN:
        _log.exception("a result of %s could not be read", run.call.tool_name)
        return _kept(turn, replace(run, outcome=Failed(run.call, _UNREADABLE, run.trace().audit_id)))
    turn.add_run(run, result)
    turn.memory.note_approval(run)
    return run


def _was_sent(turn: Turn, call: ToolCall) -> bool:
    """True if the same change was sent before in this question, whatever became of it: a refusal stays one until a
    person acts, and a change that failed may have been made."""
    same = _key(call)
    return any(_key(run.call) == same for run in turn.runs)


def _key(call: ToolCall) -> str:
    """The call without what tells no change from another: the order of its arguments, 1 for "1", those that say
    nothing."""
    said = {name: value for name, value in call.arguments.items() if value is not None}
    return call.tool_name + json.dumps(_as_text(said), sort_keys=True)


def _as_text(value: JsonValue | dict[str, JsonValue]) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _as_text(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_text(each) for each in value]
    return str(value).strip()
