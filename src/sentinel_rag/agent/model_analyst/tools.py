"""The tools of a model: what it is offered, its arguments as a tool types them, and the answer to each of its calls.

Every call is answered, in its place, whatever became of it: providers refuse a conversation with an orphan. Nothing is
decided here about what is allowed; the gateway judges each call that is sent. `compute` and `read_rows` work on results
that the conversation holds already: they run here and need no right.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel_rag.agent.answers.compute import COMPUTE, computed_run
from sentinel_rag.agent.answers.failures import call_text
from sentinel_rag.agent.answers.results import Result, Results, numbered
from sentinel_rag.agent.answers.view import READ_ROWS, read_rows, view
from sentinel_rag.agent.model_analyst.turn import ModelTurn
from sentinel_rag.agent.models.port import SMALL_CONTEXT_TOKENS, ModelToolCall, ToolResultMessage
from sentinel_rag.agent.offline.turn import MISSHAPEN
from sentinel_rag.agent.offline.workspaces import placed, remember_places
from sentinel_rag.agent.prompts import Prompt, prompt
from sentinel_rag.agent.tool_runs import ToolRun, changed_something, run_calls
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import (
    Denied,
    Failed,
    OfferedTool,
    Succeeded,
    ToolCall,
    ToolSchema,
)
from sentinel_rag.language.frames.orders import means_again

Catalogue = Callable[[str], Awaitable[Sequence[OfferedTool]]]
"""The tools that are offered to a session, by its id."""
OWN_TOOLS = (COMPUTE, READ_ROWS)
"""Tools of the agent itself."""
MOST_TOOLS = 100
"""A request with more is refused by some providers (128), and no model chooses well among so many."""
_OWN_NAMES = frozenset(tool.name for tool in OWN_TOOLS)
_ROW = re.compile(r"\[?(c\d{1,6}\.\d{1,6})\]?")
_COLUMNS = {"alert_id": ("alert_id",), "incident": ("number", "incident_number"), "entity": ("name",)}
"""Columns of a row that may stand for an argument of this name."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": Mapping,
}
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


def fixed_part(context_tokens: int) -> tuple[Prompt, tuple[ToolSchema, ...]]:
    """The rules, and the agent's own tools, that a model of that context is told of."""
    if context_tokens < SMALL_CONTEXT_TOKENS:
        return prompt("rules_small"), (READ_ROWS,)
    return prompt("rules"), OWN_TOOLS


async def offered_now(catalogue: Catalogue, session_id: str) -> tuple[OfferedTool, ...]:
    """What the catalogue offers, in its order, so that providers can keep the beginning of a request cached.

    Raises UnavailableError if there is no tool: a model without any could only make things up.
    """
    tools = {tool.schema.name: tool for tool in list(await catalogue(session_id))[:MOST_TOOLS]}
    if not tools:
        raise UnavailableError(
            "The gateway offers no tool, or cannot be reached, so no question can be answered.",
            next_step="Run `sentinel status`; if it runs, check which tools the policy allows.",
        )
    return tuple(tools.values())


def fitted(arguments: Mapping[str, JsonValue], schema: ToolSchema, results: Results) -> JsonObject:
    """The arguments as `schema` types them, where what is meant is certain: models write "5" for 5, 124 for "124", null
    for what they leave out, and a row's id where a tool wants its value. Whatever else is wrong stays as it is, so that
    the tool names it."""
    properties = schema.parameter_schemas()
    required = schema.required()
    return {
        name: _of_row(name, _typed(value, properties.get(name, {})), results)
        for name, value in arguments.items()
        if name in required or value not in (None, "", [], {})
    }


def _of_row(name: str, value: JsonValue, results: Results) -> JsonValue:
    """The value of the row that `value` names, for an argument that asks for one."""
    found = _ROW.fullmatch(value.strip()) if isinstance(value, str) and name in _COLUMNS else None
    row = results.row(found[1]) if found else None
    cell = None if row is None else next((row.cells[each] for each in _COLUMNS[name] if each in row.cells), None)
    return value if cell is None or isinstance(cell, tuple) else str(cell)


