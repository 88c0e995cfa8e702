"""Knowledge stores that packages bring: found by name, and what to install told where none is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_stores import is_shared, open_store, place_of
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings, load_settings

pytestmark = pytest.mark.requirement("KNOW-4")

PLUGIN = """
from sentinel_rag.app.knowledge_stores import StoreKind
from sentinel_rag.knowledge.stores import LocalStore

STORE = StoreKind(lambda at: LocalStore(at.home / "elsewhere.db"), lambda at: "elsewhere", shared=True)
"""


def settings(home: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(home), **environment}, home / "absent")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with two stores: `shelf`, and `broken`, whose entry point names no store."""
    site = tmp_path / "site"
    about = site / "of_a_stranger-1.dist-info"
    about.mkdir(parents=True)
    (site / "of_a_stranger.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: of-a-stranger\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[sentinel_rag.knowledge_stores]\nshelf = of_a_stranger:STORE\nbroken = of_a_stranger:PLUGIN_OF_NOTHING\n"
        "wrong = of_a_stranger:LocalStore\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "of_a_stranger", raising=False)


@pytest.mark.usefixtures("plugin")
def test_a_store_of_a_package_of_somebody_else_is_taken_by_its_name(tmp_path: Path) -> None:
    wanted = settings(tmp_path, SENTINEL_KNOWLEDGE_STORE="shelf")
    assert wanted.knowledge.store == "shelf"
    assert (place_of("shelf", wanted), is_shared("shelf")) == ("elsewhere", True)
    with open_store("shelf", wanted):
        assert (tmp_path / "elsewhere.db").is_file()


@pytest.mark.usefixtures("plugin")
def test_what_is_no_store_is_told_and_so_are_the_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not made for this version"):
        open_store("wrong", settings(tmp_path))
    with pytest.raises(ConfigurationError) as raised:
        open_store("milvus", settings(tmp_path))
    assert raised.value.next_step == "Take one of these: azure-search, broken, chroma, local, pgvector, shelf, wrong."


@pytest.mark.parametrize("store", ["chroma", "azure-search"])
def test_what_to_install_is_told_where_the_package_is_missing(
    tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [each for each in sys.path if "site-packages" not in each])
    with pytest.raises(UnavailableError) as raised:
        open_store(store, settings(tmp_path))
    assert raised.value.next_step == f"Run: pip install sentinel-rag-{store}"
