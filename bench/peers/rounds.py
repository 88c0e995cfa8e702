"""Interleaved blocks of calls, and what they come to: each round runs every way once, in turn, so that a busy machine
slows all of them; ratios are formed within a round, and their spread over the rounds is told.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.gateway_processes import Call

CALL_SECONDS = 30.0
ROUNDS = 7
BLOCK_SECONDS, BLOCK_CALLS = 1.0, 400
WARM_UP_SECONDS = 1.5


@dataclass(slots=True)
class Block:
    """One block of calls: seconds of each that succeeded, the first failure, calls a second."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    elapsed: float = 0.0

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.elapsed


@dataclass(slots=True)
class Way:
    """One way to make the call. `cpu` reads the processor seconds of what stands between caller and tool server."""

    call: Call
    cpu: Callable[[], float] = lambda: 0.0
    blocks: list[Block] = field(default_factory=list)
    cpu_seconds: float = 0.0


class NoAnswers(Exception):
    """A whole block went without one good answer; the message is the first failure."""


async def run_block(call: Call, concurrency: int, *, seconds: float = BLOCK_SECONDS, calls: int = BLOCK_CALLS) -> Block:
    """Calls by `concurrency` callers, until there are `calls` or `seconds` have passed and each caller has had one
    answer. Raises NoAnswers."""
    block = Block()
    left = iter(range(max(calls, concurrency)))
    start = time.perf_counter()

    async def caller() -> None:
        for _ in left:
            began = time.perf_counter()
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    await call()
            except Exception as error:  # whatever a peer's client raises is a call that failed
                block.failures.append(f"{type(error).__name__}: {error}"[:300])
            else:
                block.seconds.append(time.perf_counter() - began)
            if time.perf_counter() - start > seconds:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(caller())
    block.elapsed = time.perf_counter() - start
    if not block.seconds:
        raise NoAnswers(block.failures[0])
    return block


async def interleave(ways: Mapping[str, Way], concurrency: int, *, rounds: int = ROUNDS) -> None:
    """Fill the blocks of each way. The order turns by one with each round, so that none always follows the same."""
    for way in ways.values():
        way.blocks, way.cpu_seconds = [], 0.0
        await run_block(way.call, concurrency, seconds=WARM_UP_SECONDS)
    names = list(ways)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            way = ways[name]
            before = way.cpu()
            way.blocks.append(await run_block(way.call, concurrency))
            way.cpu_seconds += way.cpu() - before


def cpu_a_call(way: Way) -> float:
    """Seconds of processor time between caller and tool server, which a busy machine changes least."""
    return way.cpu_seconds / sum(len(block.seconds) for block in way.blocks)


def summary(way: Way) -> dict[str, Any]:
    """Latency over all calls of a way; its rate is the median of the rounds."""
    ordered = sorted(second for block in way.blocks for second in block.seconds)
    failures = [failure for block in way.blocks for failure in block.failures]
    told: dict[str, Any] = {
        "p50_ms": round(statistics.median(ordered) * 1e3, 3),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1e3, 3),
        "calls_per_second": round(statistics.median(block.rate for block in way.blocks), 1),
        "cpu_ms_a_call": round(cpu_a_call(way) * 1e3, 3),
        "calls": len(ordered),
    }
    if failures:
        told |= {"failed_calls": len(failures), "first_failure": failures[0]}
    return told


def spread(values: list[float], digits: int = 2) -> dict[str, float]:
    """Median, least and most over the rounds."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }


def comparison(direct: Way, ours: Way, peer: Way) -> dict[str, Any]:
    """What each adds to the direct call, and ours over the peer's."""
    rounds = list(zip(direct.blocks, ours.blocks, peer.blocks, strict=True))
    added = {
        "ours": [(our.p50 - base.p50) * 1e3 for base, our, _ in rounds],
        "peer": [(their.p50 - base.p50) * 1e3 for base, _, their in rounds],
    }
    # A peer's own cost may drown in the noise of a round; then only the medians of all rounds can be compared.
    pairs = [(our, their) for our, their in zip(*added.values(), strict=True) if their > 0]
    medians = [statistics.median(values) for values in added.values()]
    ratios = [our / their for our, their in pairs] if len(pairs) == len(rounds) else [medians[0] / medians[1]]
    return {
        "added_p50_ms": {name: spread(values, 3) for name, values in added.items()},
        "added_p50_ours_over_peer": spread(ratios, 3),
        "throughput_ours_over_peer": spread([our.rate / their.rate for _, our, their in rounds]),
        "cpu_peer_over_ours": round(cpu_a_call(peer) / max(cpu_a_call(ours), 1e-6), 1),
    }