def _typed(value: JsonValue, schema: Mapping[str, Any]) -> JsonValue:
    declared = schema.get("type")
    types = declared if isinstance(declared, list | tuple) else [declared]
    if not any(_is(value, wanted) for wanted in types):
        converted = (_converted(value, wanted) for wanted in types)
        value = next((each for each in converted if each is not None), value)
    allowed = schema.get("enum")
    if isinstance(value, str) and isinstance(allowed, list | tuple) and value not in allowed:  # high for High
        return next((each for each in allowed if str(each).casefold() == value.strip().casefold()), value)
    return value


def _is(value: JsonValue, wanted: Any) -> bool:
    if isinstance(value, bool) or wanted is None:
        return wanted in ("boolean", None)
    return isinstance(value, _TYPES.get(str(wanted), ()))


def _converted(value: JsonValue, wanted: Any) -> JsonValue:
    """`value` in the type that is wanted; None where that is not certain."""
    match wanted, value:
        case _, bool():
            return None
        case "string", int() | float():
            return str(_whole(value))
        case "integer" | "number", int() | float():
            number = _whole(value)
            return number if _is(number, wanted) else None
        case "integer" | "number", str():
            number = _whole(_json(value.strip()))
            return number if _is(number, wanted) else None
        case "boolean", str():
            return {"true": True, "false": False}.get(value.strip().casefold())
        case "array" | "object", str():
            read = _json(value)
            if _is(read, wanted):
                return read  # type: ignore[no-any-return]
            return [value] if wanted == "array" else None
        case "array", int() | float():
            return [value]
        case _:
            return None


def _whole(value: Any) -> Any:
    """5 for 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One call of the model: with `call` it is sent, else `refusal` answers it."""

    asked: ModelToolCall
    call: ToolCall | None = None
    refusal: str = ""


