"""What an identity may do, found out by reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_estate import Estate, estate
from sentinel_servers import ScriptedArm, ScriptedWire, connected, managed
from starlette.responses import JSONResponse

from sentinel_rag.sentinel.access_checks import check_access
from sentinel_rag.sentinel.rest.incident_client import UPDATE_INCIDENTS, WRITE_COMMENTS, Permissions
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


async def test_every_right_is_tried_and_nothing_is_changed(served: Estate) -> None:
    served.faults()
    async with connected(served.url) as logs, managed(served.url) as rest:
        checks = await check_access(logs, rest)
    assert [(check.name, check.ok, check.next_step) for check in checks] == [
        ("query logs", True, ""),
        ("incidents in the log", True, ""),
        ("read incidents", True, ""),
        ("change incidents", True, ""),
    ]
    assert "rest PUT" not in served.requests()


async def test_without_a_resource_id_the_rest_is_not_tried(served: Estate) -> None:
    async with connected(served.url) as logs:
        checks = await check_access(logs, None)
    assert [check.ok for check in checks] == [True, True, False]
    assert "SENTINEL_WORKSPACE_RESOURCE_ID" in checks[-1].detail


async def test_a_missing_role_is_told_by_its_name() -> None:
    wire, arm = ScriptedWire(), ScriptedArm()
    wire.answers = [JSONResponse({"error": {"code": "InsufficientAccessError", "message": "no"}}, 403)]
    arm.answers = [
        JSONResponse({"error": {"code": "AuthorizationFailed", "message": "no"}}, 403),
        JSONResponse({"value": [{"actions": ["*/read"], "notActions": []}]}),
    ]
    with serve(wire.app()) as logs_url, serve(arm.app()) as arm_url:
        async with connected(logs_url) as logs, managed(arm_url) as rest:
            checks = await check_access(logs, rest)
    assert [check.ok for check in checks] == [False] * 4
    assert "Log Analytics Reader" in checks[0].next_step
    assert "Microsoft Sentinel Reader" in checks[2].next_step
    assert checks[3].detail == f"not allowed: {UPDATE_INCIDENTS}, {WRITE_COMMENTS}"
    assert "Microsoft Sentinel Responder" in checks[3].next_step


@pytest.mark.parametrize(
    ("grants", "allowed"),
    [
        ([{"actions": ["*"], "notActions": []}], True),
        ([{"actions": ["microsoft.securityinsights/incidents/*"]}], True),
        ([{"actions": ["*/write"]}], True),
        ([{"actions": ["*/read"]}], False),
        ([{"actions": ["Microsoft.SecurityInsights/incidents/write/x"]}], False),
        ([{"actions": ["*"], "notActions": ["Microsoft.SecurityInsights/*"]}], False),
        ([{"actions": ["*"], "notActions": ["*/write"]}, {"actions": [UPDATE_INCIDENTS]}], True),
        ([], False),
        ([{"actions": ["Microsoft.SecurityInsights/incidents.write"]}], False),
    ],
    ids=str,
)
def test_actions_are_matched_as_azure_matches_them(grants: list[dict[str, Any]], allowed: bool) -> None:
    assert Permissions.from_items(grants).allows(UPDATE_INCIDENTS) is allowed
