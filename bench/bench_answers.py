"""What the check of answers says of true and of false statements, with citations and without, and how fast it is.

    python -m bench answers                               the sets in bench/answers_sets, and the speed
    python -m bench answers FILE --results FILE           statements of your own (the form: bench/answer_statements.py)
    ... --auto-only                                       as of a writer who cites nothing
    ... --show false-passed                               each lie whose values were found; or true-wrong, ...

A true statement counts sentence by sentence. A false one counts once, by the state that says most against it. What is
measured of a set for the first time stands in results/answers_history.jsonl for good; later figures of it are "seen",
since somebody may have changed the check for what they showed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.answer_statements import Statement, StatementFile, read_statements
from bench.harness import RESULTS, write
from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.results import Result, Results, Row
from sentinel_rag.contracts.evidence import Sentence, SentenceState

SETS = Path(__file__).parent / "answers_sets"
HISTORY = RESULTS / "answers_history.jsonl"
STATES = tuple(state.value for state in SentenceState)
_AGAINST = (
    SentenceState.CONTRADICTED,
    SentenceState.NOT_FOUND,
    SentenceState.SOURCE_GIVEN,
    SentenceState.OWN_WORDS,
    SentenceState.VALUES_FOUND,
)
SIZES = (1_000, 3_000, 10_000, 30_000)
EVIDENCE_ROWS = 1_000


@dataclass(slots=True)
class Measured:
    """The states of one set's statements, by truth and by (sort, language)."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_sort: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_lang: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cited_by: Counter[str] = field(default_factory=Counter)
    passed: list[str] = field(default_factory=list)

    def take(self, statement: Statement, sentences: Sequence[Sentence]) -> None:
        truth = "true" if statement.truth else "false"
        if statement.truth:
            states = [sentence.state for sentence in sentences]
        else:
            states = [min((sentence.state for sentence in sentences), key=_AGAINST.index)] if sentences else []
        for state in states:
            self.counts[truth][state.value] += 1
            self.by_lang[f"{truth} {statement.lang}"][state.value] += 1
            if not statement.truth:
                self.by_sort[statement.sort][state.value] += 1
        self.cited_by.update(f"{truth} {sentence.cited_by.value}" for sentence in sentences)
        if not statement.truth and SentenceState.VALUES_FOUND in states:
            self.passed.append(statement.name)

    def to_dict(self) -> dict[str, Any]:
        return {
            **{truth: _shares(self.counts[truth]) for truth in ("true", "false") if self.counts[truth]},
            "false_by_sort": {sort: _shares(counts) for sort, counts in sorted(self.by_sort.items())},
            "by_language": {name: _shares(counts) for name, counts in sorted(self.by_lang.items())},
            "cited_by": dict(sorted(self.cited_by.items())),
            "false_with_values_found": self.passed,
        }


def _shares(counts: Counter[str]) -> dict[str, Any]:
    total = sum(counts.values())
    return {
        "n": total,
        **{state: counts[state] for state in STATES},
        **{f"{state}_percent": round(100 * counts[state] / total, 1) for state in STATES},
    }


def judged(read: StatementFile, statement: Statement, *, auto_only: bool) -> list[Sentence]:
    """The checked sentences that state something: headings and the heads of tables are none."""
    evidence = read.evidence(statement)
    checked = check_answer(statement.text, evidence)
    if auto_only:
        checked = check_answer(statement.plain or checked.text, evidence)
    heads = (UnitKind.HEAD, UnitKind.HEADING)
    pairs = zip(checked.sentences, checked.written, strict=True)
    return [sentence for sentence, unit in pairs if unit.kind not in heads]


def measure(read: StatementFile, *, auto_only: bool = False, show: str = "") -> dict[str, Measured]:
    """By set."""
    found: dict[str, Measured] = {}
    for name, statements in read.sets().items():
        measured = found[name] = Measured()
        for statement in statements:
            sentences = judged(read, statement, auto_only=auto_only)
            measured.take(statement, sentences)
            if show:
                _show(statement, sentences, show)
    return found


def _show(statement: Statement, sentences: Sequence[Sentence], wanted: str) -> None:
    wrong = (SentenceState.NOT_FOUND, SentenceState.CONTRADICTED)
    worst = min((sentence.state for sentence in sentences), key=_AGAINST.index, default=SentenceState.OWN_WORDS)
    for sentence in sentences:
        state = sentence.state if statement.truth else worst
        kind = "wrong" if state in wrong else "passed" if state is SentenceState.VALUES_FOUND else "soft"
        if wanted in ("all", f"{'true' if statement.truth else 'false'}-{kind}"):
            refs = " ".join(citation.ref for citation in sentence.citations[:5])
            print(
                f"{statement.name} [{statement.sort or statement.lang}] {sentence.state.value} "
                f"({sentence.cited_by.value}) {sentence.text[:200]!r} [{refs}] {sentence.reason}"
            )


