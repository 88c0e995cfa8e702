"""Settings are read once, checked all at once, and never print a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import VARIABLES, Secret, load_settings

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "a-key-that-is-long-enough"
GUID = "0b8a1f1e-6f4e-4a55-9d63-0d3c6f0b9a11"
OTHER_GUID = "5d2c7d0e-0f0a-4f5c-9f7c-0a6a1d0b7c22"


def load(tmp_path: Path, environment: dict[str, str], env_file: str = "") -> object:
    file = tmp_path / ".env"
    file.write_text(env_file)
    return load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, file)


def problems(tmp_path: Path, environment: dict[str, str], env_file: str = "") -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, environment, env_file)
    assert caught.value.next_step
    return caught.value.problems


def test_nothing_set_is_the_embedded_workspace_without_a_model(tmp_path: Path) -> None:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    assert (settings.uses_azure, settings.model, settings.timezone, settings.gateway_url) == (
        False,
        "offline",
        "UTC",
        None,
    )
    assert settings.policy_file.name == "sentinel_config.yaml"


def test_every_problem_is_listed_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        {
            "SENTINEL_API_KEY": "short",
            "SENTINEL_TIMEZONE": "Mars/Olympus",
            "SENTINEL_MODEL": "psychic",
            "SENTINEL_WORKSPACE_ID": "prod=not-a-guid",
            "SENTINEL_QUESTION_TIMEOUT_S": "soon",
            "SENTINEL_AUDIT_DURABILITY": "never",
        },
    )
    assert sorted(problem.split(":")[0] for problem in found) == [
        "SENTINEL_API_KEY",
        "SENTINEL_AUDIT_DURABILITY",
        "SENTINEL_MODEL",
        "SENTINEL_QUESTION_TIMEOUT_S",
        "SENTINEL_TIMEZONE",
        "SENTINEL_WORKSPACE_ID",
    ]


def test_a_secret_is_in_no_message_and_no_representation(tmp_path: Path) -> None:
    settings = load(tmp_path, {"SENTINEL_API_KEY": KEY})
    assert KEY not in repr(settings)
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {secret!s} {secret:>40}"
    assert secret.reveal() == KEY
    assert "tooshort" not in " ".join(problems(tmp_path, {"SENTINEL_API_KEY": "tooshort"}))


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, {"SENTINEL_TIMEZONE": "Asia/Tokyo"}, "SENTINEL_TIMEZONE=Europe/Berlin\n")
    assert settings.timezone == "Asia/Tokyo"  # type: ignore[attr-defined]


def test_a_misspelt_name_in_the_file_is_told_with_the_nearest(tmp_path: Path) -> None:
    assert any("did you mean SENTINEL_TIMEZONE?" in p for p in problems(tmp_path, {}, "SENTINEL_TIMEZON=UTC\n"))


def test_a_broken_line_is_told_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, {}, "SENTINEL_TIMEZONE=UTC\n\nthis is no assignment\n")
    assert any(":3: " in problem for problem in caught.value.problems)


def test_several_azure_workspaces_have_names(tmp_path: Path) -> None:
    settings = load(tmp_path, {"SENTINEL_WORKSPACE_ID": f"prod={GUID}, dev={OTHER_GUID.upper()}"})
    assert settings.azure_workspaces == {"prod": GUID, "dev": OTHER_GUID}  # type: ignore[attr-defined]
    assert any("two workspaces" in p for p in problems(tmp_path, {"SENTINEL_WORKSPACE_ID": f"{GUID},{GUID}"}))


@pytest.mark.parametrize("url", ["http://gateway.example.com", "ftp://127.0.0.1", "127.0.0.1:80"])
def test_a_gateway_url_without_protection_is_refused(tmp_path: Path, url: str) -> None:
    assert any(p.startswith("SENTINEL_URL") for p in problems(tmp_path, {"SENTINEL_URL": url, "SENTINEL_API_KEY": KEY}))


def test_a_remote_gateway_needs_a_key(tmp_path: Path) -> None:
    assert any(p.startswith("SENTINEL_API_KEY") for p in problems(tmp_path, {"SENTINEL_URL": "https://gw.example.com"}))


@pytest.mark.parametrize("document", ["docs/settings.md", ".env.example"])
def test_every_setting_is_documented_and_nothing_else(document: str) -> None:
    text = (REPOSITORY / document).read_text()
    named = set(re.findall(r"\b(?:SENTINEL|AZURE_OPENAI|OPENROUTER|OTEL)_[A-Z_]+\b", text))
    assert named == set(VARIABLES)


RESOURCE = "/subscriptions/s/resourceGroups/soc/providers/Microsoft.OperationalInsights/workspaces/w"


def test_resource_ids_go_by_the_names_of_the_workspaces(tmp_path: Path) -> None:
    both = {"SENTINEL_WORKSPACE_ID": f"prod={GUID}", "SENTINEL_WORKSPACE_RESOURCE_ID": f"prod={RESOURCE}"}
    assert [(each.name, each.resource_id) for each in load(tmp_path, both).workspaces] == [("prod", RESOURCE)]
    one = {"SENTINEL_WORKSPACE_ID": GUID, "SENTINEL_WORKSPACE_RESOURCE_ID": RESOURCE}
    assert [(each.name, each.resource_id) for each in load(tmp_path, one).workspaces] == [("azure", RESOURCE)]
    for value, words in (
        (f"dev={RESOURCE}", "no workspace 'dev'"),
        ("prod=/subscriptions/s", "Resource ID"),
        (f"prod={RESOURCE},prod={RESOURCE}", "two workspaces"),
        (RESOURCE, "no workspace 'azure'"),
    ):
        found = problems(tmp_path, {**both, "SENTINEL_WORKSPACE_RESOURCE_ID": value})
        assert any(p.startswith("SENTINEL_WORKSPACE_RESOURCE_ID") and words in p for p in found), found
    http = problems(tmp_path, {"SENTINEL_ARM_ENDPOINT": "http://management.example"})
    assert any(problem.startswith("SENTINEL_ARM_ENDPOINT") for problem in http)
