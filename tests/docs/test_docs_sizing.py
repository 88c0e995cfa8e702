"""The page on sizing is what its command writes, of figures that were measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bench.report.page import RESULTS
from bench.report.results import NoSuchFigure
from bench.report.sizing import SIZING, sizing

pytestmark = pytest.mark.requirement("OPS-5")


def test_the_page_is_what_the_command_writes() -> None:
    assert SIZING.read_text() == sizing(), "run `python -m bench report`"


def test_other_figures_make_another_page_and_none_is_made_up(tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(RESULTS, results)
    measured = json.loads((results / "deployment.json").read_text())
    for zone in measured["measured"]["zones"].values():
        zone["cpu_ms_a_question"] = 250.0
    (results / "deployment.json").write_text(json.dumps(measured))
    assert "| 500 | 8.3 | 8.33 |" in sizing(results), "8.3 questions a second at 4 x 250 ms"
    del measured["measured"]["zones"]["web"]["memory_mib"]
    (results / "deployment.json").write_text(json.dumps(measured))
    with pytest.raises(NoSuchFigure):
        sizing(results)
