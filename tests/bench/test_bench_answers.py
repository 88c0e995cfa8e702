"""The benchmark of answers: sets as others write them, and figures of a set's first sight that stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.answer_statements import read_statements

from bench import bench_answers

RESULTS = {
    'A:["query_incidents", {"limit": 50}]': {
        "rows": [
            {"number": 124, "title": {"$quote": "Ransomware and theft"}, "severity": "High", "status": "Active"},
            {"number": 125, "title": {"$quote": "Port scan"}, "severity": "Low", "status": "New"},
        ],
        "coverage": {"rows_total": 2},
    },
    "B:anything": {"tool": "query_alerts", "args": {}, "rows": [{"alert_id": "a1", "severity": "Medium"}]},
}
CALLS = [["query_incidents", {"limit": 50}]]
LINES: list[Any] = [
    {"id": "t1", "set": "ours", "estate": "A", "calls": CALLS, "truth": "true", "lang": "en",
     "text": "124 is High [c1.1]. Two are there [c1].\n\n| nr | severity |\n|---|---|\n| 125 | Low [c1.2] |"},
    {"id": "f1", "set": "ours", "estate": "A", "calls": CALLS, "truth": False, "sort": "wrong value", "lang": "de",
     "text": "124 ist High [c1.1]. 125 ist High [c1.2].", "plain": "125 ist High."},
    {"id": "f2", "set": "ours", "estate": "A", "calls": CALLS, "truth": "false", "sort": "wrong verb",
     "compute": [{"op": "count", "of": "c1", "where": "severity = High"}], "text": "1 High incident was closed [c2]."},
    {"id": "b1", "set": "ours", "estate": "B", "truth": "true", "text": "a1 is Medium [c1.1]."},
]  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(*lines: Any, results: Any = RESULTS) -> Any:
        file, told = tmp_path / "some.jsonl", tmp_path / "results.json"
        file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        told.write_text(json.dumps(results))
        return read_statements(file, told)

    return write


def test_true_statements_count_by_sentence_and_false_ones_once_by_what_speaks_against_them(written: Any) -> None:
    read = written(*LINES)
    assert read.faults == []
    measured = bench_answers.measure(read)["ours"]
    assert sum(measured.counts["true"].values()) == 4  # the head of the table states nothing
    assert measured.counts["true"].keys() <= {"values_found", "source_given"}
    assert sum(measured.counts["false"].values()) == 2
    assert measured.by_sort["wrong value"] == {"contradicted": 1}
    assert set(measured.to_dict()["by_language"]) == {"true en", "false de", "false en"}
    assert read.conversations == 3


def test_unusable_lines_are_told_by_their_number_and_left_out(written: Any) -> None:
    good = LINES[0]
    read = written(
        good,
        "{no json",
        "",
        {**good, "id": "no truth", "truth": "maybe"},
        {**good, "id": "no text", "text": " "},
        {**good, "id": "no such call", "calls": [["query_alerts", {}]]},
        {**good, "id": "no such estate", "estate": "Z"},
        {**good, "id": "computes nothing", "compute": [{"op": "count", "of": "c7"}]},
        [1, 2],
        good,
    )
    assert [fault.split(":")[1] for fault in read.faults] == ["2", "4", "5", "6", "7", "8", "9", "10"]
    assert [statement.name for statement in read.statements] == ["t1"]


def test_an_exported_conversation_is_a_file_of_results(written: Any) -> None:
    exported = {"results": [{"call_id": "c1", "tool": "query_incidents", "result": RESULTS[next(iter(RESULTS))]}]}
    line = {"truth": "true", "text": "124 is High [c1.1]."}
    for results in (exported, {"A": exported}):
        read = written(line, results=results)
        assert (read.faults, bench_answers.measure(read)["some"].counts["true"]) == ([], {"values_found": 1})


@pytest.mark.requirement("GRND-3")
def test_the_first_figures_of_a_set_stay(written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_answers, "HISTORY", tmp_path / "history.jsonl")
    first = bench_answers.measure(written(*LINES))["ours"].to_dict()
    assert bench_answers.record("ours", "hash", first, mode="cited") == "first sight"
    assert bench_answers.record("ours", "hash", first, mode="cited") == "seen"
    assert len(bench_answers.history()) == 1  # the same figures again say nothing new
    later = {**first, "false": {**first["false"], "n": 99}}
    assert bench_answers.record("ours", "other hash", later, mode="cited") == "seen"
    assert bench_answers.record("ours", "hash", first, mode="uncited") == "first sight"
    assert bench_answers.first_sights("cited")["ours"]["false"]["n"] == 2
    assert bench_answers.together(bench_answers.first_sights("cited"))["true"]["n"] == 4


def test_the_invented_estate_is_checked_sentence_by_sentence() -> None:
    assert bench_answers.speed((60,))["check_s_by_sentences"].keys() == {"60"}
