"""Does a call cost the same after many others? A session of 10 000 calls, and a journal of 1 000 000 records.

The direct call is measured beside each, so that what the machine does meanwhile shows in both. The history lies in one
file, which is the worst case: a running gateway begins a segment after 100 000 records.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import uvloop

from bench.gateway_processes import (
    ARGUMENTS,
    LEAN_EXECUTOR,
    TOOL,
    Gateway,
    executor,
    http_client,
    interceptor,
    p50_ms,
    straight,
    through,
    timed,
)
from bench.harness import write
from sentinel_rag.audit import CallIntended, ChainHead
from sentinel_rag.audit.chain import GENESIS, seal
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.gateway.store import new_audit_id, open_state

SESSION_CALLS, BLOCK = 10_000, 1_000
RECORDS, FILL_BATCH = 1_000_000, 20_000
ROUNDS, CALLS = 12, 200


async def long_session(executor_url: str, gateway: Gateway) -> dict[str, Any]:
    blocks: list[dict[str, float]] = []
    async with http_client() as client:
        direct, gated = straight(client, executor_url), through(client, gateway, "one-long-session")
        await timed(direct, 1, CALLS)
        for _ in range(SESSION_CALLS // BLOCK):
            before = gateway.cpu_seconds()
            seconds, _ = await timed(gated, 1, BLOCK)
            cpu = gateway.cpu_seconds() - before
            base, _ = await timed(direct, 1, CALLS)
            blocks.append(
                {
                    "p50_ms": p50_ms(seconds),
                    "direct_p50_ms": p50_ms(base),
                    "cpu_ms_a_call": round(cpu / BLOCK * 1e3, 3),
                    "resident_mib": round(gateway.resident_bytes() / 2**20, 1),
                }
            )
    return {"calls": SESSION_CALLS, "first_thousand": blocks[0], "second": blocks[1], "last_thousand": blocks[-1]}


def fill(folder: Path) -> None:
    """Write a chain of `RECORDS` intents as they are in a journal."""
    fields = CallIntended(
        audit_id="",
        key_id="agent",
        session_id="bench",
        tool=TOOL,
        requested_tool=TOOL,
        server="sentinel",
        effect="read",
        arguments=ARGUMENTS,
        arguments_sha256="ab" * 32,
        rule_id="query_incidents_any",
        label=TOP,
        context_before=TOP,
        context_after=TOP,
        policy_sha256="cd" * 32,
    ).fields()
    head = GENESIS

    def batch(connection: Connection) -> ChainHead:
        rows: list[tuple[int, str, str, bytes, bytes]] = []
        last = head
        for _ in range(FILL_BATCH):
            audit_id = new_audit_id()
            last, record = seal(
                last, {"at": "2026-11-01T00:00:00.000000Z", "kind": "intent", "audit_id": audit_id, **fields}
            )
            rows.append((last.seq, audit_id, "intent", record, last.digest))
        connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?)", rows)
        return last

    with open_state(folder, segment_records=10**9) as state:
        for _ in range(RECORDS // FILL_BATCH):
            head = state.database.run_now(batch)


async def beside(executor_url: str, short: Gateway, long: Gateway) -> dict[str, Any]:
    """Alternating blocks on a new journal, on the long one, and direct."""
    async with http_client() as client:
        calls = {
            "direct": straight(client, executor_url),
            "new_journal": through(client, short, "bench"),
            "long_journal": through(client, long, "bench"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        ratios: list[float] = []
        for call in calls.values():
            await timed(call, 1, CALLS)
        for _ in range(ROUNDS):
            for name, call in calls.items():
                seconds[name] += (await timed(call, 1, CALLS))[0]
            last = [statistics.median(seconds[name][-CALLS:]) for name in ("long_journal", "new_journal")]
            ratios.append(last[0] / last[1])
    return {
        "records": RECORDS,
        **{f"{name}_p50_ms": p50_ms(found) for name, found in seconds.items()},
        "long_to_new_ratio": round(statistics.median(ratios), 2),
    }


def main() -> None:
    with executor(LEAN_EXECUTOR) as url, tempfile.TemporaryDirectory() as scratch:
        with interceptor(url, Path(scratch) / "session") as gateway:
            session = uvloop.run(long_session(url, gateway))
        fill(Path(scratch) / "long")
        with interceptor(url, Path(scratch) / "new") as short, interceptor(url, Path(scratch) / "long") as long:
            journal = uvloop.run(beside(url, short, long))
    write(
        "flatness",
        {"session": session, "journal": journal, "load_average_1_min": round(os.getloadavg()[0], 1)},
        claim="The last thousand calls of a session of 10 000 cost what the second thousand did, in time and in "
        "memory, and a call is as fast on a journal of 1 000 000 records as on a new one.",
    )


if __name__ == "__main__":
    main()
