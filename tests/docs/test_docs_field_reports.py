"""Each fault on the pages of faults reported elsewhere names tests, and each of them exists and is collected."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
DOCS = TESTS.parent / "docs"
PAGES = {DOCS / "security" / "field-reports.md": 47, DOCS / "field-reports.md": 79}
"""Each page with the least number of faults that it lists."""
NAMED = sorted({name for page in PAGES for name in re.findall(r"`([\w/]+\.py::\w+)`", page.read_text())})


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_named_test_exists() -> None:
    for named in NAMED:
        file, _, name = named.partition("::")
        assert Path(file).name.startswith("test_"), named
        assert name.startswith("test_"), named
        assert name in functions(TESTS / file), named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_fault_has_a_measure_and_a_test(page: Path) -> None:
    lines = page.read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and "::" in line]
    body = [line for line in lines if line.startswith("| ") and not line.startswith(("| fault", "| report"))]
    assert len(rows) == len(body) >= PAGES[page]
    for fault, measure, tests in rows:
        assert len(fault) > 10
        assert len(measure) > 4
        assert re.search(r"`[\w/]+\.py::test_\w+`", tests)