# -- first sight -----------------------------------------------------------------------------------------------------
def history() -> list[dict[str, Any]]:
    """All entries, oldest first."""
    return [json.loads(line) for line in HISTORY.read_text().splitlines()] if HISTORY.exists() else []


def record(name: str, digest: str, figures: Mapping[str, Any], *, mode: str) -> str:
    """Add what was measured of a set to the history; `first sight`, or `seen` if the set was measured before."""
    before = [entry for entry in history() if (entry["set"], entry["mode"]) == (name, mode)]
    sight = "seen" if before else "first sight"
    entry = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "set": name,
        "mode": mode,
        "sha256": digest,
        "sight": sight,
        "figures": {truth: figures[truth] for truth in ("true", "false") if truth in figures}
        | {"false_by_sort": figures["false_by_sort"]},
    }
    if not before or before[-1]["figures"] != entry["figures"] or before[-1]["sha256"] != digest:
        HISTORY.parent.mkdir(exist_ok=True)
        with HISTORY.open("a") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return sight


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=SETS.parent, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src")
    return git("rev-parse", "--short=12", "HEAD") + (" and changes" if changed else "")


def first_sights(mode: str) -> dict[str, Any]:
    """By set, the figures of its first entry."""
    found: dict[str, Any] = {}
    for entry in history():
        if entry["mode"] == mode:
            when = {"measured_at": entry["measured_at"], "commit": entry["commit"]}
            found.setdefault(entry["set"], {**when, **entry["figures"]})
    return found


# -- speed -----------------------------------------------------------------------------------------------------------
_TITLES = ("Unfamiliar sign-in properties", "Suspicious PowerShell command line", "Ransomware behavior was blocked")
_SEVERITIES = ("High", "Medium", "Low")


def made_results(rows: int) -> Results:
    """Alerts of an invented estate, no two with the same time, host or account."""
    made = tuple(
        Row(
            f"c1.{n + 1}",
            "alert",
            f"/rows/{n}",
            {
                "alert_id": f"a{n:05}",
                "name": _TITLES[n % 3],
                "severity": _SEVERITIES[n % 3],
                "start_time": f"2026-11-{1 + n // 1440 % 28:02}T{n // 60 % 24:02}:{n % 60:02}:00Z",
                "compromised_entity": f"wks-{n:04}.woodgrove.example",
                "account": f"account.{n:04}@woodgrove.example",
                "source_address": f"10.{n // 250 % 250}.{n % 250}.7",
                "sent_bytes": 1_000 + 37 * n,
                "description": f"Sensor {n} noticed what the rule of page {n % 90} describes, twice within the hour.",
            },
            frozenset({"description"}),
        )
        for n in range(rows)
    )
    results = Results()
    coverage = {"rows_total": rows, "rows_returned": rows}
    results.add(Result(ref="c1", tool="query_alerts", arguments={}, rows=made, coverage=coverage))
    return results


def made_sentences(count: int, rows: int) -> Iterator[str]:
    """Cited, uncited, wrong and plain sentences in turn."""
    for n in range(count):
        row = n % rows
        kinds = (
            f"On wks-{row:04} {_TITLES[row % 3]} was seen with severity {_SEVERITIES[row % 3]} [c1.{row + 1}].",
            f"The alert of account.{row:04}@woodgrove.example is {_SEVERITIES[row % 3]}.",
            f"It sent {1_000 + 37 * row} bytes at {row // 60 % 24:02}:{row % 60:02} UTC [c1.{row + 1}].",
            f"Of wks-{row:04} the severity is {_SEVERITIES[(row + 1) % 3]} [c1.{row + 1}].",
            "My judgement: isolate the host before anything else.",
        )
        yield kinds[n % 5] + ("\n\n" if n % 12 == 11 else " ")


def speed(sizes: Iterable[int] = SIZES) -> dict[str, Any]:
    """Processor seconds: to read rows, and to check answers of so many sentences over them."""
    results = made_results(EVIDENCE_ROWS)
    begin = time.process_time()
    evidence = ReadResults(results)
    read = time.process_time() - begin
    check_answer("".join(made_sentences(50, EVIDENCE_ROWS)), evidence)
    spent: dict[str, float] = {}
    for size in sizes:
        text = "".join(made_sentences(size, EVIDENCE_ROWS))
        begin = time.process_time()
        checked = check_answer(text, evidence)
        spent[str(size)] = round(time.process_time() - begin, 3)
        assert len(checked.sentences) == size, (len(checked.sentences), size)
    each = [seconds / int(size) for size, seconds in spent.items()]
    return {
        "evidence_rows": EVIDENCE_ROWS,
        "read_evidence_s": round(read, 3),
        "check_s_by_sentences": spent,
        "check_s_per_1000_sentences": round(max(each) * 1_000, 3),
        "largest_per_sentence_over_smallest_size": round(each[-1] / each[0], 2),
    }


