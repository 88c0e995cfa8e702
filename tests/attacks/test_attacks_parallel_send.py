"""Attacker controls: the agent, which sends many calls at once, reads and sends mixed, in one conversation or in two.

Wanted: a send that is decided before the label of the read has risen, and goes out when the read is known. Whatever the
interleaving, no send has its intent after that of a read, what the tool server got is exactly what has an intent, and
what is sent after the answer is denied and on record.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labelled_tools import journal_of, labelled_gateway

from sentinel_rag_testing.fake_tool_server import Waits
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

PARALLEL = 50


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        yield gateway


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("apart", [False, True], ids=["in one conversation", "in two"])
@pytest.mark.parametrize("seed", range(4))
def test_of_fifty_parallel_calls_no_send_follows_a_read(
    labelled: RunningGateway, tmp_path: Path, seed: int, apart: bool
) -> None:
    chosen = random.Random(seed)
    kinds = ["read_secret"] * 4 + ["read_public"] * 6 + ["search"] * (PARALLEL - 10)
    chosen.shuffle(kinds)
    session, start, answered = labelled.open_session(), threading.Barrier(PARALLEL), threading.Event()
    sending = labelled.open_session() if apart else session

    def work(number: int) -> tuple[str, bool, int]:
        tool = kinds[number]
        start.wait()
        known = answered.is_set()
        arguments = {"query": f"q{number}"} if tool == "search" else {"marker": f"m{number}"}
        status = labelled.call(tool, arguments, session_id=sending if tool == "search" else session).status
        if tool == "read_secret" and status == 200:
            answered.set()
        return tool, known, status

    with ThreadPoolExecutor(PARALLEL) as pool:
        ends = list(pool.map(work, range(PARALLEL)))
    late = [labelled.call("search", {"query": f"late{number}"}, session_id=sending) for number in range(3)]
    assert {(answer.status, answer.body["reason"]) for answer in late} == {(403, "sink_label")}
    assert {status for tool, known, status in ends if tool == "search" and known} <= {403}
    assert {status for tool, _, status in ends if tool != "search"} == {200}

    records = journal_of(tmp_path / "state")
    intents = [record for record in records if record["kind"] == "intent"]
    tools = [record["tool"] for record in intents]
    assert "search" not in tools[tools.index("read_secret") :]
    let_through = sorted(record["arguments"]["query"] for record in intents if record["tool"] == "search")
    assert sorted(call.arguments["query"] for call in labelled.executor.calls if call.tool == "search") == let_through
    assert len(let_through) == sum(status == 200 for tool, _, status in ends if tool == "search")
    refused = [record for record in records if record["kind"] == "refusal"]
    assert len(refused) == 40 - len(let_through) + 3
    assert {record["reason"] for record in refused} == {"sink_label"}


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize("apart", [False, True], ids=["in one conversation", "in two"])
def test_a_send_beside_a_read_that_has_not_been_answered_yet_is_denied(labelled: RunningGateway, apart: bool) -> None:
    release = threading.Event()
    labelled.executor.on("read_secret", Waits(release, {"secret": 1}))
    session = labelled.open_session()
    sending = labelled.open_session() if apart else session
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(labelled.call, "read_secret", {}, session_id=session)
        try:
            assert labelled.executor.arrived.acquire(timeout=WAIT_S)
            answer = labelled.call("search", {"query": "x"}, session_id=sending)
            assert (answer.status, answer.body["reason"]) == (403, "sink_label")
            assert labelled.last_record()["audit_id"] == answer.body["audit_id"]
        finally:
            release.set()
        assert reading.result().status == 200
    assert [call.tool for call in labelled.executor.calls] == ["read_secret"]
