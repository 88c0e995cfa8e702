"""Settings of sign-in: a public address and an identity provider, each wrong value told by its name and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings

ISSUER = {"SENTINEL_OIDC_ISSUER": "https://login.example.com/", "SENTINEL_OIDC_CLIENT_ID": "sentinel-rag"}


def load(tmp_path: Path, **environment: str) -> Settings:
    return load_settings(environment={"SENTINEL_HOME": str(tmp_path), **environment}, env_file=tmp_path / "none")


def test_nothing_is_set_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert (settings.web_url, settings.oidc) == (None, None)


def test_an_identity_provider_is_read_letter_by_letter_and_its_secret_not_shown(tmp_path: Path) -> None:
    settings = load(tmp_path, **ISSUER, SENTINEL_OIDC_CLIENT_SECRET="s3cret-of-the-client", SENTINEL_OIDC_CLAIM="oid")
    assert settings.oidc is not None
    assert settings.oidc.issuer == "https://login.example.com/"
    assert (settings.oidc.client_id, settings.oidc.claim) == ("sentinel-rag", "oid")
    assert settings.oidc.client_secret is not None
    assert settings.oidc.client_secret.reveal() == "s3cret-of-the-client"
    assert "s3cret" not in repr(settings)
    assert load(tmp_path, **ISSUER).oidc.claim == "email"  # type: ignore[union-attr]


def test_a_public_address_is_https_and_no_more_than_a_host(tmp_path: Path) -> None:
    url = "https://sentinel.example.com:8443"
    assert load(tmp_path, SENTINEL_WEB_URL=f"{url}/").web_url == url
    assert load(tmp_path, SENTINEL_WEB_URL="http://localhost:8080").web_url == "http://localhost:8080"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SENTINEL_WEB_URL", "http://sentinel.example.com"),
        ("SENTINEL_WEB_URL", "https://sentinel.example.com/rag"),
        ("SENTINEL_WEB_URL", "https://user:pass@sentinel.example.com"),
        ("SENTINEL_WEB_URL", "sentinel.example.com"),
        ("SENTINEL_OIDC_ISSUER", "http://login.example.com"),
        ("SENTINEL_OIDC_CLIENT_ID", "two words"),
        ("SENTINEL_OIDC_CLIENT_SECRET", "a s3cret with blanks"),
        ("SENTINEL_OIDC_CLAIM", "bad\nclaim"),
    ],
)
def test_what_is_wrong_is_told_by_its_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, **{**ISSUER, name: value})
    assert any(problem.startswith(f"{name}:") for problem in refused.value.problems)
    assert "s3cret" not in str(refused.value.problems)


@pytest.mark.parametrize("left_out", sorted(ISSUER))
def test_half_of_a_provider_is_told_of(tmp_path: Path, left_out: str) -> None:
    given = {name: value for name, value in ISSUER.items() if name != left_out}
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, **given)
    assert any(problem.startswith(f"{left_out}: is missing") for problem in refused.value.problems)