def statements_speed(files: Sequence[StatementFile]) -> dict[str, Any]:
    """Processor seconds of the statements as they are."""
    spent, sentences = 0.0, 0
    for read in files:
        for statement in read.statements:
            evidence = read.evidence(statement)
            begin = time.process_time()
            checked = check_answer(statement.text, evidence)
            spent += time.process_time() - begin
            sentences += len(checked.sentences)
    return {
        "sentences": sentences,
        "check_s_per_1000_sentences": round(spent / max(sentences, 1) * 1_000, 3),
    }


# -- the command -----------------------------------------------------------------------------------------------------
def _own_files() -> list[tuple[Path, Path]]:
    """Each set of ours with its results: `NAME.results.json`, or the one that serves all."""
    shared = SETS / "results.json"
    return [
        (path, own if (own := path.with_suffix(".results.json")).exists() else shared)
        for path in sorted(SETS.glob("*.jsonl"))
    ]


def _told(found: Mapping[str, Measured]) -> None:
    for name, measured in found.items():
        for truth, counts in measured.counts.items():
            total = sum(counts.values())
            told = "  ".join(f"{state} {counts[state]} ({100 * counts[state] / total:.1f} %)" for state in STATES)
            print(f"{name:16} {truth:5} n={total:<5} {told}")
        for sort, counts in sorted(measured.by_sort.items()):
            total = sum(counts.values())
            told = "  ".join(f"{state} {100 * counts[state] / total:.0f} %" for state in STATES)
            print(f"{'':16}   {sort:24} n={total:<5} {told}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench answers", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="statements of your own, not written to the results")
    parser.add_argument("--results", type=Path, help="the results that they cite")
    parser.add_argument("--auto-only", action="store_true", help="check the statements without their citations")
    parser.add_argument("--show", default="", help="true-wrong, true-soft, false-passed, false-soft, false-wrong, all")
    parser.add_argument("--record", action="store_true", help="write a file of your own to the history too")
    parser.add_argument("--no-speed", action="store_true", help="leave out what takes a minute")
    options = parser.parse_args()
    if options.file is not None and options.results is None:
        parser.error("statements of your own need --results FILE")
    pairs = _own_files() if options.file is None else [(options.file, options.results)]
    try:
        files = [read_statements(*pair) for pair in pairs]
    except (OSError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    faults = [fault for read in files for fault in read.faults]
    print("".join(f"unusable: {fault}\n" for fault in faults), end="", file=sys.stderr)
    kept = options.file is None or options.record
    modes = {"uncited": True} if options.auto_only else {"cited": False}
    if options.file is None and not options.show:
        modes = {"cited": False, "uncited": True}
    measured: dict[str, Any] = {}
    for mode, auto_only in modes.items():
        for read in files:
            found = measure(read, auto_only=auto_only, show=options.show)
            print(f"-- {mode}")
            _told(found)
            for name, each in found.items():
                figures = each.to_dict()
                sight = record(name, read.hashes[name], figures, mode=mode) if kept and not options.show else "not kept"
                now = {"sha256": read.hashes[name], "sight": sight, **figures}
                measured.setdefault(mode, {})[name] = now
    if files and files[0].statements:
        measured["statements_speed"] = statements_speed(files)
    if not options.no_speed:
        measured["speed"] = speed()
    print(json.dumps({name: measured[name] for name in ("statements_speed", "speed") if name in measured}, indent=1))
    if options.file is None and not options.show and not options.no_speed:
        measured["first_sight"] = first_sights("cited")
        measured["first_sight_uncited"] = first_sights("uncited")
        measured["together"] = together(measured["first_sight"])
        write("answers", measured, claim=CLAIM, show=False)
    return 2 if faults else 0


CLAIM = (
    "At first sight no true sentence is contradicted; of false ones at most 8 % of natural lies and 35 % of those that "
    "were built to pass have their values found."
)


def together(sets: Mapping[str, Any]) -> dict[str, Any]:
    """The first-sight figures of all sets in one, and of false statements by sort."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    sorts: dict[str, Counter[str]] = defaultdict(Counter)
    for figures in sets.values():
        for truth in ("true", "false"):
            counts[truth].update({state: figures.get(truth, {}).get(state, 0) for state in STATES})
        for sort, each in figures["false_by_sort"].items():
            sorts[sort].update({state: each[state] for state in STATES})
    return {
        **{truth: _shares(each) for truth, each in counts.items() if sum(each.values())},
        "false_by_sort": {sort: _shares(each) for sort, each in sorted(sorts.items())},
    }


if __name__ == "__main__":
    sys.exit(main())
