"""ARCHITECTURE.md says where a change goes: every place that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOTS = ("src/", "tests/", "docs/", "config/", "deploy")


def test_every_place_of_the_change_map_is_there() -> None:
    section = PAGE.partition("## Where a change goes\n")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([^` ]+)`", section) if name.startswith(ROOTS)]
    assert len(named) > 20
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_every_folder_of_the_package_is_on_the_map_of_folders_and_none_that_is_not_there() -> None:
    section = PAGE.partition("## Folders\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"^  (\w+)/ ", section, re.MULTILINE))
    there = {path.parent.name for path in (REPOSITORY / "src" / "sentinel_rag").glob("*/__init__.py")}
    assert told == there
