"""The stores of the settings, as objects: an unknown one, and one whose packages are missing, say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_access import knowledge_place, open_knowledge
from sentinel_rag.app.knowledge_stores import needs_packages, open_store, place_of
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import load_settings

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
