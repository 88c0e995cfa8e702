"""A database that goes and comes back: nothing passes meanwhile, nothing acknowledged is lost, nothing happens twice.

Between the gateway and a real server stands a proxy that ends connections, all at once or in the middle of one commit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.support.crash_load import POLICY
from tests.support.crash_trial import crash_executor
from tests.support.postgres_proxy import PostgresProxy
from tests.support.postgres_server import PostgresServer
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import JournalReader, PostgresPlace
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import open_state
from sentinel_rag_testing.fake_tool_server import FakeToolServer, Waits
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway
from waiting import WAIT_S, until

pytestmark = pytest.mark.requirement("OPS-5")
INTENT, OUTCOME, DECISION = b'"kind":"intent"', b'"kind":"outcome"', b'"kind":"approval_decided"'


@dataclass(frozen=True, slots=True)
class Site:
    """A gateway whose database is reached through `proxy`; `place` leads there directly."""

    gateway: RunningGateway
    proxy: PostgresProxy
    place: PostgresPlace
    executor: FakeToolServer

    def call(self, tool: str, **arguments: str) -> HttpAnswer:
        return self.gateway.call(tool, {"marker": "m", **arguments}, session_id="s")

    def kinds(self, audit_id: str) -> list[tuple[str, str | None]]:
        """The records of a call: kind and status."""
        return [(entry.kind, entry.record.get("status")) for entry in JournalReader(self.place).find(audit_id)]

    def at_rest(self) -> bool:
        """Whether nothing runs in the database, and nothing is due: the sealer writes half a second after a record."""
        with psycopg.connect(self.place.url, options=f"-c search_path={self.place.schema}") as connection:
            rest = connection.execute(
                "SELECT (SELECT max(seq) FROM checkpoint) = (SELECT max(seq) FROM journal) AND NOT EXISTS "
                "(SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' "
                "AND pid <> pg_backend_pid())"
            ).fetchone()
        return rest == (True,)

    def last_intent(self) -> str:
        """The audit id of the newest intent."""
        return next(e.audit_id for e in reversed(JournalReader(self.place).last(50)) if e.kind == "intent")


@pytest.fixture(scope="module")
def executor() -> Iterator[FakeToolServer]:
    with crash_executor() as running:
        yield running


@pytest.fixture
def site(
    executor: FakeToolServer, postgres: PostgresServer, postgres_states: EmptyStates, tmp_path: Path
) -> Iterator[Site]:
    executor.on("note")
    executor.calls.clear()
    folder = tmp_path / "state"
    place = postgres_states.place(folder)
    with PostgresProxy(postgres.port) as proxy:
        through = PostgresPlace(proxy.url(place.url), place.schema, folder)
        policy = parse_policy(POLICY, source="crash_load.py")
        with running_gateway(policy, folder, executor, postgres=through) as gateway:
            site = Site(gateway, proxy, place, executor)
            assert site.call("read_public").status == 200
            executor.calls.clear()
            yield site


def refused(answer: HttpAnswer) -> str:
    """The sentence of a refusal for want of the database."""
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.body["reason"] == "overloaded"
    return str(answer.body["detail"])


def in_doubt(answer: HttpAnswer) -> None:
    """It ran, and nothing about the answer asks anybody to send it again."""
    assert (answer.status, answer.body["reason"]) == (503, "overloaded")
    assert "retry-after" not in answer.headers
    assert "may have taken effect" in answer.body["detail"]
    error = answer.body["error"]
    assert (error["code"], error["retry_possible"]) == ("internal", False)
    assert error["next_step"] == "It may have taken effect: look before you call again."


def test_nothing_passes_while_it_is_away_and_calls_go_on_by_themselves(site: Site) -> None:
    with site.proxy.away():
        for tool in ("read_public", "read_secret"):
            sentence = refused(site.call(tool))
            assert "cannot reach its database" in sentence
            assert "127.0.0.1" not in sentence
        assert refused(site.gateway.request("GET", "/v1/audit", key=site.gateway.auditor))
        ready = site.gateway.request("GET", "/readyz")
        assert (ready.status, ready.body["checks"]["journal"]) == (503, "not writable")
        assert site.gateway.request("GET", "/healthz").status == 200
    assert list(site.executor.calls) == []
    assert until(lambda: site.call("read_public").status == 200)
    assert JournalReader(site.place).verify().intact


def test_a_connection_that_was_lost_between_two_calls_is_nobodys_concern(site: Site) -> None:
    for _ in range(2):
        assert until(lambda: site.at_rest())
        site.gateway.state.journal.seal_now()  # the sealer has heard by then that what is seen is written
        site.proxy.cut_all()
        assert site.call("read_public").status == 200


@pytest.mark.parametrize("after", [True, False])
def test_a_call_whose_intent_is_in_doubt_does_not_run_and_is_closed_as_unknown(site: Site, after: bool) -> None:
    """Whether or not the server committed: the tool is not called, and no call is left open."""
    site.proxy.cut_commit(INTENT, after=after)
    before = site.last_intent()
    assert "lets nothing through" in refused(site.call("note", place="p"))
    assert site.proxy.cuts.acquire(timeout=WAIT_S)
    assert list(site.executor.calls) == []
    if after:
        audit_id = until(lambda: (site.last_intent() != before) and site.last_intent())
        assert until(lambda: len(site.kinds(audit_id)) == 2)
        assert site.kinds(audit_id) == [("intent", None), ("outcome", "unknown")]
    else:
        assert site.last_intent() == before
    assert until(lambda: site.call("note", place="p").status == 200)
    assert len(site.executor.calls) == 1
    assert JournalReader(site.place).verify().intact


@pytest.mark.parametrize("after", [True, False])
def test_a_call_whose_outcome_is_in_doubt_is_not_acknowledged_and_has_one_outcome(site: Site, after: bool) -> None:
    site.proxy.cut_commit(OUTCOME, after=after)
    in_doubt(site.call("note", place="p"))
    assert len(site.executor.calls) == 1
    audit_id = site.last_intent()
    expected = [("intent", None), ("outcome", "success" if after else "unknown")]
    assert until(lambda: len(site.kinds(audit_id)) == 2)
    assert site.kinds(audit_id) == expected
    assert until(lambda: site.call("read_public").status == 200)
    assert site.kinds(audit_id) == expected


@pytest.mark.requirement("APPR-2")
def test_an_approval_whose_decision_is_in_doubt_is_decided_once_and_used_once(site: Site) -> None:
    asked = site.call("isolate").body["approval_id"]
    path = f"/v1/approvals/{asked}/approve"
    site.proxy.cut_commit(DECISION, after=True)
    assert refused(site.gateway.request("POST", path, key=site.gateway.approver, body=b"{}"))
    until(lambda: site.gateway.request("GET", "/readyz").status == 200)
    again = site.gateway.request("POST", path, key=site.gateway.approver, body=b"{}")
    assert (again.status, again.body["reason"]) == (409, "approval_decided")
    assert [site.call("isolate").status for _ in range(2)] == [200, 403]
    assert len(site.executor.calls) == 1


def test_the_outcome_of_a_call_that_another_gateway_closed_meanwhile_is_not_acknowledged(site: Site) -> None:
    """A gateway that starts while this one is cut off takes it for dead; what it wrote then is not contradicted."""
    release = threading.Event()
    site.executor.on("note", Waits(release))

    def interrupted() -> int:
        with open_state(site.place.folder, postgres=site.place) as other:
            return other.journal.interrupted

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(site.call, "note", place="p")
        until(lambda: site.executor.calls)
        with site.proxy.away():
            assert until(interrupted) == 1
        release.set()
        in_doubt(answer.result())
    assert site.kinds(site.last_intent()) == [("intent", None), ("outcome", "unknown")]
