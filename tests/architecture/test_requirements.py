"""Every promise that is due is claimed by a test."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def claimed() -> set[str]:
    """The ids in `@pytest.mark.requirement("ID")` anywhere in the tests, read without running them."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    return found


def test_every_due_requirement_is_claimed() -> None:
    due = set(tomllib.loads((TESTS / "requirements.toml").read_text())["due"])
    assert due - claimed() == set()
