"""kill -9 of a whole gateway at 200 random moments under load, a quarter of them with two on one folder.

What is left is checked as `testing.crash_findings` says: records, labels, hidden values, approvals, open calls, chain.

The state folder is kept from one trial to the next, so each start also recovers what the kill before it left.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from pathlib import Path

from tests.support.crash_trial import CrashTrial, crash_executor, crash_trial

from bench.harness import write

TRIALS, LARGEST, TRIALS_ON_A_FOLDER = 200, 500, 10
SEED = 20261128


def main() -> None:
    chosen = random.Random(SEED)
    trials: list[CrashTrial] = []
    with tempfile.TemporaryDirectory() as scratch, crash_executor() as executor:
        for number in range(TRIALS):
            folder = Path(scratch) / str(number // TRIALS_ON_A_FOLDER)
            processes = 2 if number % 4 == 3 else 1
            trials.append(crash_trial(executor, folder, kill_after=chosen.randint(1, LARGEST), processes=processes))
            if trials[-1].violations:
                print(f"trial {number}: {trials[-1].violations}", file=sys.stderr, flush=True)
    unsealed = [trial.unsealed for trial in trials]
    write(
        "crash",
        {
            "kills": len(trials),
            "kills_of_two_interceptors_on_one_folder": sum(number % 4 == 3 for number in range(TRIALS)),
            "violations": [violation for trial in trials for violation in trial.violations],
            "acknowledged_calls": sum(trial.acknowledged for trial in trials),
            "records_checked": sum(trial.records for trial in trials),
            "hidden_values_looked_up": sum(trial.handles for trial in trials),
            "approvals_used_once": sum(trial.used for trial in trials),
            "calls_cut_and_closed_as_unknown": sum(trial.interrupted for trial in trials),
            "kills_that_cut_a_call": sum(trial.interrupted > 0 for trial in trials),
            "records_not_sealed_at_the_kill": {
                "median": statistics.median(unsealed),
                "largest": max(unsealed),
            },
        },
        claim="After kill -9 under load no acknowledged record is lost, no label of a session or a store is lower than "
        "one that was acknowledged, the hidden values of acknowledged results are there and those of closed sessions "
        "are not, no approval lets two calls through and none that was given is lost, every call that was cut has the "
        "outcome unknown, nothing reached a tool server without its intent, and verify passes, before and after the "
        "next start.",
    )
    if any(trial.violations for trial in trials):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
