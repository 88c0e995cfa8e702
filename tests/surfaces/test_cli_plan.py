"""`sentinel plan` and `sentinel ask --plan` tell how questions are read, and run nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("SURF-1")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_question_is_told_in_lines_and_nothing_is_started(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--plan", "open incidents that frobnicate"]) == 0
    shown = capsys.readouterr().out
    assert "read       open: status:Open" in shown
    assert "unread     frobnicate" in shown
    assert "asks back" in shown
    assert main(["ask", "--plan", "frobnicate the open incidents"]) == 0
    shown = capsys.readouterr().out  # an order that nothing knows narrows no rows, and is still told
    assert "unread     frobnicate" in shown
    assert "query_incidents status=Open" in shown
    assert not (home / "home").exists()


def test_each_question_of_a_file_is_one_line_of_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = home / "questions.jsonl"
    file.write_text('"wie viele offene Vorfälle?"\n\n{"q": "and the closed ones?", "after": ["open incidents"]}\n')
    assert main(["plan", str(file), "--json"]) == 0
    german, follow_up = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert german["language"] == "de"
    assert german["calls"] == [{"tool": "query_incidents", "arguments": {"status": "Open"}}]
    assert follow_up["calls"] == [{"tool": "query_incidents", "arguments": {"status": "Closed"}}]


@pytest.mark.parametrize("text", ["{", '{"question": "x"}', "[1]"])
def test_a_line_that_holds_no_question_is_named(home: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    file = home / "questions.jsonl"
    file.write_text(f'"open incidents"\n{text}\n')
    assert main(["plan", str(file)]) == 2
    assert "Line 2" in capsys.readouterr().err
