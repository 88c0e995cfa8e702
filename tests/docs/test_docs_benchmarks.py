"""The page of benchmarks is what its command writes, and every number that a page claims leads to a measurement."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from bench.report import PAGE, page
from bench.report.page import RESULTS, ROOT, WEAKNESSES, captions, weaknesses
from bench.report.results import NoSuchFigure, Result

MACHINE = {"cores": 2, "memory_gib": 4.0, "system": "Linux x86_64", "python": "3.11.7", "packages": {"duckdb": "2.0.1"}}


def wrote(folder: Path, name: str, measured: dict[str, Any], **more: Any) -> Result:
    document = {
        "benchmark": name,
        "claim": "it holds",
        "measured_at": "2026-11-28T09:30:00+00:00",
        "machine": MACHINE,
        "measured": measured,
        **more,
    }
    (folder / f"{name}.json").write_text(json.dumps(document))
    return Result.read(folder / f"{name}.json")


def test_the_page_is_what_the_command_writes() -> None:
    assert PAGE.read_text() == page(), "run `python -m bench report`"


def test_each_result_stands_on_the_page_with_its_claim_and_its_command() -> None:
    written = PAGE.read_text()
    for path in RESULTS.glob("*.json"):
        result = Result.read(path)
        assert f'<a id="{path.stem}"></a>' in written
        assert f"[{path.name}](../bench/results/{path.name})" in written
        assert result.claim[1:60] in written


def test_each_figure_of_a_caption_is_in_its_result() -> None:
    for name, caption in captions().items():
        if (RESULTS / f"{name}.json").exists():
            result = Result.read(RESULTS / f"{name}.json")
            missing = {path.split("/")[0] for _, path, _ in caption.figures} - set(result.measured)
            assert missing <= {"all_targets"}, f"{name}: {missing}"


def test_each_link_to_a_benchmark_leads_somewhere() -> None:
    anchors = set(re.findall(r'<a id="([a-z0-9_]+)">', PAGE.read_text()))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        assert set(re.findall(r"benchmarks\.md#([A-Za-z0-9_-]+)", path.read_text())) <= anchors, path.name
    assert "benchmarks.md#" in (ROOT / "README.md").read_text()


def test_a_result_that_nobody_captioned_is_shown_all_the_same(tmp_path: Path) -> None:
    wrote(tmp_path, "strange", {"a": {"b|c": 1234, "rows": [1, 2]}, "ratio": 0.123456})
    wrote(tmp_path, "told", {"x": 1}, figures={"attacks that worked": "0 of 929"}, group="security")
    written = page(tmp_path)
    assert "| a, b\\|c | 1,234 |\n| ratio | 0.123 |" in written
    security = written.partition("## Security")[2].partition("## Correctness")[0]
    assert "| attacks that worked | 0 of 929 |" in security
    assert "`python -m bench told`" in security
    assert "2026-11-28 09:30 UTC · machine A" in security


def test_a_weakness_names_its_figure_or_stays_away(tmp_path: Path) -> None:
    found = {"told": wrote(tmp_path, "told", {"deep": {"x": 0.5}, "wrong": ["a", "b"]})}
    text = (
        "Words.\n\n- half: «told: deep/x | {:.0%}» and\n  «told: wrong» more\n- «absent: x»\n- «told: deep/y»\n\nEnd."
    )
    assert weaknesses(text, found) == "Words.\n\n- half: [50%](#told) and\n  [2](#told) more\n\nEnd."
    with pytest.raises(NoSuchFigure, match=r"told\.json has no figure deep/y"):
        found["told"].figure("deep/y")


def test_no_weakness_is_left_out_though_its_result_is_there() -> None:
    named = re.findall(r"«([a-z0-9_]+): ([^|»]+?)(?: \| [^»]+)?»", WEAKNESSES.read_text())
    assert named
    for name, path in named:
        if (RESULTS / f"{name}.json").exists():
            Result.read(RESULTS / f"{name}.json").figure(path)


def test_a_table_has_a_row_for_each_member_and_leaves_open_what_one_lacks(tmp_path: Path) -> None:
    nobody, attentive = {"useful": 27}, {"useful": 31, "tasks": 31, "approvals_per_task": None}
    policies = {
        "ours/shipped": {"tasks_with_nobody": nobody, "tasks_with_attentive": attentive},
        "allow_all": {"attacks": {"goals": 44, "goals_reached": 44, "runs": True}},
    }
    wrote(tmp_path, "soc", {"policies": policies})
    written = page(tmp_path)
    assert "| ours/shipped | 27 |  | 31 | 31 |  |  |  |  |" in written
    assert "| allow all |  |  |  |  |  | 44 | 44 | yes |" in written


def test_each_number_that_the_readme_links_is_one_that_was_measured() -> None:
    """Rounded as the README writes it, in seconds where the result has milliseconds, in percent where it has shares."""
    claims = re.findall(
        r"\[([0-9][0-9,.]*)([^\]]*)\]\(docs/benchmarks\.md#([a-z0-9_]+)\)", (ROOT / "README.md").read_text()
    )
    assert claims
    for text, unit, name in claims:
        number, places = float(text.replace(",", "")), len(text.partition(".")[2])
        leaves = [value for _, value in Result.read(RESULTS / f"{name}.json").leaves()]
        if text + unit in leaves:
            continue
        leaves = [value for value in leaves if isinstance(value, int | float)]
        measured = {
            round(value / scale, places) for value in leaves for scale in ((0.01, 1) if "%" in unit else (1, 1_000))
        }
        assert number in measured, f"{text} of {name} was not measured"
