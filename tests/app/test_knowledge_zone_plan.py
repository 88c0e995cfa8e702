"""What the knowledge tool server is told at a start and nobody else is: who may read incidents in, with what."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from sentinel_rag.app.knowledge_zone import knowledge_app
from sentinel_rag.app.plan import Ports, RunPlan, plan_zones
from sentinel_rag.settings import load_settings
from sentinel_rag.tools.knowledge.refresh import Refreshing

WORKSPACE_ID = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d11"


def planned(tmp_path: Path, stack: ExitStack, **environment: str) -> RunPlan:
    settings = load_settings({"SENTINEL_HOME": str(tmp_path), **environment}, tmp_path / "absent")
    return plan_zones(settings, "default", Ports(), stack)


@pytest.mark.requirement("KNOW-2")
def test_the_token_of_surfaces_opens_one_zone_and_no_other_zone_knows_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        plan = planned(tmp_path, stack)
        knowing = [
            zone.name
            for zone in plan.zones
            if plan.knowledge_token in json.dumps([dict(zone.configuration), dict(zone.environment)])
        ]
        assert knowing == ["executor-knowledge"]
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
