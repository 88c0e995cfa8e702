"""Waiting for a change of the approvals: told at once, by this gateway or another on the same file, and bounded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from approval_policy import DISABLE, ask, open_gateway

from sentinel_rag.gateway import approval_routes
from sentinel_rag_testing.running_gateway import RunningGateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    with open_gateway(tmp_path / "state") as running:
        yield running


def listed(gateway: RunningGateway, mark: str = "") -> Any:
    path = "/v1/approvals?state=pending" + (f"&mark={mark}" if mark else "")
    answer = gateway.request("GET", path, key=gateway.approver)
    assert answer.status == 200, answer.body
    return answer.body


@pytest.mark.requirement("APPR-1")
def test_whoever_waits_hears_of_each_change(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval_routes, "LONGEST_WAIT_S", 60.0)
    before = listed(gateway)
    assert before["approvals"] == []
    with ThreadPoolExecutor(1) as waiting:
        told = waiting.submit(listed, gateway, before["mark"])
        approval_id = ask(gateway)
        asked = told.result(60)
        assert [each["approval_id"] for each in asked["approvals"]] == [approval_id]
        assert asked["mark"] != before["mark"]

        told = waiting.submit(listed, gateway, asked["mark"])
        gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=gateway.approver)
        decided = told.result(60)
        assert decided["approvals"] == []

        told = waiting.submit(listed, gateway, decided["mark"])
        ask_again = gateway.call("disable_account", DISABLE)
        assert ask_again.status == 200  # the approval is used now
        assert told.result(60)["mark"] not in (before["mark"], asked["mark"], decided["mark"])


def test_who_waits_for_nothing_is_answered_after_a_while(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_routes, "LONGEST_WAIT_S", 0.01)
    before = listed(gateway)
    assert listed(gateway, before["mark"]) == before


def test_a_mark_of_before_is_answered_at_once_and_a_wrong_one_refused(gateway: RunningGateway) -> None:
    ask(gateway)
    assert len(listed(gateway, "0" * 16)["approvals"]) == 1
    wrong = gateway.request("GET", "/v1/approvals?mark=x", key=gateway.approver)
    assert (wrong.status, wrong.body["reason"]) == (422, "invalid_argument")
    assert gateway.request("GET", f"/v1/approvals?mark={'0' * 16}", key=gateway.key).status == 403
