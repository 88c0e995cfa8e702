"""Who a person reads as, and that no file tool is pointed at what knowledge keeps for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings

pytestmark = pytest.mark.requirement("KNOW-4")


def load(folder: Path, **values: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(folder / "home"), **values}, folder / "none.env")


def test_readers_are_names_by_comma(tmp_path: Path) -> None:
    assert load(tmp_path).readers == ()
    assert load(tmp_path, SENTINEL_READERS=" tier2, HR team,,tier2 ").readers == ("tier2", "HR team")


@pytest.mark.parametrize("text", ["*", "tier2,*", "a;b", "x" * 65])
def test_what_is_no_name_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, SENTINEL_READERS=text)
    (problem,) = refused.value.problems
    assert problem.startswith("SENTINEL_READERS: ")
    assert "is no name of a reader" in problem


def test_the_files_folder_is_not_where_knowledge_lies(tmp_path: Path) -> None:
    """Else the agent would read the store past every permission, with file_read."""
    folder = tmp_path / "home" / "knowledge" / "public"
    folder.mkdir(parents=True)
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, SENTINEL_FILES_ROOT=str(folder))
    assert "SENTINEL_FILES_ROOT" in refused.value.problems[0]
