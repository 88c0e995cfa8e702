"""The name of the state's schema, behind which those of the schemas beside it must fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import load_settings

pytestmark = pytest.mark.requirement("OPS-5")
URL = "postgresql://sentinel:a-pass-word@127.0.0.1/db"


def schema(folder: Path, name: str) -> str:
    values = {"SENTINEL_HOME": str(folder), "SENTINEL_DATABASE_URL": URL, "SENTINEL_DATABASE_SCHEMA": name}
    return load_settings(values, folder / "none.env").database.schema


def test_the_longest_name_leaves_room_for_the_schemas_beside_it(tmp_path: Path) -> None:
    longest = "s" * 58
    assert schema(tmp_path, longest) == longest
    assert len(f"{longest}_chat") == 63, "PostgreSQL cuts what is longer, without a word"


@pytest.mark.parametrize("name", ["s" * 59, "s" * 63, "s" * 64, "soc_web", "soc_chat", "pg_soc", "Soc", "so c", "9s"])
def test_names_that_would_collide_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        schema(tmp_path, name)
    (problem,) = refused.value.problems
    assert problem.startswith("SENTINEL_DATABASE_SCHEMA: ")
