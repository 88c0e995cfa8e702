"""Laws of a conversation's history: whatever is begun, added, ended, abandoned, stored and recalled in whatever order,
a provider takes what comes out, the budget holds, and the newest turn keeps every message."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation_rules import conversation_faults
from sentinel_rag.agent.history import Budget, Fitted, History
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    ModelMessage,
    ModelToolCall,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.tokens import EstimatingCounter, count_message, count_tool
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME

pytestmark = [pytest.mark.requirement("CHAT-4"), pytest.mark.requirement("CHAT-5")]

RULES = SystemMessage("Answer from the rows alone.")
TOOLS = (TOOLS_BY_NAME["query_incidents"],)
BUDGET = Budget(total=4_000, response=500, tool_results=900, tool_result=300, turns=4)
COUNTER = EstimatingCounter()

_texts = st.one_of(st.text(max_size=20), st.integers(0, 6_000).map("z".__mul__))


def _call(identifier: int, size: int) -> ModelToolCall:
    arguments = {"entity": "h" * size}
    return ModelToolCall(f"call_{identifier}", "query_incidents", arguments, json.dumps(arguments))


_steps = st.one_of(
    st.tuples(st.just("begin"), _texts),
    st.tuples(st.just("end"), st.none()),
    st.tuples(st.just("recall"), st.none()),
    st.tuples(st.just("clear"), st.lists(st.text(max_size=60), max_size=3)),
    st.tuples(st.just("add"), st.builds(AssistantMessage, _texts)),
    st.tuples(
        st.just("add"),
        st.builds(
            AssistantMessage,
            _texts,
            st.lists(st.builds(_call, st.integers(0, 9), st.integers(0, 3_000)), max_size=4).map(tuple),
        ),
    ),
    st.tuples(st.just("add"), st.builds(ToolResultMessage, st.integers(0, 9).map("call_{}".format), _texts)),
    st.tuples(st.just("answer"), _texts),
)


Stored = list[JsonObject]
"""The turns of a history as a store keeps them, one by one."""


def _take(history: History, step: tuple[str, object], stored: Stored) -> History:
    history = _taken(history, step, stored)
    last = history.last_turn()
    if last is None:
        stored.clear()
    else:
        stored[history.turns - 1 :] = [last]
    return history


def _recalled(stored: Stored, history: History) -> History:
    again = History(history.budget, COUNTER)
    again.recall(json.loads(json.dumps(stored)), history.carried)
    del stored[: len(stored) - again.turns]
    return again


def _taken(history: History, step: tuple[str, object], stored: Stored) -> History:
    match step:
        case "begin", str(question):
            history.begin(question)
        case "add", (SystemMessage() | UserMessage() | AssistantMessage() | ToolResultMessage()) as message:
            before = history.last_turn(), history.fitted(RULES, ())
            try:
                history.add(message)
            except ValueError:
                assert (history.last_turn(), history.fitted(RULES, ())) == before, "a refused message changes nothing"
        case "answer", str(text):
            for call_id in _waiting(history.fitted(RULES, ()).messages):
                try:
                    history.add(ToolResultMessage(call_id, text))
                except ValueError:
                    continue
        case "end", _:
            history.end()
        case "clear", list(lines):
            history.clear(lines)
        case "recall", _:
            return _recalled(stored, history)
    return history


def _waiting(messages: Sequence[ModelMessage]) -> list[str]:
    return [message.call_id for message in messages if isinstance(message, ToolResultMessage)]


def _size(fitted: Fitted) -> int:
    return sum(count_message(message, COUNTER) for message in fitted.messages) + sum(
        count_tool(tool, COUNTER) for tool in TOOLS
    )


@given(st.lists(_steps, max_size=40))
@settings(max_examples=80, deadline=None)
def test_after_any_order_of_steps_the_conversation_is_valid_and_within_its_budget(
    steps: list[tuple[str, object]],
) -> None:
    history, stored = History(BUDGET, COUNTER), Stored()
    for step in steps:
        history = _take(history, step, stored)
        fitted = history.fitted(RULES, TOOLS)
        assert conversation_faults(fitted.messages) == ()
        assert fitted.messages[0] is RULES
        assert _size(fitted) <= BUDGET.total - BUDGET.response
        assert _size(fitted) <= fitted.tokens, "the size that is told covers what is sent"
        results = [message for message in fitted.messages if isinstance(message, ToolResultMessage)]
        assert sum(count_message(message, COUNTER) for message in results) <= BUDGET.turn_results
        assert (
            sum(isinstance(message, UserMessage) for message in fitted.messages) == history.turns - fitted.dropped_turns
        )


@given(st.lists(_steps, max_size=30))
@settings(max_examples=40, deadline=None)
def test_the_newest_turn_keeps_every_message(steps: list[tuple[str, object]]) -> None:
    history, stored = History(BUDGET, COUNTER), Stored()
    said: list[type] = []
    history.begin("which incidents are open?")
    said = [UserMessage]
    for step in steps:
        if step[0] != "add":
            continue
        before = history.last_turn()
        history = _take(history, step, stored)
        if history.last_turn() != before:
            said.append(type(step[1]))
    newest = [type(message) for message in history.fitted(RULES, TOOLS).messages[1:]]
    assert newest[: len(said)] == said


@given(st.lists(_steps, max_size=30))
@settings(max_examples=40, deadline=None)
def test_what_is_stored_is_what_is_recalled(steps: list[tuple[str, object]]) -> None:
    history, stored = History(BUDGET, COUNTER), Stored()
    for step in steps:
        history = _take(history, step, stored)
    history = _take(history, ("end", None), stored)
    for number in range(1, len(stored) + 1):
        recalled = _recalled(stored[:number], history)
        assert (recalled.last_turn(), recalled.turns) == (stored[number - 1], min(number, BUDGET.turns))
        assert recalled.carried == history.carried
