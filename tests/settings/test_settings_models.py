"""Settings of the model: each provider says what it lacks, keys are never shown, and offline reads none of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import ModelSettings, Secret, Settings, load_settings

pytestmark = [pytest.mark.requirement("OPS-2"), pytest.mark.requirement("OPS-3")]
KEY = "key-canary-9c"


def load(tmp_path: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, tmp_path / "absent")


def problems(tmp_path: Path, **environment: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **environment)
    assert KEY not in str(caught.value) + repr(caught.value.problems)
    return sorted(problem.split(":")[0] for problem in caught.value.problems)


def test_azure_keeps_the_names_of_its_own_tools(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        SENTINEL_MODEL="azure",
        AZURE_OPENAI_ENDPOINT="https://soc.openai.azure.com/",
        AZURE_OPENAI_API_KEY=KEY,
        AZURE_OPENAI_API_VERSION="2024-10-21",
        AZURE_OPENAI_CHAT_DEPLOYMENT="gpt-4o",
        SENTINEL_MODEL_SMALL_NAME="gpt-4o-mini",
        SENTINEL_MODEL_PRICES="large=2.50/10, small=0.15/0.60",
    )
    assert settings.model_settings == ModelSettings(
        provider="azure",
        url="https://soc.openai.azure.com",
        key=Secret(KEY),
        name="gpt-4o",
        small_name="gpt-4o-mini",
        api_version="2024-10-21",
        prices={"large": (Decimal("2.50"), Decimal(10)), "small": (Decimal("0.15"), Decimal("0.60"))},
    )
    assert KEY not in repr(settings)


def test_azure_without_a_key_is_entra_id_and_its_v1_endpoint(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        SENTINEL_MODEL="azure",
        AZURE_OPENAI_ENDPOINT="https://soc.openai.azure.com",
        SENTINEL_MODEL_NAME="gpt",
    )
    assert settings.model_settings is not None
    assert (settings.model_settings.key, settings.model_settings.api_version) == (None, None)


def test_a_local_server_needs_an_address_and_a_name_only(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        SENTINEL_MODEL="openai-compatible",
        SENTINEL_MODEL_URL="http://127.0.0.1:11434/v1",
        SENTINEL_MODEL_NAME="qwen3:8b",
        SENTINEL_MODEL_TIMEOUT_S="300",
        SENTINEL_MODEL_IDLE_TIMEOUT_S="60",
    )
    assert settings.model_settings == ModelSettings(
        provider="openai-compatible",
        url="http://127.0.0.1:11434/v1",
        key=None,
        name="qwen3:8b",
        timeout_s=300,
        idle_timeout_s=60,
    )


@pytest.mark.parametrize(
    ("given", "question_s"),
    [
        ({}, 180),
        ({"SENTINEL_MODEL_TIMEOUT_S": "600"}, 660),
        ({"SENTINEL_MODEL_TIMEOUT_S": "3600"}, 3_600),
        ({"SENTINEL_MODEL_TIMEOUT_S": "600", "SENTINEL_QUESTION_TIMEOUT_S": "90"}, 90),
    ],
)
def test_a_question_may_take_longer_than_an_answer_of_its_model(tmp_path: Path, given: Any, question_s: float) -> None:
    local = {"SENTINEL_MODEL_URL": "http://127.0.0.1:1/v1", "SENTINEL_MODEL_NAME": "m"}
    settings = load(tmp_path, SENTINEL_MODEL="openai-compatible", **local, **given)
    assert settings.question_timeout_s == question_s


def test_a_context_in_which_no_question_fits_is_told_with_what_enlarges_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(
            tmp_path,
            SENTINEL_MODEL="openai-compatible",
            SENTINEL_MODEL_URL="http://127.0.0.1:1/v1",
            SENTINEL_MODEL_NAME="m",
            SENTINEL_MODEL_CONTEXT_TOKENS="2048",
        )
    (problem,) = caught.value.problems
    assert "too small for any question" in problem
    assert "--ctx-size 16384" in problem


def test_openrouter_needs_its_key_and_a_name_only(tmp_path: Path) -> None:
    settings = load(tmp_path, SENTINEL_MODEL="OpenRouter", OPENROUTER_API_KEY=KEY, SENTINEL_MODEL_NAME="z-ai/glm-5")
    assert settings.model_settings is not None
    assert settings.model_settings.url == "https://openrouter.ai/api/v1"
    assert settings.model_settings.key is not None
    assert settings.model_settings.key.reveal() == KEY


@pytest.mark.parametrize(
    ("provider", "lacking"),
    [
        ("azure", ["AZURE_OPENAI_ENDPOINT", "SENTINEL_MODEL_NAME"]),
        ("openai-compatible", ["SENTINEL_MODEL_NAME", "SENTINEL_MODEL_URL"]),
        ("openrouter", ["OPENROUTER_API_KEY", "SENTINEL_MODEL_NAME"]),
    ],
)
def test_a_provider_lists_everything_that_it_lacks(tmp_path: Path, provider: str, lacking: list[str]) -> None:
    assert problems(tmp_path, SENTINEL_MODEL=provider) == lacking


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SENTINEL_MODEL_URL", "http://models.example.com/v1"),
        ("SENTINEL_MODEL_URL", f"https://me:{KEY}@models.example.com/v1"),
        ("SENTINEL_MODEL_URL", "models.example.com"),
        ("SENTINEL_MODEL_API_KEY", f"{KEY}\u00e9"),
        ("SENTINEL_MODEL_NAME", "a" * 201),
        ("SENTINEL_MODEL_PRICES", "2.50"),
        ("SENTINEL_MODEL_PRICES", "large=1/2,large=1/2"),
        ("SENTINEL_MODEL_PRICES", "large=-1/2"),
        ("SENTINEL_MODEL_PRICES", "large=1e9/2"),
        ("SENTINEL_MODEL_TIMEOUT_S", "0"),
        ("SENTINEL_MODEL_CONTEXT_TOKENS", "4095"),
        ("SENTINEL_MODEL_IDLE_TIMEOUT_S", "soon"),
        ("SENTINEL_MAX_TOOL_ROUNDS", "0"),
        ("SENTINEL_MAX_TOOL_ROUNDS", "41"),
    ],
)
def test_a_value_that_cannot_be_is_told_by_its_name(tmp_path: Path, variable: str, value: str) -> None:
    good = {"SENTINEL_MODEL_URL": "https://models.example.com/v1", "SENTINEL_MODEL_NAME": "m"}
    assert problems(tmp_path, SENTINEL_MODEL="openai-compatible", **{**good, variable: value}) == [variable]


def test_an_api_version_that_is_none_is_told(tmp_path: Path) -> None:
    azure = {"AZURE_OPENAI_ENDPOINT": "https://soc.openai.azure.com", "SENTINEL_MODEL_NAME": "m"}
    assert problems(tmp_path, SENTINEL_MODEL="azure", AZURE_OPENAI_API_VERSION="latest", **azure) == [
        "AZURE_OPENAI_API_VERSION"
    ]


def test_offline_reads_nothing_of_a_model(tmp_path: Path) -> None:
    settings = load(tmp_path, OPENROUTER_API_KEY=KEY, SENTINEL_MODEL_URL="nonsense", AZURE_OPENAI_API_VERSION="x")
    assert (settings.model, settings.model_settings) == ("offline", None)
