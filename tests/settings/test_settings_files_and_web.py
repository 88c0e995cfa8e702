"""The settings of files and the web: what is wrong is said before anything starts, and a key is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings

KEY = "search-key-canary-0123"


def load(tmp_path: Path, **values: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(tmp_path / "home"), **values}, tmp_path / "no.env")


def problems(tmp_path: Path, **values: str) -> str:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, **values)
    return "\n".join(error.value.problems)


def test_without_settings_the_samples_answer(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert (settings.files_root, settings.search_provider, settings.web_allowed_hosts) == (None, "bundled", ())


def test_all_of_them_are_read(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    settings = load(
        tmp_path,
        SENTINEL_FILES_ROOT=str(tmp_path / "files"),
        SENTINEL_SEARCH_PROVIDER="Brave",
        SENTINEL_SEARCH_API_KEY=KEY,
        SENTINEL_WEB_ALLOWED_HOSTS=" learn.microsoft.com, ATTACK.mitre.org,,learn.microsoft.com",
    )
    assert settings.files_root == (tmp_path / "files").resolve()
    assert settings.search_provider == "brave"
    assert settings.web_allowed_hosts == ("learn.microsoft.com", "attack.mitre.org")
    assert settings.search_key is not None
    assert settings.search_key.reveal() == KEY
    assert KEY not in repr(settings)


def test_a_folder_that_holds_the_keys_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("gateway", "run", "workspaces/default"):
        (home / folder).mkdir(parents=True)
        assert "keys" in problems(tmp_path, SENTINEL_FILES_ROOT=str(home / folder))
    for folder in (home, tmp_path, Path("/")):
        assert "keys" in problems(tmp_path, SENTINEL_FILES_ROOT=str(folder))
    (tmp_path / "link").symlink_to(home / "gateway")
    assert "keys" in problems(tmp_path, SENTINEL_FILES_ROOT=str(tmp_path / "link"))
    (home / "files").mkdir()
    assert load(tmp_path, SENTINEL_FILES_ROOT=str(home / "files")).files_root == (home / "files").resolve()


@pytest.mark.parametrize("text", ["no/such/folder", "__file__"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = __file__ if text == "__file__" else text
    assert "is not a folder" in problems(tmp_path, SENTINEL_FILES_ROOT=path)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"SENTINEL_SEARCH_PROVIDER": "bing"}, "is not one of bundled, searxng, brave, tavily"),
        ({"SENTINEL_SEARCH_PROVIDER": "searxng"}, "SENTINEL_SEARCH_URL: is missing"),
        ({"SENTINEL_SEARCH_PROVIDER": "brave"}, "SENTINEL_SEARCH_API_KEY: is missing"),
        ({"SENTINEL_SEARCH_PROVIDER": "tavily"}, "SENTINEL_SEARCH_API_KEY: is missing"),
        ({"SENTINEL_SEARCH_API_KEY": KEY}, "SENTINEL_SEARCH_PROVIDER: is missing"),
        ({"SENTINEL_SEARCH_URL": "https://searx.example"}, "SENTINEL_SEARCH_PROVIDER: is missing"),
        ({"SENTINEL_SEARCH_PROVIDER": "searxng", "SENTINEL_SEARCH_URL": "ftp://x"}, "is not an http or https URL"),
        ({"SENTINEL_SEARCH_PROVIDER": "searxng", "SENTINEL_SEARCH_URL": "https://u:p@x.example"}, "is not an http"),
        (
            {
                "SENTINEL_SEARCH_PROVIDER": "tavily",
                "SENTINEL_SEARCH_API_KEY": KEY,
                "SENTINEL_SEARCH_URL": "http://x.example",
            },
            "plain http would send the key unprotected",
        ),
        ({"SENTINEL_WEB_ALLOWED_HOSTS": "https://x.example"}, "is not a host name"),
        ({"SENTINEL_WEB_ALLOWED_HOSTS": "*.example.com"}, "is not a host name"),
        ({"SENTINEL_WEB_ALLOWED_HOSTS": "x.example:8080"}, "is not a host name"),
        ({"SENTINEL_WEB_ALLOWED_HOSTS": "127.0.0.1"}, "is not a host name"),
        ({"SENTINEL_WEB_ALLOWED_HOSTS": "localhost"}, "is not a host name"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path: Path, values: dict[str, str], problem: str) -> None:
    text = problems(tmp_path, **values)
    assert problem in text
    assert KEY not in text


def test_a_search_service_may_lie_on_the_private_network_without_a_key(tmp_path: Path) -> None:
    settings = load(tmp_path, SENTINEL_SEARCH_PROVIDER="searxng", SENTINEL_SEARCH_URL="http://10.0.0.7:8888/")
    assert settings.search_url == "http://10.0.0.7:8888"
