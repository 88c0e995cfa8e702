"""Attacker controls: the agent, which templates it asks for, with which parameters, in how many sessions and at once.

Wanted: what one query may not read without a person is read by many narrow ones (raw sign-ins by the history of each
account). The bound is on tables and rows, whichever query they come by; what is over it is withheld, and on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Volume, load_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

SHIPPED = load_policy(Path(__file__).parents[2] / "config" / "sentinel_config.yaml")
pytestmark = pytest.mark.requirement("TAINT-7")


def result(rows: int, *tables: str) -> dict[str, Any]:
    return {
        "rows": [{"UserPrincipalName": f"user{row}@contoso.example"} for row in range(rows)],
        "coverage": {"tables": tables},
    }


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in SHIPPED.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(SHIPPED, tmp_path / "state", executor) as running,
    ):
        executor.on("run_kql_query", Answers(result(400, "SigninLogs")))
        yield running


def history(gateway: RunningGateway, session_id: str, number: int, template: str = "user_signin_history") -> HttpAnswer:
    arguments = {"template": template, "parameters": {"user": f"user{number}"}, "limit": 100}
    return gateway.call("run_kql_query", arguments, session_id=session_id)


def test_many_narrow_queries_are_one_wide_one(gateway: RunningGateway) -> None:
    """In one session after the other, by one template and another: all that is told are two thousand rows."""
    answers = [history(gateway, gateway.open_session(), number) for number in range(29)]
    answers.append(history(gateway, gateway.open_session(), 30, "signins_from_ip"))
    answers.append(history(gateway, gateway.open_session(), 31, "RISKY_SIGNINS"))
    assert [answer.status for answer in answers] == [200] * 5 + [403] * 26
    refused = answers[5]
    assert refused.body["reason"] == "approval_required"
    assert b"@contoso.example" not in refused.content
    story = [record for record in gateway.records() if record.get("audit_id") == refused.body["audit_id"]]
    assert [(record["kind"], record.get("status"), record.get("reason")) for record in story] == [
        ("intent", None, None),
        ("outcome", "error", "approval_required"),
    ]
    assert refused.body["note"].startswith("More than 2000 rows of AADNonInteractiveUserSignInLogs")
    asked = gateway.request("GET", f"/v1/approvals/{refused.body['approval_id']}", key=gateway.approver).body
    assert asked["why"].startswith("More than 2000 rows of AADNonInteractiveUserSignInLogs")
    assert asked["arguments"]["parameters"] == {"user": "user5"}


def test_queries_at_once_do_not_slip_through_together(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: history(gateway, session_id, number).status, range(16)))
    assert statuses.count(200) == 5


def test_another_person_lets_exactly_one_of_them_be_told_once(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    for number in range(5):
        assert history(gateway, session_id, number).status == 200
    refused = history(gateway, session_id, 5)
    path = f"/v1/approvals/{refused.body['approval_id']}"
    assert gateway.request("POST", f"{path}/approve", key=gateway.user, body=b"{}").status == 404
    assert gateway.request("POST", f"{path}/approve", key=gateway.approver, body=b"{}").status == 200
    assert history(gateway, session_id, 6).status == 403
    assert [history(gateway, session_id, 5).status for _ in range(2)] == [200, 403]
    assert gateway.request("GET", path, key=gateway.approver).body["state"] == "used"


def test_other_people_and_other_tables_are_left_alone(gateway: RunningGateway) -> None:
    session_id = gateway.open_session()
    statuses = [history(gateway, session_id, number).status for number in range(7)]
    assert statuses.count(200) == 5
    agent = next(info for info in gateway.state.keys.list() if info.name == "caller")
    finn = gateway.state.keys.create([Scope.USER], name="finn", for_key=agent.key_id)[0]
    assert history(gateway, gateway.open_session(key=finn), 1).status == 200
    gateway.executor.on("run_kql_query", Answers(result(100, "SecurityAlert")))
    assert history(gateway, session_id, 1, "alerts_by_product").status == 200


def test_a_result_over_several_tables_counts_too(gateway: RunningGateway) -> None:
    gateway.executor.on("run_kql_query", Answers(result(1_200, "AuditLogs", "SigninLogs")))
    session_id = gateway.open_session()
    assert [history(gateway, session_id, number, "account_activity_timeline").status for number in (1, 2)] == [200, 403]


@pytest.mark.parametrize("alone", ["SigninLogs", "AuditLogs"])
def test_a_result_over_the_tables_of_two_volumes_counts_in_both(tmp_path: Path, alone: str) -> None:
    """A join is no way to read the one volume at the cost of the other."""
    volumes = tuple(Volume(name, frozenset({name}), 500, 86_400) for name in ("SigninLogs", "AuditLogs"))
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in SHIPPED.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(replace(SHIPPED, volumes=volumes), tmp_path / "state", executor) as gateway,
    ):
        executor.on("run_kql_query", Answers(result(100, "AuditLogs", "SigninLogs")))
        joined = [history(gateway, gateway.open_session(), number).status for number in range(5)]
        executor.on("run_kql_query", Answers(result(1, alone)))
        assert (joined, history(gateway, gateway.open_session(), 6).status) == ([200] * 5, 403)
