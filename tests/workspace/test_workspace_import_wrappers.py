"""A JSON document that looks like an answer of Log Analytics and is none is kept as it stands: no cell is dropped."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.workspace.importing.raw_rows import write_json_lines
from sentinel_rag.workspace.workspace import Workspace

counter = itertools.count()
A = {"name": "A", "type": "string"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("wrappers"))
    yield opened
    opened.close()


def stored(workspace: Workspace, path: Path, table: str) -> list[Any]:
    (report,) = workspace.import_path(path, table=table)
    assert report.rows_read == report.rows_stored + report.rows_rejected
    return [report.rows_stored, *workspace.query(table).rows]


@pytest.mark.requirement("DATA-5")
@pytest.mark.parametrize(
    "tables",
    [
        [{"name": "T", "columns": [A], "rows": [["left", "right"]]}],
        [{"name": "T", "columns": [A, A], "rows": [["left", "right"]]}],
        [{"name": "T", "columns": ["A"], "rows": [["left", "right"]]}],
        [{"name": "T", "columns": [A], "rows": {"left": "right"}}],
        [{"name": "T", "columns": [A], "rows": [["left"]]}, {"right": None}],
    ],
)
def test_cells_without_a_column_of_their_own_are_kept(workspace: Workspace, tmp_path: Path, tables: list[Any]) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"tables": tables}))
    count, *rows = stored(workspace, path, f"Wrapper{next(counter)}_CL")
    assert count == 1
    assert "left" in str(rows)
    assert "right" in str(rows)


def test_a_whole_answer_gives_its_rows(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"tables": [{"name": "T", "columns": [A], "rows": [["left"], ["right"]]}]}))
    count, *rows = stored(workspace, path, "Whole_CL")
    assert count == 2
    assert {cell for row in rows for cell in row} >= {"left", "right"}


@pytest.mark.requirement("DATA-5")
def test_objects_one_after_another_are_each_told_by_their_line_however_many(tmp_path: Path) -> None:
    many = 400_000  # to count the lines before each one anew would outlast the time that a test has
    source, target = tmp_path / "objects.json", tmp_path / "lines"
    source.write_text('{\n"a": 1\n}\n' * many + "7\n")
    rejects, missing = write_json_lines(source, target, name="objects.json")
    assert ([(each.line, each.content) for each in rejects], missing) == ([(3 * many + 1, "7")], ())
    assert target.read_text().count("\n") == many
