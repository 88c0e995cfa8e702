"""`sentinel answer check` as a person uses it on the answer of another model."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.surfaces.cli import main

Run = Callable[..., tuple[int, str, str]]
RESULTS = {
    "results": [
        {
            "call_id": "c1",
            "tool": "query_incidents",
            "result": {
                "rows": [
                    {"number": 124, "title": "Ransomware and theft", "severity": "High", "status": "Active"},
                    {"number": 125, "title": "Port scan", "severity": "Low", "status": "New"},
                ],
                "coverage": {"rows_total": 2},
            },
        },
        {"call_id": "c2", "tool": "compute", "arguments": {"op": "count", "of": "c1", "where": "severity = High"}},
    ]
}


@pytest.fixture
def run(clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))

    def command(answer: str, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        code = main(["answer", "check", "--results", "results.json", "--answer", "-", *arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def test_an_answer_whose_values_stand_in_its_rows(run: Run) -> None:
    code, out, _ = run("Incident 124 is High and Active [c1.1]. My advice: isolate the host first.")
    assert code == 0
    first, second, summary = out.splitlines()
    assert first == "  compared      Incident 124 is High and Active. [c1.1]"
    assert second.split(maxsplit=2)[:2] == ["own", "words"]
    assert summary == "1 compared, 1 own words"


def test_values_that_stand_nowhere_and_a_cell_that_differs(run: Run) -> None:
    code, out, _ = run("Incident 125 is Low, with 7 alerts [c1.2].")
    assert code == 3
    assert out.startswith("! not found")
    code, out, _ = run("Incident 125 is High [c1.2].")
    assert code == 5
    assert out.startswith("✗ contradicted")
    assert "Low" in out


def test_json_for_programs(run: Run) -> None:
    code, out, _ = run("Incident 124 is High [c1.1]. One incident is High [c2].", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["answer"] == "Incident 124 is High. One incident is High."
    assert told["counts"]["values_found"] == 2
    assert told["cited_share"] == 1
    assert told["sentences"][0]["citations"] == [
        {"ref": "c1.1", "call_id": "c1", "tool": "query_incidents", "pointer": "/rows/0", "at": [20]}
    ]


def test_what_others_wrote_reaches_no_terminal(run: Run) -> None:
    _, out, _ = run("Incident 124 is \x1b[31mHigh\x1b[0m [c1.1].")
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no json", "is no JSON"),
        (b"[1]", "Entry 1 of `results`"),
        (b"\xff", "it is no UTF-8 text"),
        (None, "results.json cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(run: Run, tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "results.json"
    file.unlink() if content is None else file.write_bytes(content)
    code, _, err = run("Nothing.")
    assert code == 2
    assert words in err
