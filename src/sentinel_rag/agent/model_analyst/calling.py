"""The calls of one response of a model: which run, together, and the answer that each of them gets.

Every call is answered, in its place, whatever became of it: providers refuse a conversation with an orphan. Nothing is
decided here about what is allowed; the gateway judges each call that is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.model_analyst.waiting_calls import chosen_among
from sentinel_rag.agent.models import ModelToolCall, ToolResultMessage
from sentinel_rag.agent.offline.workspace_words import placed, remember_places
from sentinel_rag.agent.tool_runs import ToolRun, run_calls
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.tool_calls import ToolCall

_TOO_MANY = "Not run: this is more calls than one question may make. Answer with what you have."
_TOO_MANY_AT_ONCE = "Not run: too many calls in one response. Make the ones that matter again."
_UNSURE = "Not run: your answer ended without saying so, so it may be cut. Make the call again if it is meant."
_NOT_THAT_ONE = (
    "Not run: the person asked for the call that waits for their approval, and for no other change. Make exactly that "
    "call, as it stands in <waiting_call>, or say that another one was not made."
)
_REPEATED = "Not run again: the same call was sent already for this question. Its result stands above."


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One call of the model: with `call` it is sent, else `refusal` answers it."""

    asked: ModelToolCall
    call: ToolCall | None = None
    refusal: str = ""


async def answer_calls(
    gateway: ToolGateway,
    turn: Turn,
    calls: Sequence[ModelToolCall],
    *,
    stated: bool,
    tell: Callable[[ToolRun], str],
) -> list[ToolResultMessage]:
    """Run what can run and answer every call, in the order of the calls. `stated`: the provider said that the answer
    is whole; without its word no call that may change something is made. `tell` writes a result for the model.

    Calls that only read run together; the others run after them, one at a time.
    """
    chosen = [_choose(turn, asked, place, stated=stated) for place, asked in enumerate(calls)]
    sent = [each.call for each in chosen if each.call is not None]
    if not sent:
        turn.faulty_rounds += 1
    reading = [call for call in sent if call.tool_name in turn.reading]
    runs = await _run(gateway, turn, reading) if reading else []
    done = {run.call.call_id: run for run in runs}
    for call in sent:
        if call.tool_name in turn.reading:
            continue
        if not _was_sent(turn, call):
            turn.begin_acting()
            done |= {run.call.call_id: run for run in await _run(gateway, turn, [call])}
    answers = []
    for each in chosen:
        run = None if each.call is None else done.get(each.call.call_id)
        text = tell(run) if run is not None else each.refusal or _REPEATED
        answers.append(ToolResultMessage(each.asked.call_id, text))
    return answers


def unanswered(calls: Sequence[ModelToolCall]) -> list[ToolResultMessage]:
    """The answers to calls that a model makes although it was told that none can be made."""
    return [ToolResultMessage(call.call_id, call.explanation or _TOO_MANY) for call in calls]


def _choose(turn: Turn, asked: ModelToolCall, place: int, *, stated: bool) -> _Chosen:
    if asked.problem is not None or asked.arguments is None:
        return _Chosen(asked, refusal=asked.explanation)
    if place >= turn.limits.calls_a_round:
        return _Chosen(asked, refusal=_TOO_MANY_AT_ONCE)
    if turn.calls >= turn.limits.calls:
        return _Chosen(asked, refusal=_TOO_MANY)
    if not stated and asked.name not in turn.reading:
        return _Chosen(asked, refusal=_UNSURE)
    places = turn.memory.places
    if turn.only and asked.name not in turn.reading:
        waiting = chosen_among(turn.only, asked.name, asked.arguments)
        if waiting is None:
            turn.held_back.append(asked.name)
            return _Chosen(asked, refusal=_NOT_THAT_ONE)
        turn.calls += 1
        # An approval is for these arguments and for no others, whatever the workspace is by now.
        return _Chosen(
            asked, ToolCall(places.next_call_id(), turn.session_id, waiting.tool_name, dict(waiting.arguments))
        )
    turn.calls += 1
    arguments = placed(asked.name, _with_zone(turn, asked), places)
    return _Chosen(asked, ToolCall(places.next_call_id(), turn.session_id, asked.name, arguments))


def _with_zone(turn: Turn, asked: ModelToolCall) -> dict[str, JsonValue]:
    """The model's arguments, with the session's time zone where the tool takes one and none was given."""
    arguments = dict(asked.arguments or {})
    schema = next((tool for tool in turn.tools if tool.name == asked.name), None)
    zone = turn.memory.zone_name
    if schema is not None and zone != "UTC" and "timezone" in schema.parameter_schemas():
        arguments.setdefault("timezone", zone)
    return arguments


async def _run(gateway: ToolGateway, turn: Turn, calls: Sequence[ToolCall]) -> list[ToolRun]:
    runs = await run_calls(gateway, calls, progress=turn.progress, started=turn.started)
    turn.runs += runs
    remember_places(turn.memory.places, runs)
    for run in runs:
        turn.memory.evidence.add(run)
        turn.memory.waiting.note(run)
    return runs


def _was_sent(turn: Turn, call: ToolCall) -> bool:
    """True if the same change was sent before in this question, whatever became of it."""
    same = _key(call)
    return any(_key(run.call) == same for run in turn.runs)


def _key(call: ToolCall) -> str:
    return call.tool_name + json.dumps(dict(call.arguments), sort_keys=True, default=str)
