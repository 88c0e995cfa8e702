"""Requests without a session run in the one that stands for their key: the same at every gateway of a state, until
nobody used it for a day. Two gateways on one state, as behind a balancer; in files and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_over_http import RawMcp
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import PostgresPlace
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.store import Scope, open_state
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import until

POLICY = """
tools:
  - name: look_up
    effect: read
    parameters: [{name: marker, type: string}]
    output_labels: [{path: /secret, sensitivity: HIGH, integrity: UNTRUSTED}]
    exposure: [{path: /secret, mode: hide}]
    taint_rules: [{rule_id: look_up_any, condition: "true", taint_level: MEDIUM}]
  - name: change
    effect: write
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters: [{name: marker, type: string, required: true}]
    taint_rules: [{rule_id: change_any, condition: "true", taint_level: LOW, requires_approval: true}]
"""
pytestmark = [pytest.mark.requirement("GATE-5"), pytest.mark.requirement("OPS-5")]


@dataclass(frozen=True, slots=True)
class Site:
    """Two gateways of one state, and where to open a third."""

    gateways: tuple[RunningGateway, RunningGateway]
    policy: Policy
    executor: FakeToolServer
    folder: Path
    postgres: PostgresPlace | None

    def key(self) -> str:
        """A new key that every gateway knows."""
        key = self.gateways[0].state.keys.create([Scope.EXECUTE])[0]
        until(lambda: all(gateway.state.keys.verify(key) for gateway in self.gateways))
        return key

    def client(self, at: int, key: str) -> RawMcp:
        return RawMcp(self.gateways[at].url, key)

    def records(self, session_id: str) -> list[str]:
        """What became of a session: opened, closed."""
        found = self.gateways[0].records()
        return [each["change"] for each in found if each.get("session_id") == session_id and "change" in each]

    def ask(self, sql: str, *values: Any) -> list[Any]:
        return self.gateways[0].state.database.run_now(lambda connection: connection.execute(sql, values).fetchall())

    def age(self, session_id: str, by: timedelta) -> None:
        """As if its last request had been so long ago."""
        self.gateways[0].state.database.run_now(
            lambda connection: connection.execute(
                "UPDATE standing_session SET used_at = ? WHERE session_id = ?",
                [format_time(utc_now() - by), session_id],
            )
        )


@pytest.fixture(scope="module", params=["files", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    policy, folder = parse_policy(POLICY), tmp_path_factory.mktemp("standing")
    states: EmptyStates | None = None
    if request.param == "postgresql":
        states = request.getfixturevalue("postgres_states")
    place = None if states is None else states.place(folder)
    any_object = {"type": "object", "properties": {"marker": {"type": "string"}}}
    tools = [ToolSchema(name, name, any_object) for name in ("look_up", "change")]
    with (
        FakeToolServer(tools, token="upstream-token").running() as executor,
        running_gateway(policy, folder, executor, postgres=place) as first,
        running_gateway(policy, folder, executor, postgres=place) as second,
    ):
        executor.on("look_up", Answers({"secret": "canary"}))
        yield Site((first, second), policy, executor, folder, place)


def session_of(result: dict[str, Any]) -> str:
    return str(result["_meta"]["sentinel-rag/session"])


def test_a_plain_retry_at_the_other_gateway_finds_its_approval(site: Site) -> None:
    """The client cannot elicit, so it sends nothing back but the call itself."""
    key, change = site.key(), {"marker": f"balanced-{site.folder.name}"}
    asked = site.client(0, key).call("change", change)
    assert asked["structuredContent"]["reason"] == "approval_required"
    approval_id = asked["structuredContent"]["approval_id"]
    [first, second] = site.gateways
    assert second.request("POST", f"/v1/approvals/{approval_id}/approve", key=first.approver).status == 200
    done = site.client(1, key).call("change", change)
    assert (done["isError"], session_of(done)) == (False, session_of(asked))
    again = site.client(0, key).call("change", change)
    assert (again["isError"], session_of(again)) == (True, session_of(asked)), "an approval lets one call through"


def test_what_was_read_at_one_is_known_at_the_other_and_a_hidden_value_is_found_there(site: Site) -> None:
    key = site.key()
    read = site.client(0, key).call("look_up", {"marker": "x"})
    handle = read["structuredContent"]["secret"]
    passed = site.client(1, key).call("look_up", {"marker": handle})
    assert passed["isError"] is False
    assert site.executor.calls[-1].arguments == {"marker": "canary"}
    after = site.client(0, key).call("look_up", {"marker": "x"})
    assert [each["_meta"]["sentinel-rag/context"]["sensitivity"] for each in (read, after)] == ["MEDIUM", "HIGH"]


def test_first_requests_that_race_at_both_open_one_session(site: Site) -> None:
    key = site.key()

    def call(number: int) -> str:
        return session_of(site.client(number % 2, key).call("look_up", {"marker": "x"}))

    with ThreadPoolExecutor(8) as pool:
        [only] = set(pool.map(call, range(8)))
    assert site.records(only) == ["opened"]
    [[key_id]] = site.ask("SELECT key_id FROM session WHERE session_id = ?", only)
    assert site.ask("SELECT count(*) FROM session WHERE key_id = ?", key_id) == [(1,)]


def test_after_a_day_without_use_another_one_stands_and_the_hidden_values_are_gone(site: Site) -> None:
    key = site.key()
    before = session_of(site.client(0, key).call("look_up", {"marker": "x"}))
    site.age(before, timedelta(hours=23, minutes=58))
    assert session_of(site.client(1, key).call("look_up", {"marker": "x"})) == before, "a request within a day"
    site.age(before, timedelta(hours=24, minutes=1))
    with ThreadPoolExecutor(4) as pool:
        after = set(
            pool.map(lambda at: session_of(site.client(at % 2, key).call("look_up", {"marker": "x"})), range(4))
        )
    assert len(after) == 1
    assert before not in after
    assert site.records(before) == ["opened", "closed"]
    assert site.ask("SELECT count(*) FROM handle WHERE session_id = ?", before) == [(0,)]


def test_what_nobody_comes_back_to_is_ended_by_any_gateway_once(site: Site) -> None:
    keys = [site.key(), site.key()]
    left, used = (session_of(site.client(0, key).call("look_up", {"marker": "x"})) for key in keys)
    site.age(left, timedelta(hours=24, minutes=1))
    assert site.ask("SELECT count(*) FROM handle WHERE session_id = ?", left) == [(1,)]
    with running_gateway(site.policy, site.folder, site.executor, postgres=site.postgres):
        until(lambda: site.ask("SELECT 1 FROM session WHERE session_id = ? AND closed_at IS NOT NULL", left))
    assert site.records(left) == ["opened", "closed"]
    assert site.records(used) == ["opened"]
    assert site.ask("SELECT count(*) FROM handle WHERE session_id = ?", left) == [(0,)]
    assert site.ask("SELECT count(*) FROM standing_session WHERE session_id = ?", left) == [(0,)]


def test_a_session_that_its_client_ended_stands_no_longer_at_the_other_gateway(site: Site) -> None:
    key = site.key()
    ended = session_of(site.client(0, key).call("look_up", {"marker": "x"}))
    assert session_of(site.client(1, key).call("look_up", {"marker": "x"})) == ended  # the other holds it in memory
    assert site.gateways[0].request("DELETE", f"/v1/sessions/{ended}", key=key).status == 204
    next_one = site.client(1, key).call("look_up", {"marker": "x"})
    assert (next_one["isError"], session_of(next_one) != ended) == (False, True)
    assert site.gateways[1].request("DELETE", f"/v1/sessions/{ended}", key=key).status == 204
    assert site.records(ended) == ["opened", "closed"], "closing twice is once, whoever does it"


@pytest.mark.anyio
async def test_a_session_whose_closing_could_not_be_written_is_open(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        session, _ = await state.standing.enter("key")
        state.database.run_now(lambda connection: connection.execute("ALTER TABLE journal RENAME TO away"))
        with pytest.raises(Exception, match="journal"):
            await state.sessions.close(session.session_id, "key")
        state.database.run_now(lambda connection: connection.execute("ALTER TABLE away RENAME TO journal"))
        again, _ = await state.standing.enter("key")
        assert (again.session_id, again.closed) == (session.session_id, False)
        assert await state.sessions.close(session.session_id, "key")
        after, _ = await state.standing.enter("key")
        assert after.session_id != session.session_id
