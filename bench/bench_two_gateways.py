"""Two gateways with one state in PostgreSQL under load, one of them killed (kill -9) at a random moment while the other
serves on; every fourth time both are killed.

What is left is checked as `testing.crash_findings` says: records, labels, hidden values, approvals, open calls, chain.
The state is kept from one trial to the next, so each start also recovers what the kill before it left.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.support.crash_trial import CrashTrial, crash_executor, crash_trial
from tests.support.postgres_server import running_postgres

from bench.harness import write
from sentinel_rag.audit import PostgresPlace

TRIALS, LARGEST = 40, 200
SEED = 20261129


def main() -> None:
    chosen = random.Random(SEED)
    trials: list[CrashTrial] = []
    both = 0
    with tempfile.TemporaryDirectory() as scratch, running_postgres(durable=True) as server, crash_executor() as tools:
        place = PostgresPlace(server.url, "two_gateways", Path(scratch))
        for number in range(TRIALS):
            survivors = 0 if number % 4 == 3 else 1
            both += not survivors
            trials.append(
                crash_trial(
                    tools,
                    Path(scratch),
                    kill_after=chosen.randint(1, LARGEST),
                    processes=2,
                    survivors=survivors,
                    postgres=place,
                )
            )
            if trials[-1].violations:
                print(f"trial {number}: {trials[-1].violations}", file=sys.stderr, flush=True)
    write(
        "two_gateways",
        {
            "trials": len(trials),
            "trials_in_which_both_were_killed": both,
            "violations": [violation for trial in trials for violation in trial.violations],
            "acknowledged_calls": sum(trial.acknowledged for trial in trials),
            "records_in_one_chain": trials[-1].records,
            "hidden_values_looked_up": sum(trial.handles for trial in trials),
            "approvals_used_once": sum(trial.used for trial in trials),
            "calls_cut_and_closed_as_unknown": sum(trial.interrupted for trial in trials),
            "trials_that_cut_a_call": sum(trial.interrupted > 0 for trial in trials),
        },
        claim="Two gateways share their state in PostgreSQL and one is killed with kill -9 under load: no acknowledged "
        "record is lost, no call is decided by less than what any gateway had revealed in its session before, no "
        "approval lets two calls through and none that was given is lost, every call that was cut has the outcome "
        "unknown, and both write one unbroken chain.",
    )
    if any(trial.violations for trial in trials):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
