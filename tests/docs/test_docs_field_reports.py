"""Each fault on the page of faults reported elsewhere names tests, and each of them exists and is collected."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "security" / "field-reports.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "::" in line]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py::\w+)`", PAGE)))


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("named", NAMED)
def test_each_named_test_exists(named: str) -> None:
    file, _, name = named.partition("::")
    assert Path(file).name.startswith("test_")
    assert name.startswith("test_")
    assert name in functions(TESTS / file)


def test_every_fault_has_a_measure_and_a_test() -> None:
    body = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| fault")]
    assert len(ROWS) == len(body) >= 47
    for fault, measure, tests in ROWS:
        assert len(fault) > 10
        assert len(measure) > 4
        assert re.search(r"`[\w/]+\.py::test_\w+`", tests)
