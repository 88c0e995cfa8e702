"""The tools of a small context: few, short, only what the gateway offers, and every call that fits them fits it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sentinel_rag.agent.models.port import MOST_TOOLS, small_profile
from sentinel_rag.agent.tokens import count_tool, load_counter
from sentinel_rag.agent.tool_runs import READING_TOOLS
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool, ToolSchema

OFFERED = [OfferedTool(tool, tool.name in READING_TOOLS) for tool in SHIPPED_TOOLS]


@pytest.mark.anyio
async def test_eight_reading_tools_in_a_tenth_of_the_tokens() -> None:
    small = small_profile(OFFERED)
    counter = await load_counter()
    assert len(small) == 8
    assert {tool.schema.name for tool in small} <= READING_TOOLS
    assert all("\n" not in tool.schema.description and len(tool.schema.description) < 80 for tool in small)
    assert sum(count_tool(tool.schema, counter) for tool in small) <= 700


def test_a_call_that_fits_the_small_profile_fits_the_offered_tool() -> None:
    offered = {tool.schema.name: tool.schema for tool in OFFERED}
    for tool in small_profile(OFFERED):
        whole = offered[tool.schema.name]
        assert tool.schema.required() == whole.required()
        for name, told in tool.schema.parameter_schemas().items():
            assert told.items() <= whole.parameter_schemas()[name].items()


def test_what_the_gateway_does_not_offer_is_not_told() -> None:
    incidents = next(tool for tool in OFFERED if tool.schema.name == "query_incidents")
    cut = {**incidents.schema.parameters, "properties": {"status": {"type": "string", "enum": ["New"]}}}
    [told] = small_profile([replace(incidents, schema=replace(incidents.schema, parameters=cut))])
    assert dict(told.schema.parameters["properties"]) == {"status": {"type": "string", "enum": ["New"]}}
    assert small_profile([]) == ()


def test_tools_of_other_makers_that_read_come_behind_with_one_sentence() -> None:
    text = "Looks a host up in the inventory. It can be slow, and then it says so.\nMore."
    schema = ToolSchema("cmdb_lookup", text, {"type": "object", "properties": {"host": {"type": "string"}}})
    small = small_profile([OfferedTool(schema, True), OfferedTool(replace(schema, name="cmdb_write"), False), *OFFERED])
    assert [tool.schema.name for tool in small][-1] == "cmdb_lookup"
    assert small[-1].schema.description == "Looks a host up in the inventory."
    assert small[-1].schema.parameters["properties"] == {"host": {"type": "string"}}
    many = [OfferedTool(replace(schema, name=f"t{number}"), True) for number in range(50)]
    assert len(small_profile([*OFFERED, *many])) == MOST_TOOLS
