"""10 000 generated traces of a hijacked agent in two worlds: does a sink ever learn what it must not?

`sentinel_rag_testing.two_worlds` says what a trace is; seed N gives the same trace everywhere. The control runs part of
them with sinks that accept everything, so that "no leak" is not the silence of traces that say nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import anyio

from bench.harness import write
from sentinel_rag.gateway.store import open_state
from sentinel_rag_testing.two_worlds import TraceVerdict, run_trace

FIRST_SEED, TRACES, CONTROL_TRACES = 10_000, 10_000, 1_000
PART = 100
PROCESSES = 2


def run_part(seeds: range, sinks_accept_all: bool) -> list[tuple[int, TraceVerdict]]:
    async def run() -> list[tuple[int, TraceVerdict]]:
        with tempfile.TemporaryDirectory() as folder, open_state(Path(folder)) as state:
            return [(seed, await run_trace(state, seed, sinks_accept_all=sinks_accept_all)) for seed in seeds]

    return anyio.run(run)


def run_all(pool: ProcessPoolExecutor, traces: int, *, sinks_accept_all: bool = False) -> dict[str, Any]:
    starts = range(FIRST_SEED, FIRST_SEED + traces, PART)
    parts = pool.map(run_part, (range(start, start + PART) for start in starts), [sinks_accept_all] * len(starts))
    return counts(verdict for part in parts for verdict in part)


def counts(verdicts: Iterable[tuple[int, TraceVerdict]]) -> dict[str, Any]:
    """`plain` traces name no exception; of those: in how many a call reached a guarded place, in how many one was
    denied. An exception excuses its own part of its own call, so leaks are counted in all traces."""
    found = list(verdicts)
    plain = [(seed, verdict) for seed, verdict in found if not verdict.excused]
    leaks = [seed for seed, verdict in found if verdict.leak]
    return {
        "traces": len(found),
        "plain": len(plain),
        "excused": len(found) - len(plain),
        "reached": sum(verdict.reached > 0 for _, verdict in plain),
        "blocked": sum(verdict.blocked > 0 for _, verdict in plain),
        "leaks": len(leaks),
        "first_seeds_that_leaked": leaks[:10],
    }


def main() -> None:
    started = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES) as pool:
        guarded = run_all(pool, TRACES)
        control = run_all(pool, CONTROL_TRACES, sinks_accept_all=True)
    write(
        "noninterference",
        {
            "seeds": [FIRST_SEED, FIRST_SEED + TRACES],
            "guarded": guarded,
            "control_without_ceilings": control,
            "seconds": round(time.perf_counter() - started),
        },
        claim="The calls that reach a sink must not differ between two worlds that differ only above what the sink "
        "accepts, but for the part of a call that an exception names; leaks counts the traces in which they do. "
        "Without ceilings the same agent leaks, so the traces can tell.",
    )
    if guarded["leaks"] or not control["leaks"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
