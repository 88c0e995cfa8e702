"""10 000 generated traces of a hijacked agent in two worlds: does a sink ever learn what it must not?

`sentinel_rag_testing.two_worlds` says what a trace is; seed N gives the same trace everywhere. Controls run part of
them with one mechanism switched off each, so that "no leak" is not the silence of traces that say nothing: the traces
that speak of that mechanism have to leak without it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio

from bench.harness import write
from sentinel_rag.gateway.gate.call import Call
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import AgentMemory, Policy, Remembers
from sentinel_rag.gateway.store import sessions
from sentinel_rag_testing.two_worlds import Covers, RunTrace, TraceVerdict, open_traces

FIRST_SEED, TRACES = 10_000, 10_000
CONTROL = 0.1
"""Of so many traces a control runs this part."""
PART = 100
PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Control:
    """The traces without one mechanism. `covers` is what a trace must tell about to count; any, where it is None."""

    covers: Covers | None
    without: Callable[[], AbstractContextManager[object]] = nullcontext
    sinks_accept_all: bool = False
    memory: timedelta | None = None
    share: float = CONTROL
    """Of all traces the part that is run: all, where few traces tell about the mechanism."""

    @contextmanager
    def open(self, folder: Path) -> Iterator[RunTrace]:
        memory = {} if self.memory is None else {"memory": self.memory}
        with self.without(), open_traces(folder, sinks_accept_all=self.sinks_accept_all, **memory) as run:
            yield run


def _attested(memory: AgentMemory) -> Callable[[], AbstractContextManager[object]]:
    """An operator's word about an agent that remembers all the same."""
    return lambda: patch.object(Policy, "remembers", lambda policy, key_id, key_name: Remembers(memory))


GUARDED = Control(None)
CONTROLS = {
    "without_ceilings": Control(None, sinks_accept_all=True),
    "without_the_memory_of_conversations": Control(Covers.CONVERSATIONS, _attested(AgentMemory.CONVERSATION)),
    "without_the_memory_of_other_persons": Control(Covers.PERSONS, _attested(AgentMemory.PERSON)),
    "with_lists_that_nobody_accepted": Control(
        Covers.LISTS, lambda: patch.object(Pins, "vouches", lambda pins, tool: True)
    ),
    "with_a_horizon_of_a_day": Control(Covers.DAYS, memory=timedelta(days=1)),
    "without_what_is_handed_on": Control(
        Covers.HANDED_ON,
        lambda: patch.object(sessions, "remembered_since", lambda connection, key_id, since: since),
        share=1,
    ),
    "without_the_use_by_refused_calls": Control(
        Covers.HANDED_ON, lambda: patch.object(Call, "use", lambda call, now: None), share=1
    ),
}


def run_part(control: Control, seeds: Sequence[int]) -> list[tuple[int, TraceVerdict]]:
    async def run() -> list[tuple[int, TraceVerdict]]:
        with tempfile.TemporaryDirectory() as folder, control.open(Path(folder)) as trace:
            return [(seed, await trace(seed)) for seed in seeds]

    return anyio.run(run)


def run_named(name: str, seeds: Sequence[int]) -> list[tuple[int, TraceVerdict]]:
    return run_part(CONTROLS.get(name, GUARDED), seeds)


def run_all(pool: ProcessPoolExecutor, traces: int, name: str = "") -> list[tuple[int, TraceVerdict]]:
    starts = range(FIRST_SEED, FIRST_SEED + traces, PART)
    parts = pool.map(run_named, [name] * len(starts), (range(start, start + PART) for start in starts))
    return [each for part in parts for each in part]


def counts(found: Iterable[tuple[int, TraceVerdict]]) -> dict[str, Any]:
    """`plain` traces name no exception; of those: in how many a call reached a guarded place, in how many one was
    denied. An exception excuses its own part of its own call, so leaks are counted in all traces."""
    found = list(found)
    plain = [(seed, verdict) for seed, verdict in found if not verdict.excused]
    leaks = [seed for seed, verdict in found if verdict.leak]
    return {
        "traces": len(found),
        "plain": len(plain),
        "excused": len(found) - len(plain),
        "reached": sum(verdict.reached > 0 for _, verdict in plain),
        "blocked": sum(verdict.blocked > 0 for _, verdict in plain),
        "covers": {each.name.lower(): sum(each in verdict.covers for _, verdict in found) for each in Covers},
        "leaks": len(leaks),
        "first_seeds_that_leaked": leaks[:10],
    }


def speaking(control: Control, found: Iterable[tuple[int, TraceVerdict]]) -> list[tuple[int, TraceVerdict]]:
    """The traces that tell about what the control is without."""
    return [(seed, verdict) for seed, verdict in found if control.covers is None or control.covers in verdict.covers]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench noninterference")
    parser.add_argument("--traces", type=int, default=TRACES, help="so many, a tenth of them without each mechanism")
    traces = parser.parse_args().traces
    started = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES) as pool:
        guarded = counts(run_all(pool, traces))
        controls = {
            name: counts(speaking(control, run_all(pool, round(traces * control.share), name)))
            for name, control in CONTROLS.items()
        }
    write(
        "noninterference",
        {
            "seeds": [FIRST_SEED, FIRST_SEED + traces],
            "guarded": guarded,
            "controls": controls,
            "seconds": round(time.perf_counter() - started),
        },
        claim="The calls that reach a sink must not differ between two worlds that differ only above what the sink "
        "accepts, but for the part of a call that an exception names; leaks counts the traces in which they do. "
        "The traces go over several conversations of one person and of two, over what servers of others say of their "
        "tools, and over days up to and beyond what the agent remembers. Without each of the mechanisms the same agent "
        "leaks, so the traces can tell.",
    )
    if guarded["leaks"] or not all(control["leaks"] for control in controls.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
