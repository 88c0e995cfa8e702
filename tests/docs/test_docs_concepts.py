"""docs/concepts.md: each box prints what the page says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from page_boxes import Step, matches, steps

from sentinel_rag.surfaces.cli import main

STEPS = list(steps((Path(__file__).resolve().parents[2] / "docs" / "concepts.md").read_text()))


@pytest.mark.parametrize("step", STEPS, ids=[step.typed.strip() for step in STEPS])
def test_each_box_prints_what_the_page_says(
    step: Step,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(step.typed)[1:]) == step.code
    printed = capsys.readouterr().out
    assert step.printed is not None
    assert matches(printed, step.printed), printed
