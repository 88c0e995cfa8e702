"""One gateway under many calls of many sessions: does the last tenth cost what an early one did?

The direct call is measured beside each tenth, so that what the machine does meanwhile shows in both. The journal begins
new segments as it does in the product. At the end every call has its intent and its outcome, and the journal verifies.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import uvloop

from bench.gateway_processes import (
    Call,
    Gateway,
    executor,
    http_client,
    interceptor,
    p50_ms,
    straight,
    through,
    timed,
)
from sentinel_rag.audit import JournalReader
from sentinel_rag.audit.files import open_snapshot
from sentinel_rag.audit.journal import SEGMENT_RECORDS
from sentinel_rag.gateway.store.state import JOURNAL_FILE

CONCURRENCY = 8
TENTHS = 10
DIRECT_CALLS = 400
FORGETFUL_EXECUTOR = """
import sys
from collections import deque
from sentinel_rag_testing.fake_tool_server import FakeToolServer
executor = FakeToolServer(token="bench")
executor.calls = deque(maxlen=1)
with executor.running():
    print(executor.url, flush=True)
    sys.stdin.read()
"""
"""The echo of the other benchmarks, which would remember a million calls."""


def steady(calls: int, sessions: int) -> dict[str, Any]:
    """So many calls, over so many sessions in turn."""
    with tempfile.TemporaryDirectory() as name, executor(FORGETFUL_EXECUTOR) as url:
        folder = Path(name)
        started = time.monotonic()
        with interceptor(url, folder, segment_records=SEGMENT_RECORDS) as gateway:
            tenths = uvloop.run(_tenths(url, gateway, max(1, calls // TENTHS), sessions))
        seconds = time.monotonic() - started
        made = TENTHS * max(1, calls // TENTHS)
        violations = _lost(folder / JOURNAL_FILE, made)
        found = JournalReader(folder / JOURNAL_FILE).verify()
        if not found.intact or found.unsealed:
            violations.append(f"the journal does not verify: {found.problem or f'{found.unsealed} without a seal'}")
    second, last = tenths[1], tenths[-1]
    return {
        "calls": made,
        "sessions": sessions,
        "seconds": round(seconds, 1),
        "records": found.head.seq,
        "violations": violations,
        "second_tenth": second,
        "last_tenth": last,
        "last_over_second": {
            "p50_over_direct": round(last["p50_over_direct"] / second["p50_over_direct"], 2),
            "cpu_a_call": round(last["cpu_ms_a_call"] / second["cpu_ms_a_call"], 2),
            "memory": round(last["resident_mib"] / second["resident_mib"], 3),
        },
        "resident_mib": [tenth["resident_mib"] for tenth in tenths],
        "open_files": [tenth["open_files"] for tenth in tenths],
    }


async def _tenths(executor_url: str, gateway: Gateway, calls: int, sessions: int) -> list[dict[str, Any]]:
    async with http_client() as client:
        direct = straight(client, executor_url)
        of_session = [through(client, gateway, f"endurance-{number}") for number in range(sessions)]
        gated = _in_turn(of_session)
        await timed(direct, CONCURRENCY, DIRECT_CALLS)
        found: list[dict[str, Any]] = []
        for _ in range(TENTHS):
            before = gateway.cpu_seconds()
            seconds, rate = await timed(gated, CONCURRENCY, calls)
            cpu = gateway.cpu_seconds() - before
            base, _ = await timed(direct, CONCURRENCY, DIRECT_CALLS)
            found.append(
                {
                    "p50_ms": p50_ms(seconds),
                    "p99_ms": round(sorted(seconds)[len(seconds) * 99 // 100] * 1e3, 3),
                    "direct_p50_ms": p50_ms(base),
                    "p50_over_direct": round(p50_ms(seconds) / p50_ms(base), 2),
                    "calls_per_second": round(rate, 1),
                    "cpu_ms_a_call": round(cpu / calls * 1e3, 3),
                    "resident_mib": round(gateway.resident_bytes() / 2**20, 1),
                    "open_files": len(os.listdir(f"/proc/{gateway.process.pid}/fd")),
                }
            )
            await asyncio.sleep(0)
        return found


def _in_turn(calls: list[Call]) -> Call:
    """One call that is made as each of `calls` in turn."""
    order = cycle(calls)

    async def call() -> None:
        await next(order)()

    return call


def _lost(journal: Path, made: int) -> list[str]:
    """What is missing of so many calls that were all answered."""
    kinds: Counter[str] = Counter()
    with open_snapshot(journal) as snapshot:
        for part in snapshot.parts:
            rows = snapshot.connection(part).execute(
                "SELECT kind, count(*) FROM journal WHERE seq BETWEEN ? AND ? GROUP BY kind", [part.first, part.last]
            )
            for kind, count in rows:
                kinds[kind] += count
    return [f"{made} calls were answered, and {kinds[kind]} have an {kind}" for kind in ("intent", "outcome")
            if kinds[kind] != made]  # fmt: skip
