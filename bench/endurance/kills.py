"""kill -9 of gateways under the whole of their load, one day after another on one state folder.

Each leg is a crash trial (see `testing.crash_trial`), every third with two gateways; between legs days pass, in the
middle of a leg the clock goes back, and old segments are pruned as an operator's job would.
"""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.crash_process import shift_clock, shifted_clock
from tests.support.crash_trial import CrashTrial, crash_executor, crash_trial

from sentinel_rag.gateway.store import open_state

NIGHT = timedelta(days=30, hours=7).total_seconds()
BACK = timedelta(hours=2).total_seconds()


def kills(calls: int, legs: int) -> dict[str, Any]:
    """So many calls in so many legs, each of which ends with SIGKILL."""
    trials: list[CrashTrial] = []
    pruned = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name, crash_executor() as executor:
        folder, clock_file = Path(name) / "gateway", Path(name) / "clock"
        for leg in range(legs):
            shift_clock(clock_file, leg * NIGHT)
            trials.append(
                crash_trial(
                    executor,
                    folder,
                    kill_after=max(1, calls // legs),
                    processes=2 if leg % 3 == 2 else 1,
                    clock_file=clock_file,
                    halfway=lambda leg=leg: shift_clock(clock_file, leg * NIGHT - BACK),
                )
            )
            pruned += _prune(folder, clock_file)
    return {
        "calls": sum(trial.acknowledged for trial in trials),
        "sessions": sum(trial.sessions for trial in trials),
        "kills": legs,
        "days_that_passed": round(legs * NIGHT / 86_400),
        "seconds": round(time.monotonic() - started, 1),
        "calls_cut_and_closed_as_unknown": sum(trial.interrupted for trial in trials),
        "approvals_used_once": sum(trial.used for trial in trials),
        "hidden_values_looked_up": sum(trial.handles for trial in trials),
        "records_pruned": pruned,
        "violations": [violation for trial in trials for violation in trial.violations],
    }


def _prune(folder: Path, clock_file: Path) -> int:
    """Close the segment of the leg and remove those of earlier days; how many records went."""
    clock = shifted_clock(clock_file)
    with open_state(folder, clock=clock) as state:
        state.journal.archive.rotate()
        gone = state.journal.archive.prune(clock() - timedelta(days=1))
    return sum(segment.last - segment.first + 1 for segment in gone)
