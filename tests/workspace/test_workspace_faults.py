"""Faults on demand: each on its wire, for as many requests as it was asked for, and then normal service."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from arm_client import WORKSPACE_ID, ArmClient, Reply, app_over

from sentinel_rag.workspace.serving.faults import FaultSchedule, InjectedFault
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.requirement("DATA-6")


class Both:
    """Both wires of one server."""

    def __init__(self, url: str) -> None:
        self.rest = ArmClient(url)
        self._logs = ArmClient(url, audience="https://api.loganalytics.io")

    def faults(self, *faults: dict[str, Any]) -> Reply:
        return self.rest.admin("PUT", "faults", {"faults": list(faults)})

    def query(self, kql: str = "range x from 1 to 10 step 1", prefer: str = "") -> Reply:
        return self._logs.send(
            "POST",
            f"/v1/workspaces/{WORKSPACE_ID}/query",
            {"query": kql},
            {"authorization": f"Bearer {self._logs.token}", "accept-encoding": "gzip", "prefer": prefer},
        )

    def list(self) -> Reply:
        return self.rest.arm("GET", "incidents", top=1)


@pytest.fixture
def both(small_estate: Workspace) -> Iterator[Both]:
    with serve(app_over(small_estate)) as url:
        yield Both(url)


@pytest.mark.parametrize(
    ("fault", "status", "body"),
    [
        ({"kind": "throttled", "retry_after_s": 7}, 429, b"ThrottledError"),
        ({"kind": "timeout"}, 504, b"GatewayTimeout"),
        ({"kind": "server_error"}, 500, b"InternalServerError"),
        ({"kind": "html"}, 502, b"<html>"),
        ({"kind": "empty"}, 200, b""),
        ({"kind": "no_content"}, 204, b""),
        ({"kind": "truncated"}, 200, b'{"tables"'),
        ({"kind": "unauthorized"}, 401, b"Continuous access evaluation"),
        ({"kind": "forbidden"}, 403, b"does not have authorization"),
    ],
    ids=lambda value: str(value),
)
def test_a_fault_hits_its_requests_and_is_used_up(both: Both, fault: dict[str, Any], status: int, body: bytes) -> None:
    assert both.faults({**fault, "times": 2}).status == 200
    first, then = both.query(), both.list()
    assert (first.status, then.status) == (status, status)
    assert body in first.raw
    assert (both.query().status, both.list().status) == (200, 200)
    if fault["kind"] == "throttled":
        assert (first.headers["retry-after"], then.headers["retry-after"]) == ("7", "7")
        assert then.error[0] == "TooManyRequests"
    assert both.rest.admin("GET", "faults").body == {
        "faults": [],
        "requests": {"logs POST": 2, "rest GET": 2},
        "most_at_once": {"logs": 1, "rest": 1},
    }


def test_a_partial_result_is_rows_with_an_error_beside_them(both: Both) -> None:
    both.faults({"kind": "partial"})
    both.list()
    answer = both.query().body
    assert answer["tables"][0]["rows"] == [[1], [2], [3], [4], [5]]
    assert answer["error"]["code"] == "PartialError"
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in answer["error"]["details"][0]["innererror"]["message"]
    assert "error" not in Both(both.rest.url).query().raw.decode("latin-1")


def test_a_schedule_skips_and_chooses_by_wire_method_and_path(both: Both) -> None:
    name = both.list().body["value"][0]["name"]
    both.faults(
        {"kind": "timeout", "wire": "rest", "method": "get", "path": f"/incidents/{name}", "skip": 1},
        {"kind": "throttled", "wire": "logs", "retry_after_s": None},
    )
    assert both.list().status == 200
    assert [both.rest.arm("GET", f"incidents/{name}").status for _ in range(3)] == [200, 504, 200]
    throttled = both.query()
    assert throttled.status == 429
    assert "retry-after" not in throttled.headers
    assert both.query().status == 200


def test_a_fault_comes_back_every_so_many_requests(both: Both) -> None:
    both.faults({"kind": "timeout", "wire": "logs", "every": 3, "times": None, "skip": 1})
    assert [both.query().status for _ in range(10)] == [200, 200, 200, 504, 200, 200, 504, 200, 200, 504]
    assert [both.list().status for _ in range(3)] == [200] * 3
    (left,) = both.rest.admin("GET", "faults").body["faults"]
    assert (left["times"], left["every"]) == (None, 3)
    both.faults({"kind": "timeout", "wire": "logs", "every": 2, "times": 2})
    assert [both.query().status for _ in range(6)] == [200, 504, 200, 504, 200, 200]


def test_a_share_of_the_requests_is_the_same_for_the_same_seed(both: Both) -> None:
    def statuses(seed: int) -> list[int]:
        both.faults({"kind": "server_error", "wire": "logs", "probability": 0.5, "seed": seed, "times": None})
        return [both.query().status for _ in range(20)]

    first = statuses(7)
    assert set(first) == {200, 500}
    assert statuses(7) == first
    assert statuses(8) != first


def test_a_fault_between_two_times() -> None:
    now = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
    schedule = FaultSchedule(lambda: now)
    schedule.replace(
        [InjectedFault("timeout", times=None, start=now + timedelta(seconds=1), end=now + timedelta(seconds=3))]
    )

    def hit() -> bool:
        return schedule.next_for("logs", "POST", "/v1/x") is not None

    found = []
    for _ in range(5):
        found.append(hit())
        now += timedelta(seconds=1)
    assert found == [False, True, True, False, False]


def test_faults_are_added_behind_those_that_are_left(both: Both) -> None:
    both.faults({"kind": "timeout", "wire": "logs"})
    added = both.rest.admin("POST", "faults", {"faults": [{"kind": "html", "wire": "logs"}]})
    assert [fault["kind"] for fault in added.body["faults"]] == ["timeout", "html"]
    assert [both.query().status for _ in range(3)] == [504, 502, 200]
    assert both.rest.admin("GET", "faults").body["requests"] == {"logs POST": 3}


def test_a_result_too_large_for_any_row_has_no_table(both: Both) -> None:
    both.faults({"kind": "too_large"})
    reply = both.query()
    assert (reply.status, list(reply.body)) == (200, ["error"])
    assert b"E_QUERY_RESULT_SET_TOO_LARGE" in reply.raw


def test_a_slow_request_is_served_in_the_end(both: Both) -> None:
    both.faults({"kind": "slow", "delay_s": 0.01, "times": 2})
    assert (both.query().status, both.list().status) == (200, 200)


@pytest.mark.parametrize("status", [409, 412])
def test_a_conflict_changes_nothing(both: Both, status: int) -> None:
    found = both.list().body["value"][0]
    both.faults({"kind": "conflict", "status": status, "method": "PUT"})
    body = {"properties": {**found["properties"], "title": "other"}}
    assert both.rest.arm("PUT", f"incidents/{found['name']}", body).status == status
    assert both.rest.arm("GET", f"incidents/{found['name']}").body == found
    assert both.rest.arm("PUT", f"incidents/{found['name']}", body).status == 200


def test_a_lost_answer_is_of_a_write_that_was_done(both: Both) -> None:
    found = both.list().body["value"][0]
    both.faults({"kind": "lost_answer", "method": "PUT"})
    body = {"properties": {**found["properties"], "title": "other"}}
    with pytest.raises((http.client.HTTPException, OSError)):
        both.rest.arm("PUT", f"incidents/{found['name']}", body)
    assert both.rest.arm("GET", f"incidents/{found['name']}").body["properties"]["title"] == "other"


def test_only_the_operator_sets_faults(both: Both) -> None:
    for token in ("", "wrong", both.rest.token):
        refused = both.rest.admin("PUT", "faults", {"faults": [{"kind": "timeout"}]}, token=token)
        assert refused.status == 401
        assert both.rest.admin("GET", "faults", token=token).status == 401
    assert both.list().status == 200


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "meteor"},
        {"kind": "timeout", "times": 0},
        {"kind": "timeout", "skip": -1},
        {"kind": "timeout", "every": 0},
        {"kind": "timeout", "probability": 0},
        {"kind": "timeout", "probability": 1.5},
        {"kind": "timeout", "start": "2026-11-28T09:00:00"},
        {"kind": "timeout", "start": "2026-11-28T09:00:00Z", "end": "2026-11-28T09:00:00Z"},
        {"kind": "too_large", "wire": "rest"},
        {"kind": "slow", "delay_s": 61},
        {"kind": "partial", "wire": "rest"},
        {"kind": "conflict", "wire": "logs"},
        {"kind": "conflict", "status": 400},
        {"kind": "timeout", "wires": "logs"},
    ],
    ids=str,
)
def test_a_fault_that_there_is_not_is_refused(both: Both, fault: dict[str, Any]) -> None:
    reply = both.faults({"kind": "timeout"}, fault)
    assert reply.status == 400
    assert reply.body["error"]["next_step"]
    assert both.query().status == 200


def test_a_query_is_throttled_while_the_queue_is_full(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path / "workspace")
    side = "(range x from 1 to 200000 step 1 | extend k = 1)"
    try:
        with serve(app_over(workspace, longest_queue=1)) as url:
            both = Both(url)
            kql = f"{side} | join kind=inner {side} on k | count"
            replies: list[Reply] = []
            askers = [
                threading.Thread(target=lambda: replies.append(both.query(kql, prefer="wait=1"))) for _ in range(12)
            ]
            for asker in askers:
                asker.start()
            for asker in askers:
                asker.join()
            # Five run and one waits; whoever comes then is told at once.
            assert Counter(reply.status for reply in replies) == {504: 6, 429: 6}
            assert {reply.error[0] for reply in replies} == {"GatewayTimeout", "ThrottledError"}
            assert both.query().status == 200
    finally:
        workspace.close()
