"""The tools of a small context: eight that answer most questions, one line each, with the arguments that people name.

Rules and all tools take more than a context under SMALL_CONTEXT_TOKENS can spare beside rows and an answer, and a small
model fills in every optional argument that it sees. What is left out here cannot be asked of such a model; changes are
among it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import OfferedTool
from sentinel_rag.language.text import toml_beside

SMALL_CONTEXT_TOKENS = 16_384
"""Contexts below this get the small profile."""

MOST_TOOLS = 10
_KEPT = ("type", "enum", "items")
_SHIPPED = frozenset(tool.name for tool in SHIPPED_TOOLS)


def small_profile(tools: Sequence[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The offered tools as a small context is told of them: those of the table in its order, with no argument that the
    gateway does not offer, then other makers' tools that only read, with the first sentence of their description.

    At most MOST_TOOLS. Each has the name of an offered tool, and a call that fits it fits the offered one.
    """
    offered = {tool.schema.name: tool for tool in tools}
    told = toml_beside(__package__, "small_profile.toml")
    chosen = [_told(offered[name], **each) for name, each in told.items() if name in offered]
    others = [tool for name, tool in offered.items() if name not in _SHIPPED and tool.reads]
    chosen += [_told(tool, _first_sentence(tool.schema.description), None) for tool in others]
    return tuple(chosen[:MOST_TOOLS])


def _told(tool: OfferedTool, line: str, arguments: Sequence[str] | None) -> OfferedTool:
    schema = tool.schema
    required = schema.required()
    properties: dict[str, JsonValue] = {
        name: {key: part[key] for key in _KEPT if key in part}
        for name, part in schema.parameter_schemas().items()
        if arguments is None or name in arguments or name in required
    }
    parameters: JsonObject = {"type": "object", "properties": properties}
    if required:
        parameters = {**parameters, "required": [name for name in properties if name in required]}
    return replace(tool, schema=replace(schema, description=line, parameters=parameters))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].partition("\n")[0][:120].rstrip(".") + "."
