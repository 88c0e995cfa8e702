"""kill -9 of an ingest at 50 random moments, while two processes search its store; then what is left is looked at.

A moment is a random batch of the run and up to 50 ms after it, so that kills meet the embedding, a transaction and the
writing of vectors. Every ten kills the run goes on to its end, and the next ten begin with an empty store, or over a
store in which a third of the incidents changed and a tenth is gone. `testing.ingest_crash` says what must hold.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.support.ingest_crash import CrashTrial, Moment, crash_trial, searching

from bench.harness import write

ROUNDS, KILLS, COUNT, SEARCHERS = 5, 10, 1_500, 2
SEED = 20261128


def main() -> None:
    chosen = random.Random(SEED)
    trials: list[CrashTrial] = []
    searches, with_hits, failures = 0, 0, list[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(ROUNDS):
            store = Path(scratch) / f"{number // 2}" / "knowledge.db"
            generation = number % 2 + 1
            # Over a filled store there is less to do, and a kill must meet it.
            furthest, longest_s = (12, 0.05) if generation == 1 else (3, 0.01)
            moments = [Moment(chosen.randint(1, furthest), chosen.uniform(0.0, longest_s)) for _ in range(KILLS)]
            with searching(store, processes=SEARCHERS) as met:
                trials.append(crash_trial(store, count=COUNT, generation=generation, moments=moments))
            searches, with_hits = searches + met.searches, with_hits + met.with_hits
            failures += met.failures
            for violation in trials[-1].violations:
                print(f"round {number}: {violation}", file=sys.stderr, flush=True)
    violations = [violation for trial in trials for violation in trial.violations]
    write(
        "knowledge_crash",
        {
            "kills_of_a_running_ingest": sum(trial.kills for trial in trials),
            "incidents": COUNT,
            "documents_after_each_kill": [list(trial.after_kills) for trial in trials],
            "violations": violations,
            "texts_embedded_by_the_runs_that_ended": [trial.embedded_at_the_end for trial in trials],
            "distinct_texts": [trial.distinct for trial in trials],
            "searches_meanwhile": searches,
            "searches_with_hits": with_hits,
            "failures_of_searches": failures,
        },
        claim="After kill -9 of an ingest every document that the store holds is whole, once, and found by its words "
        "and by its own vector; the next run goes on and ends with every document of the source in its last version; "
        "two processes that search meanwhile meet no error.",
    )
    if violations or failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
