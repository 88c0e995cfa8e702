"""CONTRIBUTING.md says where a change goes, ARCHITECTURE.md where things are: what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ARCHITECTURE = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = REPOSITORY / "src" / "sentinel_rag"
ROOTS = ("src/", "tests/", "docs/", "config/", "deploy")


def test_every_place_of_the_change_map_is_there() -> None:
    section = CONTRIBUTING.partition("## Where a change goes\n")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([^` ]+)`", section) if name.startswith(ROOTS)]
    assert len(named) > 20
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_every_folder_of_the_package_is_on_the_map_of_folders_and_none_that_is_not_there() -> None:
    section = ARCHITECTURE.partition("## Folders\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"^  (\w+)/ ", section, re.MULTILINE))
    there = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert told == there


def test_every_file_that_the_question_passes_is_there() -> None:
    section = ARCHITECTURE.partition("## One question, file by file\n")[2]
    named = re.findall(r"`([\w./]+\.(?:py|toml))`", section)
    there = [f"/{path.relative_to(PACKAGE)}" for path in PACKAGE.rglob("*.*")]
    assert len(named) > 30
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []
