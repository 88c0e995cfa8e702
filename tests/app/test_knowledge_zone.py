"""The knowledge base of these settings: its playbooks, the embedding model, and what its zone is told."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sentinel_rag.app.knowledge_stores import knowledge_app, open_embedder, shipped_playbooks
from sentinel_rag.app.plan import Ports, RunPlan, plan_zones
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.settings import EmbeddingSettings, Secret, load_settings
from sentinel_rag.tools.knowledge.ingestion import Refreshing
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.scripted_model import ScriptedModel
from sentinel_rag_testing.scripted_model.replies import json_reply

VECTOR = json_reply({"data": [{"index": 0, "embedding": [1.0] * 4}]})


class Identity:
    """The identity endpoint of a machine in Azure. `lifetime_s` of its tokens; negative: it refuses."""

    def __init__(self, lifetime_s: float = 86_400) -> None:
        self.lifetime_s = lifetime_s
        self.asked: list[str] = []

    async def token(self, request: Request) -> JSONResponse:
        self.asked.append(request.query_params["resource"])
        if self.lifetime_s < 0:
            return JSONResponse({"error": "invalid_request", "error_description": "canary of a tenant"}, 400)
        ends = int(time.time() + self.lifetime_s)
        token = {"access_token": "entra-token", "expires_on": str(ends), "token_type": "Bearer"}
        return JSONResponse({**token, "resource": self.asked[-1]})


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[Identity]:
    """The one way to sign in that this process has."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "IDENTITY_", "MSI_")):
            monkeypatch.delenv(name)
    served = Identity()
    with serve(Starlette(routes=[Route("/msi/token", served.token)])) as url:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        yield served


def azure(url: str, key: Secret | None = None) -> EmbeddingSettings:
    return EmbeddingSettings(provider="azure", url=url, name="embed", key=key, dimensions=4)


@pytest.mark.requirement("KNOW-5")
def test_without_a_key_azure_is_entered_with_this_machine_s_sign_in(identity: Identity) -> None:
    server = ScriptedModel(key="entra-token", replies=[VECTOR])
    with server.running() as url, open_embedder(azure(url)) as model:
        assert model.embedder is not None
        assert [model.embedder.embed_query(text).tolist() for text in ("a", "b")] == [[1.0] * 4] * 2
    assert identity.asked == ["https://cognitiveservices.azure.com"]
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer entra-token"}


def test_a_token_that_is_about_to_end_is_renewed(identity: Identity) -> None:
    identity.lifetime_s = 60
    server = ScriptedModel(key="entra-token", replies=[VECTOR])
    with server.running() as url, open_embedder(azure(url)) as model:
        assert model.embedder is not None
        for text in ("a", "b"):
            model.embedder.embed_query(text)
    assert len(identity.asked) == 2


def test_without_a_sign_in_it_is_said_and_nothing_of_the_library_s_text(identity: Identity) -> None:
    identity.lifetime_s = -1
    server = ScriptedModel(replies=[VECTOR])
    with server.running() as url, open_embedder(azure(url)) as model:
        assert model.embedder is not None
        with pytest.raises(SentinelError, match="No Entra ID token for the embedding model could be had") as raised:
            model.embedder.embed_query("a")
    assert "canary" not in f"{raised.value.to_dict()}"
    assert server.requests == []


def test_a_key_is_sent_as_each_service_wants_it() -> None:
    server = ScriptedModel(key="the-key", replies=[VECTOR])
    with server.running() as url:
        for settings in (
            azure(url, Secret("the-key")),
            EmbeddingSettings(
                provider="openai-compatible", url=f"{url}/v1/", name="m", key=Secret("the-key"), dimensions=4
            ),
        ):
            with open_embedder(settings) as model:
                assert model.embedder is not None
                model.embedder.embed_query("a")
    sent = [(request.headers.get("api-key"), request.headers.get("authorization")) for request in server.requests]
    assert sent == [("the-key", None), (None, "Bearer the-key")]


def test_none_is_no_model_and_lacks_nothing() -> None:
    with open_embedder(EmbeddingSettings(provider="none")) as model:
        assert (model.embedder, model.lacking) == (None, "")


def test_the_shipped_playbooks_are_those_of_the_checkout() -> None:
    assert shipped_playbooks() == Path(__file__).resolve().parents[2] / "data" / "playbooks"


WORKSPACE_ID = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d11"


def planned(tmp_path: Path, stack: ExitStack, **environment: str) -> RunPlan:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, tmp_path / "absent")
    return plan_zones(settings, "default", Ports(), stack)


@pytest.mark.requirement("KNOW-2")
def test_the_token_of_surfaces_opens_one_zone_and_the_web_surface_alone_knows_it_too(tmp_path: Path) -> None:
    with ExitStack() as stack:
        settings = load_settings({"SENTINEL_HOME": str(tmp_path)}, tmp_path / "absent")
        plan = plan_zones(settings, "default", Ports(web=0), stack)
        knowing = [
            zone.name
            for zone in plan.zones
            if plan.knowledge_token in json.dumps([dict(zone.configuration), dict(zone.environment)])
        ]
        assert knowing == ["executor-knowledge", "web"]
        executor = next(zone for zone in plan.zones if zone.name == "executor-knowledge")
        assert executor.configuration["admin_token"] == plan.knowledge_token
        assert executor.configuration["token"] != plan.knowledge_token
        sentinel = next(zone for zone in plan.zones if zone.name == "executor-sentinel")
        assert executor.configuration["workspaces"] == sentinel.configuration["workspaces"]


def test_it_holds_the_sign_in_to_azure_only_where_a_workspace_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "canary")
    with ExitStack() as stack:
        here = {zone.name: zone.environment for zone in planned(tmp_path, stack).zones}
        there = {
            zone.name: zone.environment for zone in planned(tmp_path, stack, SENTINEL_WORKSPACE_ID=WORKSPACE_ID).zones
        }
    assert "canary" not in here["executor-knowledge"].values()
    assert {name for name, environment in there.items() if "canary" in environment.values()} == {
        "executor-sentinel",
        "executor-knowledge",
    }


@pytest.mark.parametrize(("minutes", "refreshes"), [("30", True), ("0", False)])
def test_the_refresh_by_the_clock_is_a_setting(tmp_path: Path, minutes: str, refreshes: bool) -> None:
    with ExitStack() as stack:
        plan = planned(tmp_path, stack, SENTINEL_KNOWLEDGE_REFRESH_MINUTES=minutes)
        executor = next(zone for zone in plan.zones if zone.name == "executor-knowledge")
        assert isinstance(knowledge_app(executor.configuration), Refreshing) is refreshes
