"""The statements of the engine's own tests through the workspace: the same types, and cells as the API writes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

PACKAGE = Path(__file__).resolve().parents[2] / "packages" / "kql-duckdb"
LINES = (PACKAGE / "tests" / "functions" / "statements.jsonl").read_text(encoding="utf-8").splitlines()
STATEMENTS = [json.loads(line) for line in LINES if not any(said in line for said in ("now()", "ago("))]
TOGETHER = 40


def test_each_statement_of_the_engine_answers_the_same(kql_workspace: Workspace, subtests: pytest.Subtests) -> None:
    for start in range(0, len(STATEMENTS), TOGETHER):
        asked = STATEMENTS[start : start + TOGETHER]
        answer = kql_workspace.query("print " + ", ".join(f"x{n} = {each[0]}" for n, each in enumerate(asked)))
        for (expression, kind, value), column, found in zip(asked, answer.columns, answer.rows[0], strict=True):
            with subtests.test(expression):
                assert column.type == kind
                exact = not isinstance(found, float) or isinstance(value, str | None)
                assert found == value if exact else math.isclose(found, value, rel_tol=1e-9)
