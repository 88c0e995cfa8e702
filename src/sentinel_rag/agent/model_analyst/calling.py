"""The calls of one response of a model: which run, together, and the answer that each of them gets.

Every call is answered, in its place, whatever became of it: providers refuse a conversation with an orphan. Nothing is
decided here about what is allowed; the gateway judges each call that is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.model_analyst.made_changes import changed_something
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models import ModelToolCall, ToolResultMessage
from sentinel_rag.agent.offline.change_repeats import means_again
from sentinel_rag.agent.offline.compositions.changes import call_text
from sentinel_rag.agent.offline.workspace_words import placed, remember_places
from sentinel_rag.agent.tool_runs import ToolRun, run_calls
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.tool_calls import ToolCall

_TOO_MANY = "Not run: this is more calls than one question may make. Answer with what you have."
_TOO_MANY_AT_ONCE = "Not run: too many calls in one response. Make the ones that matter again."
_UNSURE = "Not run: your answer ended without saying so, so it may be cut. Make the call again if it is meant."
_NOT_WAITING = (
    "Not sent: the person said to make the change that waits for an approval, which is {}. Make that very call, or "
    "say that it cannot be made."
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
    turn.calls += 1
    places = turn.memory.places
    arguments = placed(asked.name, _with_zone(turn, asked), places)
    call = ToolCall(places.next_call_id(), turn.session_id, asked.name, arguments)
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
        turn.memory.note_approval(run)
        if changed_something(run, turn.reading):
            turn.memory.note_change(run.call)
    return runs


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
