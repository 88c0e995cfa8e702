"""The analyst without a model, helped by a small one: only where it asks back, a model chooses one reading call.

Rules plan most questions right and at once; a small model plans fewer, in seconds, and invents filters. So the model is
asked once, for JSON of a schema that holds the tools' own arguments, and code keeps of its choice what the question's
words support. Whatever the model does, the question back is what remains. `SENTINEL_MODEL_ROLE=assist` chooses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import (
    ChatModel,
    ModelRequest,
    ModelUsage,
    SystemMessage,
    UserMessage,
    complete,
    small_profile,
)
from sentinel_rag.agent.models.retrying import RetryingModel
from sentinel_rag.agent.offline import ANSWERED_CALLS, OfflineAnalyst
from sentinel_rag.agent.planner.decisions import PlannedCall
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.row_text import data_line, plain
from sentinel_rag.agent.scope import names_it, unsupported
from sentinel_rag.agent.tool_runs import READING_TOOLS
from sentinel_rag.contracts.conversations import CarriedFact, Remembered
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.ports import Question, ToolGateway
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolCall, ToolSchema

_ASK_BACK = "ask_back"
_ANSWER_TOKENS = 200
_LONGEST_QUESTION = 600
"""Characters; a longer one tells a story, of which a small model picks any word."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What a model chose; `call` is None where it asks back, fails or writes what fits no tool. `why` says it."""

    call: PlannedCall | None
    why: str
    usage: ModelUsage


class AssistedAnalyst:
    """`Analyst` around an `OfflineAnalyst`. `model` chooses within `limit_s` seconds; `host` is the machine it is on,
    empty for this one. It is sent the question and the tools, and no row."""

    def __init__(
        self, offline: OfflineAnalyst, gateway: ToolGateway, model: ChatModel, *, limit_s: float, host: str = ""
    ) -> None:
        self._offline = offline
        self._gateway = gateway
        self._model = model
        self._limit_s = limit_s
        self._host = host

    async def answer(self, question: Question) -> Answer:
        """The offline answer, or, where that asks back, the answer from the call that the model chose."""
        answer = await self._offline.answer(question)
        if answer.outcome is not Outcome.CLARIFICATION or not self._offline.could_mean(question.text, answer):
            return answer
        choice = await self._choose(question.text)
        if choice.call is not None:
            answer = await self._offline.answer_call(question, choice.call)
            chosen = f"Read as {_shown(choice.call)}: the model {plain(self._model.name)} chose this call."
            answer = _opened(answer, chosen)
        record = {**choice.usage.to_dict(), "sent_to": self._host or "this machine", "role": "assist"}
        where = f" at {plain(self._host)}" if self._host else ""
        line = f"model {plain(self._model.name)}{where} {choice.why} · {prompt('assist').label}"
        return replace(answer, footnote=(*answer.footnote, line), model=record)

    def clear(self, session_id: str, carried: Sequence[CarriedFact]) -> None:
        """As the offline analyst."""
        self._offline.clear(session_id, carried)

    def forget(self, session_id: str) -> None:
        """Drop the conversation."""
        self._offline.forget(session_id)

    def remembered(self, session_id: str) -> Remembered | None:
        """As the offline analyst: the model remembers nothing."""
        return self._offline.remembered(session_id)

    def recall(self, session_id: str, remembered: Remembered) -> None:
        """As the offline analyst."""
        self._offline.recall(session_id, remembered)

    async def _choose(self, question: str) -> _Choice:
        offered = await self._gateway.offered_tools()
        tools = choosable(offered)
        rules = SystemMessage("\n".join([prompt("assist").text, *map(_line, tools)]))
        request = ModelRequest(
            [rules, UserMessage(question[:_LONGEST_QUESTION])],
            max_output_tokens=_ANSWER_TOKENS,
            response_schema=choice_schema(tools),
        )
        try:
            deadline = anyio.current_time() + self._limit_s
            finished = await complete(RetryingModel(self._model), request, deadline=deadline)
        except ModelError as failure:
            return _Choice(None, f"could not help: {failure}", failure.usage)
        call = chosen_call(finished.message.text, tools, question)
        why = "found no call either" if call is None else "chose the call, since the rules asked back"
        return _Choice(call, why, finished.usage)


def choosable(offered: frozenset[str]) -> tuple[ToolSchema, ...]:
    """The tools of the small profile whose results the offline analyst can tell, as far as they are offered."""
    shipped = [OfferedTool(tool, tool.name in READING_TOOLS) for tool in SHIPPED_TOOLS if tool.name in offered]
    return tuple(tool.schema for tool in small_profile(shipped) if tool.schema.name in ANSWERED_CALLS)


def choice_schema(tools: Sequence[ToolSchema]) -> JsonObject:
    """A JSON schema of one call: of one of `tools` with its own arguments, or of none."""
    asking = ToolSchema(_ASK_BACK, "", {"type": "object", "properties": {}})
    calls: list[JsonValue] = [
        {
            "type": "object",
            "properties": {
                "tool": {"const": tool.name},
                "arguments": {**tool.parameters, "additionalProperties": False},
            },
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in (*tools, asking)
    ]
    return {"type": "object", "properties": {"call": {"anyOf": calls}}, "required": ["call"]}


def chosen_call(text: str, tools: Sequence[ToolSchema], question: str) -> PlannedCall | None:
    """The call in a model's text with what the question supports of its arguments; None for none, for what fits no
    tool, and for a thing that the question does not name."""
    try:
        call = json.loads(text)["call"]
        tool = next(tool for tool in tools if tool.name == call["tool"])
        given = dict(call["arguments"])
    except (ValueError, TypeError, KeyError, StopIteration, RecursionError):
        return None
    arguments = {name: given[name] for name, part in tool.parameter_schemas().items() if _fits(given.get(name), part)}
    if not tool.required() <= arguments.keys():
        return None
    named = [arguments[name] for name in tool.required() if "enum" not in tool.parameter_schemas()[name]]
    if not all(names_it([question], str(value)) for value in named):
        return None
    made = ToolCall("", "", tool.name, arguments)
    dropped = {each.argument for each in unsupported([question], made, known=(), cut=True)}
    return PlannedCall(tool.name, {name: value for name, value in arguments.items() if name not in dropped})


def _shown(call: PlannedCall) -> str:
    given = ", ".join(f"{name} {data_line(str(value), limit=80)}" for name, value in call.arguments.items())
    return f"{call.tool} ({given})" if given else call.tool


def _opened(answer: Answer, line: str) -> Answer:
    """The answer with a line above it; what points into its text follows."""
    by = len(line) + 1
    sentences = tuple(each.behind(by) for each in answer.sentences)
    return replace(answer, text=f"{line}\n{answer.text}", sentences=sentences)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if schema.get("type") == "integer":
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 100
    return isinstance(value, str) and 0 < len(value) <= 200


def _line(tool: ToolSchema) -> str:
    return f"- {tool.name}({', '.join(tool.parameter_schemas())}): {tool.description}"
