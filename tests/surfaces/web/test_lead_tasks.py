"""A lead's week is done on the page, each task by a test that is there, and in the terminal but for what is named."""

from __future__ import annotations

import ast
import shlex
import tomllib
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli._parser import build_parser

HERE = Path(__file__).parent
TASKS = tomllib.loads((HERE / "lead_tasks.toml").read_text())["task"]
ON_THE_PAGE_ALONE = {"cost", "attacker texts"}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_a_task_has_a_test_on_the_page_and_a_command(task: dict[str, str]) -> None:
    file, _, name = task["page"].partition("::")
    tree = ast.parse((HERE / file).read_text())
    assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    if task["terminal"]:
        build_parser().parse_args(shlex.split(task["terminal"]))
    assert (task["terminal"] == "") == (task["name"] in ON_THE_PAGE_ALONE)
