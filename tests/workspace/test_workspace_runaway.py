"""Queries that would never end, on a real server: stopped at their deadline or when their client leaves, and no one
else notices."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest
from runaway import IDENTITY_HEADER, RUNAWAYS, WORKSPACE_ID, RunawayServer, runaway_server

from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics

pytestmark = pytest.mark.requirement("DATA-4")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunawayServer]:
    with runaway_server(tmp_path_factory.mktemp("runaway")) as running:
        yield running


def assert_free(server: RunawayServer) -> None:
    """Nothing runs, and the next query is answered."""
    server.until(lambda counts: counts["running"] == counts["waiting"] == 0)
    assert server.query("Syslog | count").body["tables"][0]["rows"] == [[10]]


def test_a_runaway_query_ends_at_its_deadline_with_the_services_504(server: RunawayServer) -> None:
    before = server.counts()["timed_out"]
    reply = server.query(RUNAWAYS["cross_join"], wait=1)
    assert (reply.status, reply.body["error"]["code"]) == (504, "GatewayTimeout")
    assert server.counts()["timed_out"] == before + 1
    assert_free(server)


@pytest.mark.parametrize("kql", RUNAWAYS.values(), ids=RUNAWAYS)
def test_a_runaway_query_ends_with_the_connection_of_its_client(server: RunawayServer, kql: str) -> None:
    before = server.counts()["cancelled"]
    connection = server.begin_query(kql)
    server.until(lambda counts: counts["running"] == 1)
    connection.close()
    server.until(lambda counts: counts["cancelled"] == before + 1)
    assert_free(server)


def test_others_are_answered_beside_four_runaway_queries(server: RunawayServer) -> None:
    connections = [server.begin_query(RUNAWAYS["endless_range"]) for _ in range(4)]
    server.until(lambda counts: counts["running"] == 4)
    for number in range(5):
        reply = server.query(f"Syslog | where ProcessID == {number} | count")
        assert reply.body["tables"][0]["rows"] == [[1]]
    assert server.counts()["running"] == 4
    for connection in connections:
        connection.close()
    assert_free(server)


def test_a_query_whose_client_leaves_while_it_waits_never_runs(server: RunawayServer) -> None:
    running = [server.begin_query(RUNAWAYS["endless_range"]) for _ in range(5)]
    server.until(lambda counts: counts["running"] == 5)
    before = server.counts()
    waiting = server.begin_query(RUNAWAYS["cross_join"])
    server.until(lambda counts: counts["waiting"] == 1)
    waiting.close()
    after = server.until(lambda counts: counts["waiting"] == 0 and counts["cancelled"] == before["cancelled"] + 1)
    assert after["running"] == 5
    for connection in running:
        connection.close()
    assert_free(server)


@pytest.mark.anyio
async def test_a_call_that_the_client_gives_up_stops_on_the_server(server: RunawayServer) -> None:
    before = server.counts()["cancelled"]
    credential = IdentityEndpointCredential(f"{server.url}/msi/token", IDENTITY_HEADER)
    async with LogAnalytics(credential, endpoint=server.url) as connection:
        workspace = connection.workspace("lab", WORKSPACE_ID)
        with anyio.move_on_after(0.5) as deadline:
            await workspace.query(RUNAWAYS["cross_join"])
        assert deadline.cancelled_caught
        await anyio.to_thread.run_sync(server.until, lambda counts: counts["cancelled"] == before + 1)
        assert (await workspace.query("Syslog | count")).rows == ((10,),)


def test_a_pipelined_or_kept_connection_is_not_a_client_that_left(server: RunawayServer) -> None:
    """A connection that is kept open for the next request answers again and again."""
    connection = server.begin_query("Syslog | count")
    for _ in range(3):
        response = connection.getresponse()
        assert response.status == 200
        assert response.read()
        headers = {"authorization": f"Bearer {server._token()}", "content-type": "application/json"}
        connection.request("POST", f"/v1/workspaces/{WORKSPACE_ID}/query", '{"query": "Syslog | count"}', headers)
    connection.getresponse().read()
    connection.close()
    assert_free(server)
