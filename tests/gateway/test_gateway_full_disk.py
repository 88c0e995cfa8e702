"""Where a call cannot be recorded, none passes: the caller is told so, and when to ask again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway


def until_full(gateway: RunningGateway) -> HttpAnswer:
    """The first answer that is not a result, on a disk that takes a few records more."""
    assert gateway.call("query_incidents", {"time_window": "last_7d"}).status == 200  # tools are pinned by now
    most = pages(gateway) + 4
    gateway.state.database.run_now(lambda c: c.execute(f"PRAGMA max_page_count = {most}").fetchone())
    for _ in range(200):
        answer = gateway.call("query_incidents", {"time_window": "last_7d"})
        if answer.status != 200:
            return answer
    pytest.fail("the disk never filled")


def pages(gateway: RunningGateway) -> int:
    return int(gateway.state.database.run_now(lambda c: c.execute("PRAGMA page_count").fetchone()[0]))


@pytest.mark.requirement("AUD-1")
def test_a_full_disk_refuses_calls_until_there_is_room(gateway: RunningGateway) -> None:
    answer = until_full(gateway)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert answer.body == {
        "detail": "The gateway cannot record calls now, so it lets nothing through. Try again in a moment.",
        "status": "error",
        "reason": "overloaded",
    }
    for _ in range(10):  # a short intent may still fit where an outcome does not
        gateway.call("query_incidents", {"time_window": "last_7d"})
    seen = len(gateway.executor.calls)
    assert gateway.call("query_incidents", {"time_window": "last_7d"}).status == 503
    assert len(gateway.executor.calls) == seen, "what cannot be recorded does not run"

    gateway.state.database.run_now(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert gateway.call("query_incidents", {"time_window": "last_7d"}).status == 200, "it goes on by itself"


def test_a_file_that_another_program_holds_is_waited_for_and_then_told(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sentinel_rag.storage.group_commit.BUSY_MILLISECONDS", 50)
    with closing(sqlite3.connect(gateway.state.database.place, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = gateway.call("query_incidents", {"time_window": "last_7d"})
        other.execute("ROLLBACK")
    assert (answer.status, answer.body["reason"]) == (503, "overloaded")
    assert gateway.call("query_incidents", {"time_window": "last_7d"}).status == 200
