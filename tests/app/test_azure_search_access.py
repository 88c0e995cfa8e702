"""The search service of the settings, as a store: keys and Entra ID tokens reach the service and nobody else."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.support.azure_search import AzureSearchDouble, running_azure_search

from sentinel_rag.app.knowledge_stores import (
    knowledge_base,
    knowledge_configuration,
    knowledge_environment,
    knowledge_place,
    open_knowledge,
    open_store,
    told_settings,
)
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.requirement("KNOW-4")


@pytest.fixture
def resources(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The one way to sign in that this process has; what tokens were asked for."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "IDENTITY_", "MSI_")):
            monkeypatch.delenv(name)
    asked: list[str] = []

    async def token(request: Request) -> JSONResponse:
        asked.append(request.query_params["resource"])
        ends = str(int(time.time()) + 86_400)
        return JSONResponse(
            {"access_token": "entra-token", "expires_on": ends, "token_type": "Bearer", "resource": asked[-1]}
        )

    with serve(Starlette(routes=[Route("/msi/token", token)])) as url:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        yield asked


def settings(tmp_path: Path, url: str, **more: str) -> Settings:
    environment = {
        "SENTINEL_HOME": str(tmp_path),
        "SENTINEL_KNOWLEDGE_STORE": "azure-search",
        "SENTINEL_AZURE_SEARCH_ENDPOINT": url,
        **more,
    }
    return load_settings(environment, tmp_path / "absent")


def test_without_a_key_it_is_entered_with_this_machine_s_sign_in(tmp_path: Path, resources: list[str]) -> None:
    double = AzureSearchDouble(tokens=frozenset({"entra-token"}))
    with running_azure_search(double) as (url, _), open_knowledge(settings(tmp_path, url)) as store:
        assert not any(store.state().documents.values())
        assert store.remove(next(iter(store.state().documents)), ["a"]) == 0
    assert resources == ["https://search.azure.com"]
    assert double.requests


def test_a_key_is_sent_and_neither_told_nor_kept_where_people_look(tmp_path: Path, resources: list[str]) -> None:
    with running_azure_search(AzureSearchDouble(key="canary-of-a-key")) as (url, _):
        wanted = settings(tmp_path, url, SENTINEL_AZURE_SEARCH_KEY="canary-of-a-key", SENTINEL_AZURE_SEARCH_INDEX="kb")
        with open_knowledge(wanted) as store:
            assert not any(store.state().documents.values())
        other = settings(tmp_path, url, SENTINEL_AZURE_SEARCH_KEY="another-canary")
        with open_knowledge(other) as store, pytest.raises(UnavailableError) as raised:
            store.state()
    assert resources == []
    assert knowledge_place(wanted) == f"index kb at {url}"
    assert "canary" not in f"{wanted!r} {knowledge_place(wanted)} {raised.value.to_dict()}"


def test_without_a_sign_in_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resources: list[str]) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:9/msi/token")
    with (
        running_azure_search() as (url, double),
        open_knowledge(settings(tmp_path, url)) as store,
        pytest.raises(UnavailableError, match="No Entra ID token for Azure AI Search could be had") as raised,
    ):
        store.state()
    assert "SENTINEL_AZURE_SEARCH_KEY" in raised.value.next_step
    assert double.requests == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SENTINEL_AZURE_SEARCH_ENDPOINT", "not a url"),
        ("SENTINEL_AZURE_SEARCH_ENDPOINT", "https://user:canary@my.search.windows.net"),
        ("SENTINEL_AZURE_SEARCH_KEY", "canary\twith a tab"),
        ("SENTINEL_AZURE_SEARCH_INDEX", "Upper Case"),
    ],
)
def test_a_setting_that_can_be_none_is_told_at_start(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings(tmp_path, "https://my.search.windows.net", **{name: value})
    (problem,) = raised.value.problems
    assert problem.startswith(f"{name}: ")
    assert "canary" not in problem


def test_the_store_of_another_setting_can_be_opened_and_says_what_it_lacks(tmp_path: Path) -> None:
    """As when knowledge is moved: the store in use is the local one."""
    local = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    with pytest.raises(ConfigurationError, match="address of Azure AI Search is not set") as raised:
        open_store("azure-search", local)
    assert raised.value.next_step == "Set SENTINEL_AZURE_SEARCH_ENDPOINT."


def test_a_question_to_an_empty_store_of_a_team_fills_it_with_nothing(tmp_path: Path, resources: list[str]) -> None:
    """The local store begins with the shipped playbooks; here that would be a write with rights that only read."""
    with running_azure_search() as (url, double):
        wanted = settings(tmp_path, url, SENTINEL_AZURE_SEARCH_KEY="double-key", SENTINEL_EMBEDDINGS="none")
        base = knowledge_base({**knowledge_configuration(wanted), "workspaces": []})
        try:
            assert not any(base.opened().store.state().documents.values())
        finally:
            base.close()
    assert {path.rpartition("/")[2] for _, path in double.requests} == {"search.post.search"}


def test_the_executor_is_told_the_service_and_may_sign_in_where_there_is_no_key(
    tmp_path: Path, resources: list[str]
) -> None:
    keyless = settings(tmp_path, "https://my.search.windows.net")
    keyed = settings(tmp_path, "https://my.search.windows.net", SENTINEL_AZURE_SEARCH_KEY="the-key")
    local = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
    for wanted in (keyless, keyed):
        assert told_settings(knowledge_configuration(wanted)).knowledge == wanted.knowledge
    assert "IDENTITY_ENDPOINT" in knowledge_environment(keyless)
    assert "IDENTITY_ENDPOINT" not in {**knowledge_environment(keyed), **knowledge_environment(local)}
    assert resources == []
