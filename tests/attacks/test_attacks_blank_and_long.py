"""Attacker controls: the arguments of a call.

Wanted: a value that the rule takes for present and the tool for absent (blank text), so that a rule over `has(x)`
allows what it should not; and a disk filled by the record of calls that are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

POLICY = """
tools:
  - name: query_alerts
    parameters:
      - {name: incident, type: string}
    taint_rules:
      - rule_id: alerts_of_a_named_incident
        condition: "has(incident)"
        taint_level: MEDIUM
"""
LONG = "x" * 200_000


@pytest.fixture
def named_only(executor: FakeToolServer, tmp_path: Path) -> Iterator[RunningGateway]:
    with running_gateway(parse_policy(POLICY), tmp_path / "named", executor) as running:
        yield running


@pytest.mark.parametrize("blank", ["", " ", "\r\n", "\t", "\u00a0", "\u2003", "\u3000"])
def test_blank_text_is_not_a_value(named_only: RunningGateway, executor: FakeToolServer, blank: str) -> None:
    answer = named_only.call("query_alerts", {"incident": blank})
    assert answer.status == 422
    assert answer.body["error"]["field"] == "incident"
    record = named_only.records()[-1]
    assert (record["kind"], record["reason"]) == ("refusal", "invalid_argument")
    assert executor.calls == []


def test_a_named_incident_still_passes(named_only: RunningGateway, executor: FakeToolServer) -> None:
    assert named_only.call("query_alerts", {"incident": "55"}).status == 200
    assert len(executor.calls) == 1


def test_long_arguments_of_a_denied_call_leave_their_hash_only(
    gateway: RunningGateway, executor: FakeToolServer
) -> None:
    answer = gateway.call("no_such_tool", {"text": LONG})
    assert answer.status == 403
    record = gateway.records()[-1]
    assert record["arguments"] is None
    assert len(record["arguments_sha256"]) == 64
    assert executor.calls == []


def test_arguments_of_usual_length_are_recorded_whole(gateway: RunningGateway) -> None:
    gateway.call("no_such_tool", {"text": "x" * 10_000})
    assert gateway.records()[-1]["arguments"] == {"text": "x" * 10_000}
