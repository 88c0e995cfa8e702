"""The gateway tells MCP clients where people decide approvals: on the web surface, if one is served."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sentinel_rag.app.plan import Ports, RunPlan, plan_zones
from sentinel_rag.app.roles import ListenAddress, plan_role
from sentinel_rag.settings import DeploymentSettings, Settings, load_settings
from sentinel_rag.settings.values import Secret


@pytest.fixture
def settings(clean_environment: Path) -> Settings:
    return load_settings()


def page_of(plan: RunPlan) -> object:
    [interceptor] = [zone for zone in plan.zones if zone.name == "interceptor"]
    return interceptor.configuration["approvals"]["page"]


@pytest.mark.requirement("GATE-5")
def test_the_page_is_that_of_the_web_surface_or_of_the_proxy_before_it(settings: Settings) -> None:
    with ExitStack() as stack:
        assert page_of(plan_zones(settings, "default", Ports(), stack)) is None
        served = plan_zones(settings, "default", Ports(web=0), stack)
        [web] = [zone for zone in served.zones if zone.name == "web"]
        assert page_of(served) == f"{web.listener.url}/#/approvals"
        proxied = replace(settings, web_url="https://soc.example")
        assert page_of(plan_zones(proxied, "default", Ports(web=0), stack)) == "https://soc.example/#/approvals"


@pytest.mark.requirement("GATE-5")
def test_an_interceptor_that_runs_apart_tells_the_address_that_people_type(settings: Settings) -> None:
    tools = DeploymentSettings(tools={"files": "http://127.0.0.1:9"}, tools_tokens={"files": Secret("t" * 20)})
    for web_url, page in (("https://soc.example", "https://soc.example/#/approvals"), (None, None)):
        served = replace(settings, deployment=tools, web_url=web_url)
        with ExitStack() as stack:
            plan = plan_role(served, "interceptor", (), "default", ListenAddress(port=0), stack)
            assert page_of(plan) == page


@pytest.mark.requirement("GATE-7")
def test_an_mcp_client_has_a_key_of_its_own_that_only_executes(settings: Settings) -> None:
    with ExitStack() as stack:
        plan = plan_zones(settings, "default", Ports(), stack)
        [interceptor] = [zone for zone in plan.zones if zone.name == "interceptor"]
    [terms] = [key for key in interceptor.configuration["keys"] if key["key_id"] == "mcp"]
    assert terms == {"key_id": "mcp", "key": plan.keys["mcp"], "scopes": ["execute"]}
    assert len(set(plan.keys.values())) == len(plan.keys)
