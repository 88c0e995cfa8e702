"""The tools are plain data: what a model sees, what is served and what the policy names cannot drift apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sentinel_rag.agent.tokens import count_tool, ready_counter
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_schemas import (
    MAX_LIMIT,
    SENTINEL_TOOLS,
    SEVERITIES,
    TIME_WINDOWS,
    TOOLS_BY_NAME,
    canonical_tool_name,
)


@pytest.mark.requirement("TOOL-1")
def test_every_schema_is_plain_json_schema_of_type_object() -> None:
    for tool in SENTINEL_TOOLS:
        schema: Any = json.loads(json.dumps(tool.parameters))
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert tool.required() <= set(tool.parameter_schemas())
        assert "strict" not in schema
        assert tool.description


@pytest.mark.requirement("TOOL-1")
def test_the_names_of_the_source_document_are_accepted() -> None:
    assert {
        "query_incidents",
        "get_incident_detail",
        "query_alerts",
        "get_alert_trend",
        "get_top_entities",
        "run_kql_query",
        "get_threat_summary",
    } <= set(TOOLS_BY_NAME)
    assert canonical_tool_name("query_sentinel_incidents") == "query_incidents"
    assert canonical_tool_name("get_incident_details") == "get_incident_detail"
    assert canonical_tool_name("query_sentinel_alerts") == "query_alerts"
    assert canonical_tool_name("no_such_tool") == "no_such_tool"


@pytest.mark.requirement("TOOL-1")
def test_windows_thresholds_and_limits_are_as_promised() -> None:
    assert list(TIME_WINDOWS) == ["last_1h", "last_24h", "last_3d", "last_7d", "last_14d", "last_30d"]
    assert SEVERITIES == ("Informational", "Low", "Medium", "High")
    for name in ("query_incidents", "query_alerts", "get_top_entities", "run_kql_query"):
        schemas: Any = TOOLS_BY_NAME[name].parameter_schemas()
        assert schemas["time_window"]["enum"] == list(TIME_WINDOWS)
        assert (schemas["limit"]["default"], schemas["limit"]["maximum"]) == (20, MAX_LIMIT)
    assert MAX_LIMIT == 100


def test_all_tools_together_leave_a_model_its_context() -> None:
    """Model report: 19 tools were 6,110 tokens as sent; a search over every table came after."""
    counter = ready_counter()
    assert counter.exact
    assert sum(count_tool(tool, counter) for tool in SHIPPED_TOOLS) <= 3_520
