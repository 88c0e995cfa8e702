"""What a provider would refuse in a conversation is found before it is sent, one sentence for each fault."""

from __future__ import annotations

import pytest

from conversation_rules import conversation_faults
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    ModelMessage,
    ModelToolCall,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)

pytestmark = pytest.mark.requirement("CHAT-1")
RULES, ASKED = SystemMessage("Rules."), UserMessage("Alerts?")


def called(*ids: str) -> AssistantMessage:
    return AssistantMessage("", tuple(ModelToolCall(call_id, "query_alerts", {}, "{}") for call_id in ids))


def result(call_id: str) -> ToolResultMessage:
    return ToolResultMessage(call_id, "[]")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [RULES, ASKED],
        [ASKED, called("a"), result("a"), AssistantMessage("None.")],
        [RULES, ASKED, called("a", "b"), result("b"), result("a"), called("c"), result("c"), ASKED],
    ],
)
def test_a_conversation_that_can_be_sent_has_no_fault(messages: list[ModelMessage]) -> None:
    assert conversation_faults(messages) == ()


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([ASKED, result("a")], "message 1: the result 'a' answers no call just before it"),
        ([ASKED, called("a")], "at the end: the call 'a' has no result"),
        ([ASKED, called("a"), ASKED], "message 2: the call 'a' before it has no result"),
        ([ASKED, called("a"), called("b"), result("b")], "message 2: the call 'a' before it has no result"),
        ([called("a"), result("a"), result("a")], "message 2: the result 'a' answers no call just before it"),
        ([called("a"), result("a"), called("a"), result("a")], "message 2: the call id 'a' is used twice"),
        ([ASKED, RULES], "message 1: the rules stand first and once"),
        ([ASKED, AssistantMessage()], "message 1: the assistant says nothing"),
    ],
)
def test_each_fault_is_told_with_its_place(messages: list[ModelMessage], fault: str) -> None:
    assert conversation_faults(messages) == (fault,)


def test_every_fault_is_told_at_once() -> None:
    assert len(conversation_faults([called("a", "a", "b"), ASKED, RULES, result("x")])) == 6
