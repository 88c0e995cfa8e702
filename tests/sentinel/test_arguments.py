"""A bad argument is answered with the field, the reason and what would be taken; nothing is asked of the workspace."""

from __future__ import annotations

from typing import Any

import pytest
from sentinel_servers import Served

from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS, SENTINEL_TOOLS, SEVERITIES, TIME_WINDOWS

pytestmark = pytest.mark.anyio
SERVED = tuple(tool.name for tool in SENTINEL_TOOLS if tool.name not in OPT_IN_TOOLS)


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    ("tool", "arguments", "field", "words", "allowed"),
    [
        ("query_incidents", {"severity": "Critical"}, "severity", "'Critical'", SEVERITIES),
        ("query_incidents", {"severity": "high"}, "severity", "Did you mean 'High'?", SEVERITIES),
        ("query_incidents", {"time_window": "soon"}, "time_window", "no length of time", tuple(TIME_WINDOWS)),
        ("query_incidents", {"time_window": "P1H"}, "time_window", "PT1H", tuple(TIME_WINDOWS)),
        ("query_incidents", {"start_time": "P1H"}, "start_time", "PT1H", ()),
        ("query_incidents", {"start_time": "yesterday"}, "start_time", "ISO 8601", ()),
        ("query_incidents", {"start_time": "2024-07-02T09:45:00"}, "start_time", "zone", ()),
        ("query_incidents", {"end_time": "2024-13-02T09:45:00Z"}, "end_time", "ISO 8601", ()),
        ("query_incidents", {"end_time": "9999-12-31T23:59:59-14:00"}, "end_time", "ISO 8601", ()),
        (
            "query_incidents",
            {"start_time": "2024-07-02T09:45:00Z", "end_time": "2024-07-02T11:45:00+02:00"},
            "end_time",
            "at or before its start",
            (),
        ),
        ("query_incidents", {"severity": "Low", "min_severity": "High"}, "severity", "exclude", ("High",)),
        ("query_incidents", {"limit": 0}, "limit", "at least 1", ()),
        ("query_incidents", {"limit": 101}, "limit", "at most 100", ()),
        ("query_incidents", {"limit": "20"}, "limit", "whole number", ()),
        ("query_incidents", {"limit": True}, "limit", "whole number", ()),
        ("query_incidents", {"limit": 2.5}, "limit", "whole number", ()),
        ("query_incidents", {"title_contains": "x" * 501}, "title_contains", "500 characters", ()),
        ("query_incidents", {"title_contains": ["x"]}, "title_contains", "text", ()),
        ("query_incidents", {"entity": "x" * 501}, "entity", "500 characters", ()),
        ("query_incidents", {"entity": "x", "entity_kind": "computer"}, "entity_kind", "'computer'", None),
        ("query_alerts", {"entitiy": "x"}, "entitiy", "Did you mean 'entity'?", None),
        ("query_alerts", {"entity": "x", "entity_kind": "computer"}, "entity_kind", "'computer'", None),
        ("query_alerts", {"alert_id": "x" * 501}, "alert_id", "500 characters", ()),
        ("query_alerts", {"alert_id": 5}, "alert_id", "text", ()),
        ("query_alerts", {"alert_id": "a\ud800"}, "alert_id", "surrogate", ()),
        ("query_incidents", {"entity": "\udfff"}, "entity", "surrogate", ()),
        ("query_alerts", {"incident": "that one"}, "incident", "no reference", ()),
        ("get_incident_detail", {}, "incident", "needs incident", ()),
        ("get_incident_detail", {"incident": "  "}, "incident", "needs incident", ()),
        ("get_incident_detail", {"incident": 55}, "incident", "text", ()),
        ("get_top_entities", {"kind": "user"}, "kind", "'user'", None),
        ("run_kql_query", {}, "template", "needs template", ()),
        ("run_kql_query", {"template": "raw_signins", "parameters": "x"}, "parameters", "an object", ()),
        ("list_tables", {"limit": 3}, "limit", "no argument 'limit'", ("workspace",)),
        ("list_workspaces", {"limit": 3}, "limit", "takes no arguments", ()),
        ("no_such_tool", {}, "tool_name", "no tool 'no_such_tool'", SERVED),
        ("run_freeform_kql", {"kql": "SigninLogs"}, "tool_name", "switched off", SERVED),
        ("describe_table", {}, "table", "needs table", ()),
        ("describe_table", {"table": "SigninLogs", "examples": "yes"}, "examples", "true or false", ()),
    ],
    ids=str,
)
async def test_a_refusal_lets_a_model_correct_itself(
    wire: Any, tool: str, arguments: dict[str, Any], field: str, words: str, allowed: tuple[str, ...] | None
) -> None:
    error = await Served(wire.url).refusal(tool, **arguments)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, field)
    assert words in error.message
    assert error.next_step
    assert not error.retry_possible
    if allowed is not None:
        assert error.allowed == allowed
    assert wire.requests == []


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    "arguments",
    [
        {"severity": None, "title_contains": "", "owner": "  ", "limit": None},
        {"limit": 20.0},
        {"severity": "High", "min_severity": "Medium"},
        {"start_time": "2024-07-02T09:45:00.1234567Z"},
        {"end_time": "2024-07-02T09:45:00+02:00"},
    ],
    ids=str,
)
async def test_what_models_send_for_nothing_is_taken(real: Any, arguments: dict[str, Any]) -> None:
    await real.ask("query_incidents", **arguments)


@pytest.mark.requirement("TOOL-1")
async def test_aliases_of_the_source_documents_are_the_same_tools(real: Any) -> None:
    for tool in SENTINEL_TOOLS:
        for alias in tool.aliases:
            arguments = {"incident": "55"} if tool.name == "get_incident_detail" else {}
            assert (await real.ask(alias, **arguments)).rows == (await real.ask(tool.name, **arguments)).rows
