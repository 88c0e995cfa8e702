"""Token counts: the vocabulary is o200k_base by its hash, the counts are tiktoken's, and no text breaks a counter."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from sentinel_rag.agent import tokens
from sentinel_rag.agent.models.port import AssistantMessage, ModelToolCall, UserMessage
from sentinel_rag.agent.tokens import (
    EstimatingCounter,
    ExactCounter,
    count_message,
    count_tool,
    ready_counter,
)
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME

pytestmark = pytest.mark.requirement("CHAT-5")

TOKENS = {
    "": 0,
    "hello world": 2,
    "antidisestablishmentarianism": 6,
    "2 + 2 = 4": 7,
    "お誕生日おめでとう": 8,
    "it's I'M WE'LL 12345678 \r\n\r\n\t x": 13,
    "<|endoftext|>": 7,
    "8f3b1c2e-77aa-4f0e-9c1d-2b7a5e9d4c10": 33,
    "SecurityAlert | where TimeGenerated > ago(7d)\n| summarize count() by AlertSeverity": 19,
    '{"IncidentNumber":38,"Severity":"High","Owner":null}': 14,
}
"""As tiktoken 0.14 counts them with the vocabulary that it fetches itself."""


@pytest.fixture(scope="module")
def exact() -> ExactCounter:
    counter = ready_counter()
    assert isinstance(counter, ExactCounter), "the environment of the tests holds what exact counts need"
    return counter


@pytest.mark.parametrize("text", TOKENS)
def test_counts_are_those_of_o200k_base(exact: ExactCounter, text: str) -> None:
    assert exact.count(text) == TOKENS[text]


def test_the_vocabulary_is_read_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("counting tokens opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(tokens, "_loaded", tokens._loaded.__wrapped__)
    assert ready_counter().count("hello world") == 2


def test_another_vocabulary_is_refused_and_a_broken_one_too() -> None:
    with pytest.raises(tokens.VocabularyError, match="SHA-256"):
        tokens.read_vocabulary(gzip.compress(b"aGVsbG8= 0\n"))
    with pytest.raises(tokens.VocabularyError, match="unpacked"):
        tokens.read_vocabulary(b"no gzip")


def test_without_the_extra_tokens_are_estimated_and_the_counter_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_CARRIER", "no-such-package")
    counter = tokens._loaded.__wrapped__()
    assert not counter.exact
    assert counter.count("hello world") == 5


@pytest.mark.parametrize(
    "text", [" " * 1_200_000, "a" * 300_000, "A1b2" * 50_000, "\ud800" * 10, "<|endofprompt|>" * 9]
)
def test_no_text_breaks_a_counter(exact: ExactCounter, text: str) -> None:
    assert exact.count(text) > 0
    assert EstimatingCounter().count(text) > 0


def test_the_estimate_rather_counts_too_much_for_what_logs_hold(exact: ExactCounter) -> None:
    row = {
        "TimeGenerated": "2024-07-02T09:45:12Z",
        "Computer": "mb-winclient",
        "EventID": 4625,
        "IpAddress": "203.0.113.9",
    }
    text = "\n".join(json.dumps({**row, "EventRecordId": 71_000 + place}) for place in range(40))
    assert exact.count(text) <= EstimatingCounter().count(text) <= 2 * exact.count(text)


def test_the_calls_of_a_message_and_the_schema_of_a_tool_are_counted(exact: ExactCounter) -> None:
    call = ModelToolCall(
        "call_1", "query_incidents", {"severity": "High", "limit": 5}, '{"severity": "High", "limit": 5}'
    )
    plain, calling = AssistantMessage("Looking."), AssistantMessage("Looking.", (call,))
    assert count_message(UserMessage(""), exact) > 0
    assert count_message(calling, exact) >= count_message(plain, exact) + exact.count('{"severity":"High","limit":5}')
    tool = TOOLS_BY_NAME["query_incidents"]
    assert count_tool(tool, exact) > exact.count(tool.description) + 50
