"""What the journal costs: an append alone and under load, opening it and checking it with a short and a long history.

Signed checkpoints are on, as they are in the product. The long history lies in one file, which is the worst case: a
running gateway begins a segment after 100 000 records.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.harness import write
from sentinel_rag.audit import CallIntended, CallOutcome, Database, Instance, Journal, JournalReader, Sealing
from sentinel_rag.audit.events import OutcomeStatus
from sentinel_rag.contracts.labels import BOTTOM, TOP

APPENDS = 20_000
SHORT, LONG = 1_000, 1_000_000


@contextmanager
def opened(folder: Path) -> Iterator[Journal]:
    with (
        Instance(folder / "instances") as instance,
        Database(folder / "journal.sqlite") as database,
        closing(
            Journal(database, membership=instance, sealing=Sealing.of_folder(folder), segment_records=10**9)
        ) as journal,
    ):
        yield journal


def intent() -> CallIntended:
    return CallIntended(
        audit_id=str(uuid.uuid4()),
        key_id="agent",
        session_id="bench",
        tool="query_incidents",
        requested_tool="query_incidents",
        server="sentinel",
        effect="read",
        arguments={"min_severity": "High", "time_window": "last_7d", "limit": 20},
        arguments_sha256="ab" * 32,
        rule_id="query_incidents_any",
        label=TOP,
        context_before=BOTTOM,
        context_after=TOP,
        policy_sha256="cd" * 32,
    )


async def append_pair(journal: Journal) -> None:
    """The two records of one call."""
    event = intent()
    await journal.append(event)
    await journal.append(CallOutcome(audit_id=event.audit_id, status=OutcomeStatus.SUCCESS, rows=3, duration_ms=1.5))


async def appends(journal: Journal, concurrency: int, records: int) -> dict[str, float]:
    """Microseconds of one append as its caller sees it, and of processor time; wall time of the whole."""
    seconds: list[float] = []
    left = iter(range(records // 2))

    async def worker() -> None:
        for _ in left:
            start = time.perf_counter()
            await append_pair(journal)
            seconds.append((time.perf_counter() - start) / 2)

    cpu, wall = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    ordered = sorted(seconds)
    return {
        "p50_us": round(statistics.median(ordered) * 1e6, 1),
        "p99_us": round(ordered[int(len(ordered) * 0.99)] * 1e6, 1),
        "p999_us": round(ordered[int(len(ordered) * 0.999)] * 1e6, 1),
        "cpu_us": round(cpu / records * 1e6, 1),
        "wall_us": round(wall / records * 1e6, 1),
    }


def with_history(folder: Path, records: int) -> dict[str, Any]:
    """Opening, appending to and checking a journal that holds `records` records."""
    with opened(folder) as journal:

        async def fill() -> None:
            for _ in range(max(1, records // 1_000)):
                await asyncio.gather(*(append_pair(journal) for _ in range(500)))

        asyncio.run(fill())
    opening: list[float] = []
    for _ in range(9):
        start = time.perf_counter()
        with opened(folder):
            opening.append(time.perf_counter() - start)
    with opened(folder) as journal:
        alone = asyncio.run(appends(journal, 1, 4_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = JournalReader(folder / "journal.sqlite").verify()
    seconds = time.perf_counter() - start
    assert found.intact, found.problem
    return {
        "records": found.records,
        "checkpoints_checked": found.checkpoints,
        "open_ms": round(statistics.median(opening) * 1e3, 2),
        "append": alone,
        "verify_s": round(seconds, 2),
        "verify_records_per_second": round(found.records / seconds),
        "verify_more_memory_mib": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, 1),
        "bytes_per_record": round((folder / "journal.sqlite").stat().st_size / found.records),
    }


def rotated(folder: Path) -> dict[str, Any]:
    """Moving the long history into a segment while a caller appends."""
    with opened(folder) as journal:

        async def both() -> tuple[float, dict[str, float]]:
            start = time.perf_counter()
            moving = asyncio.get_running_loop().run_in_executor(None, journal.archive.rotate)
            meanwhile = await appends(journal, 1, 4_000)
            await moving
            return time.perf_counter() - start, meanwhile

        seconds, meanwhile = asyncio.run(both())
    start = time.perf_counter()
    found = JournalReader(folder / "journal.sqlite").verify()
    assert found.intact, found.problem
    return {
        "rotate_s": round(seconds, 2),
        "append_meanwhile": meanwhile,
        "verify_s": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        with opened(Path(scratch) / "a") as journal:
            asyncio.run(appends(journal, 1, 2_000))
            measured["append"] = {
                f"{concurrency}_at_once": asyncio.run(appends(journal, concurrency, APPENDS)) for concurrency in (1, 16)
            }
        for records in (SHORT, LONG):
            measured[f"history_of_{records}"] = with_history(Path(scratch) / str(records), records)
        measured["rotation_of_the_long_one"] = rotated(Path(scratch) / str(LONG))
    write(
        "journal",
        measured,
        claim="With signed checkpoints on: an append costs well under 100 us and no other thread; opening the journal, "
        "appending to it and the memory to check it do not grow with its history.",
    )


if __name__ == "__main__":
    main()
