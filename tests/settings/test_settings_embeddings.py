"""Settings of the embedding model: local needs nothing, a service says what it lacks, keys are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import EmbeddingSettings, Secret, load_settings

pytestmark = [pytest.mark.requirement("OPS-2"), pytest.mark.requirement("KNOW-5")]
KEY = "key-canary-9c"


def load(tmp_path: Path, **environment: str) -> EmbeddingSettings:
    return load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, tmp_path / "absent").embeddings


def problems(tmp_path: Path, **environment: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **environment)
    assert KEY not in str(caught.value) + repr(caught.value.problems)
    return sorted(problem.split(":")[0] for problem in caught.value.problems)


def test_the_default_is_this_machine_whatever_else_is_set(tmp_path: Path) -> None:
    assert load(tmp_path, SENTINEL_EMBEDDINGS_DIMENSIONS="nonsense", AZURE_OPENAI_API_KEY=KEY) == EmbeddingSettings()
    assert load(tmp_path, SENTINEL_EMBEDDINGS="none") == EmbeddingSettings(provider="none")


def test_azure_takes_the_names_of_its_own_tools(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        SENTINEL_EMBEDDINGS="azure",
        SENTINEL_EMBEDDINGS_NAME="text-embedding-3-large",
        SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE="350000",
        AZURE_OPENAI_ENDPOINT="https://soc.openai.azure.com/",
        AZURE_OPENAI_API_KEY=KEY,
        AZURE_OPENAI_API_VERSION="2024-10-21",
    )
    assert found == EmbeddingSettings(
        provider="azure",
        url="https://soc.openai.azure.com",
        key=Secret(KEY),
        name="text-embedding-3-large",
        api_version="2024-10-21",
        dimensions=1_024,
        tokens_per_minute=350_000,
    )
    assert KEY not in repr(found)


def test_a_compatible_server_may_ask_for_no_key(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        SENTINEL_EMBEDDINGS="openai-compatible",
        SENTINEL_EMBEDDINGS_NAME="nomic-embed-text",
        SENTINEL_EMBEDDINGS_URL="http://127.0.0.1:11434/v1",
        SENTINEL_EMBEDDINGS_DIMENSIONS="768",
    )
    assert (found.key, found.api_version, found.dimensions) == (None, None, 768)


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"SENTINEL_EMBEDDINGS": "cloud"}, ["SENTINEL_EMBEDDINGS"]),
        ({"SENTINEL_EMBEDDINGS": "azure"}, ["AZURE_OPENAI_ENDPOINT", "SENTINEL_EMBEDDINGS_NAME"]),
        ({"SENTINEL_EMBEDDINGS": "openai-compatible"}, ["SENTINEL_EMBEDDINGS_NAME", "SENTINEL_EMBEDDINGS_URL"]),
        (
            {
                "SENTINEL_EMBEDDINGS": "openai-compatible",
                "SENTINEL_EMBEDDINGS_NAME": "m",
                "SENTINEL_EMBEDDINGS_URL": "http://10.0.0.9/v1",
                "SENTINEL_EMBEDDINGS_API_KEY": KEY,
                "SENTINEL_EMBEDDINGS_DIMENSIONS": "0",
                "SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE": "-1",
            },
            ["SENTINEL_EMBEDDINGS_DIMENSIONS", "SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE", "SENTINEL_EMBEDDINGS_URL"],
        ),
    ],
)
def test_what_is_missing_or_wrong_is_listed_at_once(
    tmp_path: Path, environment: dict[str, str], named: list[str]
) -> None:
    assert problems(tmp_path, **environment) == named
