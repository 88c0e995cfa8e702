"""From settings to models that answer, and the zone that gives the agent tokens for models and nothing else."""

from __future__ import annotations

import json
import socket
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from model_failures import failing
from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag.agent.models.port import ModelRequest, UserMessage, complete
from sentinel_rag.agent.models.retrying import Tier
from sentinel_rag.app.model_access import (
    identity_app,
    model_configuration,
    model_host,
    model_resource,
    needs_identity,
    open_models,
)
from sentinel_rag.app.plan import ListeningSocket, ModelPlan, plan_model
from sentinel_rag.app.zones import BUILDERS
from sentinel_rag.settings import ModelSettings, Secret, bare_environment, load_settings
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.scripted_model import ScriptedModel, text_reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
HELLO = ModelRequest([UserMessage("Hello?")])
RESOURCE = "https://cognitiveservices.azure.com"


class _Credential:
    """A credential of Azure that remembers for what it was asked."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    async def get_token(self, *scopes: str, **_: Any) -> SimpleNamespace:
        self.scopes += scopes
        return SimpleNamespace(token=f"token-{len(self.scopes)}", expires_on=4_000_000_000)


async def test_each_tier_asks_its_own_deployment_at_its_own_price():
    server = ScriptedModel([text_reply("Hi.")], key="the-key", models=frozenset({"big", "little"}))
    with server.running() as url:
        settings = ModelSettings(
            provider="azure",
            url=url,
            key=Secret("the-key"),
            name="big",
            small_name="little",
            api_version="2024-10-21",
            prices={"large": (Decimal("2.50"), Decimal(10)), "small": (Decimal("0.15"), Decimal("0.60"))},
        )
        # Over JSON, as the supervisor hands it to a process.
        models = open_models(json.loads(json.dumps(model_configuration(settings))))
        large = await complete(models.of(Tier.LARGE), HELLO)
        small = await complete(models.of(Tier.SMALL), HELLO)
        await models.aclose()
    assert [request.model for request in server.requests] == ["big", "little"]
    assert large.usage.cost == Decimal("0.000100")  # 20 * 2.50 + 5 * 10 for a million
    assert small.usage.cost == Decimal("0.000006")
    assert (large.usage + small.usage).models == ("big", "little")


async def test_one_model_serves_both_tiers_if_only_one_is_named():
    settings = ModelSettings(provider="openrouter", url="https://openrouter.ai/api/v1", key=Secret("k"), name="m")
    models = open_models(model_configuration(settings))
    assert models.of(Tier.SMALL) is models.of(Tier.LARGE)


async def test_the_agent_enters_azure_with_a_token_that_another_process_holds():
    credential = _Credential()
    server = ScriptedModel([text_reply("Hi.")])
    app = identity_app(credential, resource=RESOURCE, header="only-the-agent")  # type: ignore[arg-type]
    with server.running() as url, serve(app) as identity:
        settings = ModelSettings(provider="azure", url=url, key=None, name="gpt-4o")
        assert needs_identity(settings)
        place = {"endpoint": f"{identity}/msi/token", "header": "only-the-agent"}
        models = open_models(model_configuration(settings, identity=place))
        await complete(models.large, HELLO)
        await models.aclose()
        wrong = open_models(model_configuration(settings, identity={**place, "header": "guessed"}))
        with failing(FailureKind.ACCESS):
            await complete(wrong.large, HELLO)
    assert credential.scopes == [f"{RESOURCE}/.default"]
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer token-1"]


@pytest.mark.parametrize(
    ("address", "resource"),
    [
        ("https://soc.openai.azure.com", "https://cognitiveservices.azure.com"),
        ("https://soc.openai.azure.us", "https://cognitiveservices.azure.us"),
        ("https://soc.openai.azure.cn/openai/v1", "https://cognitiveservices.azure.cn"),
        ("https://azure.us.example.com", "https://cognitiveservices.azure.com"),
    ],
)
def test_the_audience_of_a_token_follows_the_cloud(address: str, resource: str):
    assert model_resource(address) == resource


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://soc.openai.azure.com", "soc.openai.azure.com"),
        ("https://openrouter.ai/api/v1", "openrouter.ai"),
        ("http://127.0.0.1:11434/v1", ""),
        ("http://localhost:8080/v1", ""),
        ("http://[::1]:8080/v1", ""),
    ],
)
def test_who_reads_questions_and_rows_is_named_unless_it_is_this_machine(address: str, host: str):
    assert model_host({"url": address}) == host


@pytest.mark.requirement("CHAT-2")
def test_the_rounds_of_tool_calls_are_a_setting_that_reaches_the_agent(tmp_path):
    environment = {"SENTINEL_MODEL": "openai-compatible", "SENTINEL_MODEL_URL": "http://127.0.0.1:1/v1"}
    named = {**environment, "SENTINEL_MODEL_NAME": "m", "SENTINEL_HOME": str(tmp_path)}
    for given, rounds in ({}, 15), ({"SENTINEL_MAX_TOOL_ROUNDS": "2"}, 2):
        settings = load_settings({**named, **given}, tmp_path / "absent").model_settings
        assert settings is not None
        assert model_configuration(settings)["tool_rounds"] == rounds


def _listener(name: str) -> ListeningSocket:
    return ListeningSocket(socket.socket(), f"http://127.0.0.1:1/{name}")


def test_with_entra_id_the_credential_is_in_another_process_than_the_agent(monkeypatch):
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "client-secret-canary")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other-canary")
    settings = ModelSettings(provider="azure", url="https://soc.openai.azure.us", key=None, name="gpt-4o")
    plan = plan_model(settings, {"log_level": "INFO"}, _listener)
    [zone] = plan.zones
    with zone.listener.socket:
        assert zone.name in BUILDERS
        assert zone.environment["AZURE_CLIENT_SECRET"] == "client-secret-canary"
        assert zone.configuration["resource"] == "https://cognitiveservices.azure.us"
    assert plan.configuration is not None
    assert plan.configuration["identity"] == {
        "endpoint": "http://127.0.0.1:1/model-identity/msi/token",
        "header": zone.configuration["header"],
    }
    handed = json.dumps([plan.configuration, dict(plan.environment)])
    assert "canary" not in handed
    assert plan.environment["HTTPS_PROXY"] == "http://proxy.example:3128"


def test_with_a_key_no_further_process_is_needed(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    settings = ModelSettings(provider="azure", url="https://soc.openai.azure.com", key=Secret("k" * 20), name="gpt-4o")
    plan = plan_model(settings, {}, _listener)
    assert plan.zones == ()
    assert plan.configuration == model_configuration(settings)
    assert plan_model(None, {}, _listener) == ModelPlan((), None, bare_environment())
    assert "HTTPS_PROXY" not in bare_environment()
