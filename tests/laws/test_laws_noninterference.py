"""The guarantee: what a sink receives does not depend on data above what it accepts, unless the journal names an
exception. 2,000 traces here, 10,000 in `make bench`; see `sentinel_rag.testing.two_worlds` for what one is."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from sentinel_rag.interceptor.store import open_state
from sentinel_rag.testing.two_worlds import TraceVerdict, run_trace

TRACES = 2_000
PARTS = 4


def traces(folder: Path, seeds: range, *, sinks_accept_all: bool = False) -> list[TraceVerdict]:
    async def run() -> list[TraceVerdict]:
        with open_state(folder) as state:
            return [await run_trace(state, seed, sinks_accept_all=sinks_accept_all) for seed in seeds]

    return anyio.run(run)


@pytest.mark.slow
@pytest.mark.requirement("TAINT-1")
@pytest.mark.requirement("TAINT-2")
@pytest.mark.requirement("TAINT-3")
@pytest.mark.requirement("TAINT-4")
@pytest.mark.requirement("TAINT-5")
@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_sink_learns_what_it_must_not(tmp_path: Path, part: int) -> None:
    seeds = range(part * TRACES // PARTS, (part + 1) * TRACES // PARTS)
    found = traces(tmp_path, seeds)
    assert [verdict.leak for verdict in found if verdict.leak and not verdict.excused] == []
    # The traces say something: most name no exception, in most a call reaches a guarded place, in many one is denied.
    plain = [verdict for verdict in found if not verdict.excused]
    assert len(plain) > len(found) / 2
    assert sum(verdict.reached > 0 for verdict in plain) > len(plain) / 3
    assert sum(verdict.blocked > 0 for verdict in plain) > len(plain) / 3


def test_without_ceilings_the_same_traces_leak(tmp_path: Path) -> None:
    found = traces(tmp_path, range(100), sinks_accept_all=True)
    assert sum(bool(verdict.leak) and not verdict.excused for verdict in found) > 30
