"""How many planted faults of a lying model the check of answers catches, and how many true sentences it touches.

A fault counts as caught if its false words are not in the answer any more (or its sentence was left out), a true
sentence as touched if it was changed or left out. `--seed N` chooses others. Told by fault kind, by family of wordings,
and apart for wordings that were held out while the recognisers were written.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.grounding_estates import real, sample, scripted
from bench.harness import write
from bench.lying_model import FAMILIES, FAULTS, Answer, Estate, Liar
from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, Grounded, ground
from sentinel_rag.agent.grounding.markdown_text import pieces_of

SEED = 20261128


@dataclass(slots=True)
class Tally:
    """Counts of one class of answers, with the answers that went wrong."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, Answer, Grounded]] = field(default_factory=list)

    def share(self, name: str) -> str:
        return f"{self.right[name]}/{self.total[name]}"


def answers(estate: Estate, seed: int, *, rounds: int) -> Iterator[Answer]:
    """True and lying answers over an estate."""
    for round_ in range(rounds):
        liar = Liar(estate, seed + round_)
        for family in FAMILIES:
            yield from liar.answers(family, "")
            for fault in FAULTS:
                yield from liar.answers(family, fault)
        yield from liar.negations(lie=False)
        yield from liar.negations(lie=True)
        yield from liar.fillers()


_EITHER_SIDE = ("wrong_incident", "wrong_number", "swapped_account")
"""Faults that tie a right value to a wrong thing: putting the value right makes the sentence as true."""


def caught(answer: Answer, grounded: Grounded) -> bool:
    """True if the piece that holds the false words did not stay as it was."""
    if answer.fault in _EITHER_SIDE:
        return grounded.touched
    false = answer.false.lower()
    planted = [piece.text for piece in pieces_of(answer.text) if false in piece.text.lower()]
    kept = Counter(piece.text for piece in pieces_of(grounded.text))
    return bool(planted) and any(kept[text] < planted.count(text) for text in planted)


def measure(estates: Sequence[Estate], seed: int, *, rounds: int, held_out: bool | None = None) -> dict[str, Tally]:
    """`faults` and `truths`, each by kind; `held_out` chooses wordings."""
    faults, truths = Tally(), Tally()
    for estate in estates:
        index = EvidenceIndex(estate.zone)
        for run in estate.runs:
            index.add(run)
        for answer in answers(estate, seed, rounds=rounds):
            if held_out is not None and answer.held_out is not held_out:
                continue
            grounded = ground(answer.text, index, question=answer.question)
            if answer.fault:
                faults.total[answer.fault] += 1
                if caught(answer, grounded):
                    faults.right[answer.fault] += 1
                else:
                    faults.wrong.append((estate.name, answer, grounded))
            else:
                count = len(pieces_of(answer.text))
                changed = len(grounded.removals) + len(grounded.repairs)
                truths.total[answer.family] += count
                truths.right[answer.family] += count - min(changed, count)
                if changed:
                    truths.wrong.append((estate.name, answer, grounded))
    return {"faults": faults, "truths": truths}


def latency(estate: Estate) -> dict[str, float]:
    """Milliseconds to take in a turn's results and check its answer."""
    liar = Liar(estate, 1)
    text = "\n\n".join(answer.text for answer in liar.answers("INCIDENT", ""))
    times = []
    for _ in range(40):
        start = time.perf_counter()
        index = EvidenceIndex(estate.zone)
        index.add(estate.incidents)
        ground(text[:2_000], index, question="Show me the incidents")
        times.append((time.perf_counter() - start) * 1e3)
    return {
        "rows": len(estate.incidents.rows),
        "p50_ms": round(statistics.median(times), 2),
        "max_ms": round(max(times), 2),
    }


def report(measured: dict[str, Tally]) -> dict[str, Any]:
    faults, truths = measured["faults"], measured["truths"]
    found: dict[str, Any] = {}
    for name, tally in (("faults_caught", faults), ("true_sentences_untouched", truths)):
        total, right = sum(tally.total.values()), sum(tally.right.values())
        found[name] = {
            "of": total,
            "percent": round(100 * right / max(total, 1), 2),
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
    parser.add_argument("--family", default="", help="with --show: only this family or fault")
    parser.add_argument("--estates", default="scripted,sample,real")
    options = parser.parse_args()
    estates = estates_of(options.estates.split(","))
    if options.show:
        _show(measure(estates, options.seed, rounds=options.rounds, held_out=options.held_out), options.family)
        return
    write(
        "grounding",
        {
            "seed": options.seed,
            "seen_wordings": report(measure(estates, options.seed, rounds=options.rounds, held_out=False)),
            "held_out_wordings": report(measure(estates, options.seed, rounds=options.rounds, held_out=True)),
            "one_turn": latency(estates[0]),
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
                print(f"--- {key} [{name}] false={answer.false!r} true={answer.seen!r}")
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


assert REMOVED

if __name__ == "__main__":
    main()
