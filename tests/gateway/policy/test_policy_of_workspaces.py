"""The shipped policy lets every argument of every tool through, the workspace in one spelling."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, TOOLS_BY_NAME
from sentinel_rag.gateway.policy import Policy


@pytest.mark.requirement("DATA-3")
@pytest.mark.parametrize("tool", [tool.name for tool in SENTINEL_TOOLS])
def test_every_argument_of_a_tool_can_pass(shipped_policy: Policy, tool: str) -> None:
    allowed = shipped_policy.tools[tool].parameters
    assert set(allowed) == set(TOOLS_BY_NAME[tool].parameter_schemas())
    assert "workspace" not in allowed or allowed["workspace"].format == "workspace"
