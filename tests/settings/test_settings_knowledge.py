"""Settings of the knowledge store: the default is the local file, and every name has a store behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_stores import KNOWN_PLUGINS, STORES
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import KnowledgeSettings, load_settings
from sentinel_rag.settings.deployment import KNOWLEDGE_STORES, NEEDED

pytestmark = [pytest.mark.requirement("OPS-2"), pytest.mark.requirement("KNOW-4")]


def load(tmp_path: Path, **environment: str) -> KnowledgeSettings:
    return load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, tmp_path / "absent").knowledge


def problems(tmp_path: Path, **environment: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **environment)
    return list(caught.value.problems)


def test_the_default_is_the_local_file(tmp_path: Path) -> None:
    assert load(tmp_path).store == "local"
    assert load(tmp_path, SENTINEL_KNOWLEDGE_STORE="LOCAL").store == "local"


def test_an_unknown_store_is_told_with_the_known_ones(tmp_path: Path) -> None:
    told = problems(tmp_path, SENTINEL_KNOWLEDGE_STORE="milvus")
    assert told == [f"SENTINEL_KNOWLEDGE_STORE: 'milvus' is not one of {', '.join(KNOWLEDGE_STORES)}"]


def test_every_name_has_a_store_behind_it() -> None:
    assert {*STORES, *KNOWN_PLUGINS} == {*KNOWLEDGE_STORES} == {*NEEDED}


@pytest.mark.parametrize("store", KNOWLEDGE_STORES)
def test_what_the_store_in_use_lacks_is_told(tmp_path: Path, store: str) -> None:
    if not NEEDED[store]:
        assert load(tmp_path, SENTINEL_KNOWLEDGE_STORE=store).store == store
        return
    told = problems(tmp_path, SENTINEL_KNOWLEDGE_STORE=store)
    assert [problem.partition(":")[0] for problem in told] == list(NEEDED[store])


URL = "postgresql://sentinel:canary-pw@db.example.com:5432/soc?sslmode=verify-full"


def test_the_address_of_a_database_is_a_secret(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        SENTINEL_KNOWLEDGE_STORE="pgvector",
        SENTINEL_KNOWLEDGE_URL=URL,
        SENTINEL_KNOWLEDGE_SCHEMA="soc_emea",
    )
    assert found.postgres.url is not None
    assert found.postgres.url.reveal() == URL
    assert "canary-pw" not in repr(found) + str(found.postgres.url)
    assert found.postgres.schema == "soc_emea"
    assert load(tmp_path).postgres.schema == "sentinel_knowledge"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://sentinel:canary-pw@db/soc",
        "host=db password=canary-pw",
        "postgresql://",
        "postgresql://sentinel:canary-pw @db/soc",
        "postgresql://sentinel:canary-pw?x@db/soc",
        "postgresql://sentinel:canary-pw/x@db/soc",
        "postgresql://sentinel:canary@pw@db/soc",
        "postgresql://db/soc?user=sentinel&password=canary-pw@x",
    ],
)
def test_an_address_that_is_none_is_told_and_not_quoted(tmp_path: Path, url: str) -> None:
    (problem,) = problems(tmp_path, SENTINEL_KNOWLEDGE_STORE="pgvector", SENTINEL_KNOWLEDGE_URL=url)
    assert problem.startswith("SENTINEL_KNOWLEDGE_URL: ")
    assert "canary" not in problem


@pytest.mark.parametrize("name", ["Soc", "1soc", "soc-emea", 'soc"; DROP SCHEMA public; --', "pg_soc", "s" * 64])
def test_a_schema_that_is_no_plain_name_is_refused(tmp_path: Path, name: str) -> None:
    (problem,) = problems(tmp_path, SENTINEL_KNOWLEDGE_SCHEMA=name)
    assert problem.startswith("SENTINEL_KNOWLEDGE_SCHEMA: ")
