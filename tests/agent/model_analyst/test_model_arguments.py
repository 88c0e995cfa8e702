"""A model's arguments in the types that a tool takes, where what is meant is certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.agent.answers.results import Results, numbered
from sentinel_rag.agent.model_analyst.tools import fitted
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag_testing.scripted_gateway import rows_result

TOOLS = {tool.name: tool for tool in SHIPPED_TOOLS}


def results():
    made = Results()
    call = ToolCall("c1", "s", "query_alerts", {})
    row = {"alert_id": "a-1", "name": "Click", "incident_number": 124}
    made.add(numbered(ToolRun(call, Succeeded(call, rows_result([row]), ""))))
    return made


@pytest.mark.parametrize(
    ("tool", "given", "meant"),
    [
        ("query_incidents", {"limit": "5"}, {"limit": 5}),
        ("query_incidents", {"limit": 5.0, "offset": "10.0"}, {"limit": 5, "offset": 10}),
        ("get_incident_detail", {"incident": 124}, {"incident": "124"}),
        ("get_incident_detail", {"incident": 124.0}, {"incident": "124"}),
        ("query_incidents", {"severity": "high", "status": None, "owner": ""}, {"severity": "High"}),
        ("describe_table", {"table": "SigninLogs", "examples": "true"}, {"table": "SigninLogs", "examples": True}),
        (
            "run_kql_query",
            {"template": "t", "parameters": '{"ip": "1.2.3.4"}'},
            {"template": "t", "parameters": {"ip": "1.2.3.4"}},
        ),
        ("get_alert_events", {"alert_id": "c1.1"}, {"alert_id": "a-1"}),
        ("get_incident_detail", {"incident": "[c1.1]"}, {"incident": "124"}),
        ("query_alerts", {"entity": "c1.1"}, {"entity": "Click"}),
    ],
)
def test_what_is_certain_is_put_into_the_tools_types(tool, given, meant):
    assert fitted(given, TOOLS[tool], results()) == meant


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("query_incidents", {"limit": "many"}),
        ("query_incidents", {"limit": 5.5}),
        ("query_incidents", {"severity": "Critical"}),
        ("query_incidents", {"foo": "bar"}),
        ("get_alert_events", {"alert_id": "c9.1"}),
        ("get_incident_detail", {"incident": ""}),
    ],
)
def test_what_is_not_certain_stays_for_the_tool_to_name(tool, given):
    assert fitted(given, TOOLS[tool], results()) == given


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(SHIPPED_TOOLS), st.data())
def test_fitting_is_total_and_changes_nothing_twice(tool, data):
    names = st.sampled_from([*tool.parameter_schemas(), "other"])
    arguments = data.draw(st.dictionaries(names, VALUES, max_size=4))
    once = fitted(arguments, tool, Results())
    assert fitted(once, tool, Results()) == once
    assert set(once) <= set(arguments)
