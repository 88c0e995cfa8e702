"""The route of all calls goes past the router and is answered as if it had not."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from pathlib import Path

import pytest

from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store.state import JOURNAL_FILE
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY = """
tools:
  - name: list_tables
    effect: read
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
"""
CALL = {"session_id": "s", "tool_name": "list_tables", "args": {}}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with FakeToolServer().running() as executor, running_gateway(parse_policy(POLICY), tmp_path, executor) as running:
        yield running


def ask(gateway: RunningGateway, method: str = "POST", path: str = "/v1/proxy-execute", key: str = "") -> HttpAnswer:
    return gateway.request(method, path, key=key or gateway.key, body=dumps(CALL).encode())


def test_what_is_not_quite_that_request_goes_to_the_router(gateway: RunningGateway) -> None:
    answer = ask(gateway, "GET")
    assert (answer.status, answer.body["reason"], answer.headers["allow"]) == (405, "method_not_allowed", "POST")
    answer = ask(gateway, path="/v1/proxy-execute/")
    assert (answer.status, answer.body["reason"]) == (404, "not_found")
    answer = ask(gateway, path="/v1/proxy-execute?x=1")
    assert (answer.status, answer.body["status"]) == (200, "success")


@pytest.mark.parametrize("key", ["", "nobody"])
def test_an_answer_has_the_head_of_every_answer(gateway: RunningGateway, key: str) -> None:
    headers = ask(gateway, key=key).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"] == "application/json"


@pytest.mark.requirement("AUD-1")
def test_without_a_journal_neither_a_call_nor_its_refusal_is_pretended(gateway: RunningGateway, tmp_path: Path) -> None:
    assert ask(gateway).status == 200
    (tmp_path / JOURNAL_FILE).rename(tmp_path / "elsewhere")
    for key in ("", "nobody"):
        answer = ask(gateway, key=key)
        assert (answer.status, answer.body["reason"]) == (503, "overloaded")
        assert "cannot record calls now" in answer.body["detail"]
    (tmp_path / "elsewhere").rename(tmp_path / JOURNAL_FILE)
    assert ask(gateway).status == 200