async def answer_calls(
    gateway: ToolGateway, turn: ModelTurn, calls: Sequence[ModelToolCall], *, stated: bool
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
    done = await _run(gateway, turn, [call for call in sent if call.tool_name in turn.reading - _OWN_NAMES])
    for call in sent:
        if call.tool_name not in turn.reading and not _was_sent(turn, call):
            turn.begin_acting()
            done |= await _run(gateway, turn, [call])
    done |= {call.call_id: _own(turn, call) for call in sent if call.tool_name in _OWN_NAMES}
    texts = ["" if each.call is None else done.get(each.call.call_id, "") for each in chosen]
    return [
        ToolResultMessage(each.asked.call_id, text or each.refusal or _REPEATED)
        for each, text in zip(chosen, texts, strict=True)
    ]


def unanswered(calls: Sequence[ModelToolCall], why: str = _TOO_MANY) -> list[ToolResultMessage]:
    """The answers to calls that a model makes although none can be made now."""
    return [ToolResultMessage(call.call_id, call.explanation or why) for call in calls]


def is_own(call: ModelToolCall) -> bool:
    """True for a call of one of the agent's own tools."""
    return call.name in _OWN_NAMES


def _result_text(turn: ModelTurn, run: ToolRun) -> str:
    """What came back of a call, as the text that a model reads, in its share of the context."""
    ref = run.call.call_id
    match run.outcome:
        case Denied(rule_id=rule_id, approval_id=approval_id, reason=reason, decided_by=decided_by, note=note):
            rule = "no rule allows this call" if rule_id is None else f"rule {rule_id}"
            if approval_id is None:
                return (
                    f"[{ref}] Not run: the policy does not allow this call ({rule}, {reason.value}). It will not be "
                    "run. Do not try it in another way; tell the person in your own words."
                )
            whom = "the person's own yes, who is shown what it changes" if decided_by else "a person's approval"
            why = f"{note} What reads fewer rows may still run: narrow it by name and time. " if note else ""
            return (
                f"[{ref}] Not run yet: this call waits for {whom} ({rule}, approval {approval_id}). {why}They "
                "decide outside this conversation. Do not repeat it now; tell the person what waits for approval."
            )
        case Failed(error=error):
            # "retry_possible: false" is of the same call; a model read it as that it may not correct one.
            told = ((name, each) for name, each in error.to_dict().items() if each not in (None, "", [], "error"))
            said = {name: each for name, each in told if each is not False}
            text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
            return f'<tool_result call="{ref}">\nfailed: {text}\n</tool_result>'
        case Succeeded():
            result = turn.memory.results.get(ref)
            return "" if result is None else _view(turn, result)


def _view(turn: ModelTurn, result: Result) -> str:
    history = turn.memory.history
    return view(result, limit=history.budget.tool_result, counter=history.counter).text


def _own(turn: ModelTurn, call: ToolCall) -> str:
    """Run one of the agent's own tools. A computed result is one like any other: it is cited, and the footnote has
    it."""
    memory, history = turn.memory, turn.memory.history
    if call.tool_name == READ_ROWS.name:
        limit = history.budget.tool_result
        return read_rows(call.arguments, memory.results, limit=limit, counter=history.counter, now=turn.now)
    run, result = computed_run(call, memory.results, now=turn.now)
    if result is None:
        turn.add_run(run)
        return _result_text(turn, run)
    turn.add_run(run, result)
    return _view(turn, result)


def _choose(turn: ModelTurn, asked: ModelToolCall, place: int, *, stated: bool) -> _Chosen:
    if asked.problem is not None or asked.arguments is None:
        turn.faulty_calls.append(asked)
        return _Chosen(asked, refusal=asked.explanation)
    if place >= turn.limits.calls_a_round:
        return _Chosen(asked, refusal=_TOO_MANY_AT_ONCE)
    own = asked.name in _OWN_NAMES
    if turn.calls >= turn.limits.calls and not own:
        return _Chosen(asked, refusal=_TOO_MANY)
    changes = asked.name not in turn.reading
    if changes and not stated:
        return _Chosen(asked, refusal=_UNSURE)
    turn.calls += not own
    memory, places = turn.memory, turn.memory.places
    arguments = _arguments(turn, asked)
    if own:
        ref = places.next_call_id() if asked.name == COMPUTE.name else f"own_{asked.call_id}"
        return _Chosen(asked, ToolCall(ref, turn.question.session_id, asked.name, arguments))
    call = ToolCall(places.next_call_id(), turn.question.session_id, asked.name, placed(asked.name, arguments, places))
    if changes and memory.awaited and means_again(turn.question.text, just_now=memory.asked_before):
        return _as_it_waits(turn, asked, call)
    return _Chosen(asked, call)


def _as_it_waits(turn: ModelTurn, asked: ModelToolCall, call: ToolCall) -> _Chosen:
    """The call with the very arguments that wait for an approval; refused if it is another one. "Do it now" names no
    incident, so it must not become a change that nobody spoke of."""
    waiting = turn.memory.last_awaited
    for each in waiting:
        if _key(each) == _key(call):
            return _Chosen(asked, replace(call, arguments=dict(each.arguments)))
    named = " or ".join(call_text(each.tool_name, each.arguments) for each in waiting)
    return _Chosen(asked, refusal=_NOT_WAITING.format(named))


def _arguments(turn: ModelTurn, asked: ModelToolCall) -> dict[str, JsonValue]:
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


async def _run(gateway: ToolGateway, turn: ModelTurn, calls: Sequence[ToolCall]) -> dict[str, str]:
    """What a model is told of each call, by its id."""
    if not calls:
        return {}
    runs = await run_calls(gateway, calls, progress=turn.question.progress, started=turn.started)
    remember_places(turn.memory.places, runs)
    return {run.call.call_id: _result_text(turn, _kept(turn, run)) for run in runs}


def _kept(turn: ModelTurn, run: ToolRun) -> ToolRun:
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


def _was_sent(turn: ModelTurn, call: ToolCall) -> bool:
    """True if the same change was sent before in this question, whatever became of it: a refusal stays one until a
    person acts, and a change that failed may have been made."""
    return any(_key(run.call) == _key(call) for run in turn.runs)


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
