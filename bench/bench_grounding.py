"""How many planted faults of a lying model the check of answers catches, and how many true sentences it touches.

A fault counts as caught if its false words are not in the answer any more (or its sentence was left out), a true
sentence as touched if it was changed or left out. `--seed N` chooses others. Told by fault kind, by family of wordings,
and apart for wordings that were held out while the recognisers were written.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.grounding_estates import real, sample, scripted
from bench.harness import write
from sentinel_rag.agent.grounding import EvidenceIndex, ground
from sentinel_rag.testing.lying_model import Estate, LyingModel
from sentinel_rag.testing.lying_model.measuring import Tally, measure

SEED = 20261128
AT_FIRST_SIGHT = {
    "held_out_wordings": {"faults_caught": "1500/1511", "true_sentences_untouched": "1048/1072"},
    "late_wordings": {"faults_caught": "1130/1227", "true_sentences_untouched": "776/842"},
    "last_wordings": {"faults_caught": "665/718", "true_sentences_untouched": "455/469"},
}
"""What was measured on wordings before anything was changed for what they showed; kept, for it cannot be again."""


def latency(estate: Estate) -> dict[str, float]:
    """Milliseconds of processor time to take in a turn's 100 rows and to check an answer of 2 000 characters."""
    text = "\n\n".join(answer.text for answer in LyingModel(estate, 1).answers("INCIDENT", ""))[:2_000]
    index = EvidenceIndex(estate.zone)
    index.add(estate.incidents)
    taken, checked = [], []
    for _ in range(40):
        start = time.process_time()
        index.add(estate.alerts)
        between = time.process_time()
        ground(text, index, question="Show me the incidents")
        checked.append((time.process_time() - between) * 1e3)
        taken.append((between - start) * 1e3)
    both = [one + other for one, other in zip(taken, checked, strict=True)]
    return {
        "rows": len(estate.alerts.rows),
        "results_kept": len(index.runs),
        "take_in_p50_ms": round(statistics.median(taken), 2),
        "check_p50_ms": round(statistics.median(checked), 2),
        "turn_p50_ms": round(statistics.median(both), 2),
        "turn_max_ms": round(max(both), 2),
    }


def report(measured: dict[str, Tally]) -> dict[str, Any]:
    faults, truths = measured["faults"], measured["truths"]
    found: dict[str, Any] = {}
    for name, tally in (("faults_caught", faults), ("true_sentences_untouched", truths)):
        found[name] = {
            "of": sum(tally.total.values()),
            "percent": round(tally.percent, 2),
            "by_kind": {kind: tally.share(kind) for kind in sorted(tally.total)},
        }
    found["answers_with_faults"] = sum(faults.total.values())
    return found


DATA = Path(__file__).parents[2] / "shared" / "data" / "secrl"


def estates_of(names: Sequence[str]) -> list[Estate]:
    """The estates by name; `real` is left out where its rows are not on this machine."""
    found: list[Estate] = []
    if "scripted" in names:
        found += [scripted("UTC"), scripted("Europe/Berlin")]
    if "sample" in names:
        found.append(sample("America/New_York"))
    if "real" in names and DATA.is_dir():
        found.append(real("Europe/Berlin", DATA))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench grounding", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print what went wrong instead of writing the result")
    parser.add_argument("--held-out", action="store_true", help="with --show: the held-out wordings")
    parser.add_argument("--book", default="first", choices=("first", "late", "last"), help="with --show: the wordings")
    parser.add_argument("--family", default="", help="with --show: only this family or fault")
    parser.add_argument("--estates", default="scripted,sample,real")
    options = parser.parse_args()
    estates = estates_of(options.estates.split(","))
    if options.show:
        _show(
            measure(
                estates,
                options.seed,
                rounds=options.rounds,
                held_out=options.held_out if options.book == "first" else None,
                book=options.book,
            ),
            options.family,
        )
        return
    write(
        "grounding",
        {
            "seed": options.seed,
            "seen_wordings": report(measure(estates, options.seed, rounds=options.rounds, held_out=False)),
            "held_out_wordings": report(measure(estates, options.seed, rounds=options.rounds, held_out=True)),
            "late_wordings": report(measure(estates, options.seed, rounds=options.rounds, book="late")),
            "last_wordings": report(measure(estates, options.seed, rounds=options.rounds, book="last")),
            "at_first_sight": AT_FIRST_SIGHT,
            "one_turn": latency(estates[-1]),
        },
        claim="At least 99 % of planted faults are caught and at most 1 % of true sentences are touched.",
    )


def _show(measured: dict[str, Tally], family: str) -> None:
    seen: dict[str, int] = defaultdict(int)
    for kind, tally in measured.items():
        for name, answer, grounded in tally.wrong:
            if family and family not in (answer.family, answer.fault):
                continue
            key = f"{kind} {answer.family} {answer.fault}"
            seen[key] += 1
            if seen[key] <= 6:
                print(f"--- {key} [{name}] false={answer.false!r} true={answer.true!r}")
                print(answer.text)
                if kind == "truths":
                    for change in (*grounded.removals, *grounded.repairs):
                        print("   ", change)
    for kind, tally in measured.items():
        print(
            kind,
            sum(tally.right.values()),
            "/",
            sum(tally.total.values()),
            {name: tally.share(name) for name in sorted(tally.total)},
        )


if __name__ == "__main__":
    main()
