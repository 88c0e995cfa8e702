"""Exactly once, whoever races: threads of one process, and processes that share the file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from approval_desk import Clock, Desk, open_desk, the_call
from race_consumers import let_through
from tests.support import fork_server

from sentinel_rag.audit import JournalPlace
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import ApprovalState, ApprovalVerdict, Decider, DecisionRefused
from waiting import WAIT_S

RACERS = 20


def approved(desk: Desk) -> str:
    async def run() -> str:
        approval_id = await desk.ask(*the_call())
        assert approval_id is not None
        await desk.store.decide(approval_id, ApprovalVerdict.APPROVE, Decider("k-ana"))
        return approval_id

    return asyncio.run(run())


@pytest.mark.requirement("APPR-2")
def test_of_twenty_threads_one_is_let_through(desk: Desk) -> None:
    for _ in range(10):
        approval_id = approved(desk)
        start = threading.Barrier(RACERS)

        def race(start: threading.Barrier = start, approval_id: str = approval_id) -> bool:
            start.wait()
            return asyncio.run(let_through(desk, approval_id))

        with ThreadPoolExecutor(RACERS) as pool:
            results = [future.result() for future in [pool.submit(race) for _ in range(RACERS)]]
        assert sum(results) == 1


@pytest.mark.requirement("APPR-2")
def test_of_three_processes_one_is_let_through(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    script = str(Path(__file__).with_name("race_consumers.py"))
    with open_desk(path, Clock()) as desk, ExitStack() as stack:
        approval_id = approved(desk)
        racers = [
            stack.enter_context(
                fork_server.Process(
                    [sys.executable, script, str(path), approval_id, str(RACERS)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(3)
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        counts = [int(racer.communicate(timeout=WAIT_S)[0]) for racer in racers]
        assert sorted(counts) == [0, 0, 1]


def test_of_twenty_verdicts_one_counts_and_each_other_is_told_so(desk: Desk) -> None:
    async def run() -> tuple[list[object], str]:
        approval_id = await desk.ask(*the_call())
        assert approval_id is not None
        verdicts = [ApprovalVerdict.APPROVE, ApprovalVerdict.DENY] * (RACERS // 2)
        return await asyncio.gather(
            *(desk.store.decide(approval_id, verdict, Decider(f"k-{n}")) for n, verdict in enumerate(verdicts)),
            return_exceptions=True,
        ), approval_id

    results, approval_id = asyncio.run(run())
    refused = [each for each in results if isinstance(each, DecisionRefused)]
    assert len(refused) == RACERS - 1
    assert {each.reason for each in refused} == {Reason.APPROVAL_DECIDED}
    decisions = [record for record in desk.records() if record["kind"] == "approval_decided"]
    assert len(decisions) == 1
    found = asyncio.run(desk.store.find(approval_id))
    assert found is not None
    assert found.ruling is not None
    assert (found.state, found.ruling.by) == (ApprovalState(decisions[0]["decision"]), decisions[0]["key_id"])


def test_of_twenty_equal_questions_one_is_asked(place: JournalPlace) -> None:
    clock = Clock()
    with open_desk(place, clock) as one, open_desk(place, clock) as other:

        async def run() -> set[str | None]:
            asked = [desk.ask(*the_call()) for desk in (one, other) for _ in range(RACERS // 2)]
            return set(await asyncio.gather(*asked))

        ids = asyncio.run(run())
        assert len(ids) == 1
        assert None not in ids
        assert [record["kind"] for record in one.records()] == ["approval_asked"]
