"""The knowledge stores by name: those that are shipped, and those that packages bring."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_stores import (
    is_shared,
    knowledge_place,
    needs_packages,
    open_knowledge,
    open_store,
    place_of,
)
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings, load_settings

pytestmark = pytest.mark.requirement("KNOW-4")


def test_the_default_is_a_file_of_the_home(tmp_path: Path) -> None:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    with open_knowledge(settings) as store:
        assert not any(store.state().documents.values())
    assert Path(knowledge_place(settings)).is_file()
    assert Path(knowledge_place(settings)).is_relative_to(tmp_path)


def test_a_name_that_no_store_has_is_refused_with_the_names(tmp_path: Path) -> None:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="no knowledge store 'milvus'") as raised:
        open_store("milvus", settings)
    assert "local" in raised.value.next_step


def test_a_store_without_its_packages_says_the_command() -> None:
    with (
        pytest.raises(UnavailableError, match="needs the package vector_engine_that_is_nowhere") as raised,
        needs_packages("engine", "an-engine", "vector_engine_that_is_nowhere"),
    ):
        import vector_engine_that_is_nowhere.client  # type: ignore[import-not-found]
    assert raised.value.next_step == "Run: pip install an-engine"
    with pytest.raises(ModuleNotFoundError), needs_packages("engine", "an-engine", "another"):
        import vector_engine_that_is_nowhere.client  # noqa: F401


def test_pgvector_says_what_it_lacks_and_where_it_lies_without_its_password(tmp_path: Path) -> None:
    environment = {"SENTINEL_HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="SENTINEL_KNOWLEDGE_URL is not set"):
        open_store("pgvector", load_settings(environment, tmp_path / "absent"))
    environment["SENTINEL_KNOWLEDGE_URL"] = "postgresql://sentinel:canary-pw@db.example.com:5432/soc?password=canary-2"
    place = place_of("pgvector", load_settings(environment, tmp_path / "absent"))
    assert place == "PostgreSQL, database soc at db.example.com:5432, schema sentinel_knowledge"


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
