"""Which tools a caller is offered: those of the policy that their server really serves as it was pinned, with the
server's schemas cut down to the parameters that the policy allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.interceptor.pins import Pins, Quarantined, definition_of
from sentinel_rag.interceptor.policy import Parameter, Policy, ToolPolicy
from sentinel_rag.interceptor.policy.conditions import Kind
from sentinel_rag.interceptor.upstream import Upstream, UpstreamTool

LIST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`offered` is the wire form of each tool that can be called. `withheld` maps a tool of the policy that cannot to
    the reason, and `unreachable` names the servers that did not answer; both are for operators."""

    offered: tuple[dict[str, Any], ...]
    withheld: Mapping[str, str]
    unreachable: frozenset[str]


async def survey(policy: Policy, upstreams: Mapping[str, Upstream], pins: Pins) -> Catalogue:
    """Ask every server, at once, what it serves now; only what is pinned so is offered."""
    served: dict[str, dict[str, UpstreamTool]] = {}

    async def ask(server: str, upstream: Upstream) -> None:
        try:
            tools = await upstream.list_tools(timeout_s=LIST_SECONDS)
            await pins.observe(server, tools)
        except UnavailableError:
            return
        served[server] = {tool.name: tool for tool in tools}

    async with anyio.create_task_group() as group:
        for server in policy.servers() & upstreams.keys():
            group.start_soon(ask, server, upstreams[server])
    offered: list[dict[str, Any]] = []
    withheld: dict[str, str] = {}
    for tool in policy.tools.values():
        if tool.server not in served:
            withheld[tool.name] = "its server does not answer"
        elif tool.name not in served[tool.server]:
            withheld[tool.name] = "its server does not serve it"
        else:
            described = served[tool.server][tool.name]
            difference = _difference(tool, described.input_schema) or _change(pins.sha256_of(tool), described)
            if difference:
                withheld[tool.name] = difference
            else:
                offered.append(_wire_form(tool, described))
    return Catalogue(tuple(offered), withheld, policy.servers() - served.keys())


def _change(pin: str | Quarantined | None, described: UpstreamTool) -> str:
    """Why a definition may not be shown; empty if it is the pinned one."""
    try:
        same = pin == definition_of(described).sha256
    except ValueError:
        return "its definition cannot be written as JSON"
    return "" if same else "its definition has changed and is not accepted yet"


def _difference(tool: ToolPolicy, schema: Mapping[str, Any]) -> str:
    """Why a call that the policy allows could not be one that the server takes; empty if there is nothing."""
    properties = _properties(schema)
    for parameter in tool.parameters.values():
        if parameter.name not in properties:
            return f"its server has no parameter {parameter.name!r}"
        if not _same_type(parameter, properties[parameter.name]):
            return f"its server gives the parameter {parameter.name!r} another type"
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if name not in tool.parameters:
            return f"its server requires {name!r}, which the policy does not have"
    return ""


def _same_type(parameter: Parameter, schema: Any) -> bool:
    """Whether the schema has a value of the policy's type. Unions (`anyOf`) and schemas without a type may."""
    if not isinstance(schema, dict):
        return False
    alternatives = [part for key in ("anyOf", "oneOf") for part in schema.get(key) or []]
    if alternatives:
        return any(_same_type(parameter, part) for part in alternatives)
    declared = schema.get("type")
    types = declared if isinstance(declared, list) else [declared]
    kind = parameter.type.kind
    return declared is None or kind.value in types or (kind is Kind.INTEGER and Kind.NUMBER.value in types)


def _wire_form(tool: ToolPolicy, described: UpstreamTool) -> dict[str, Any]:
    properties = _properties(described.input_schema)
    required = described.input_schema.get("required")
    needed = {name for name, parameter in tool.parameters.items() if parameter.required}
    needed |= {name for name in (required if isinstance(required, list) else []) if name in tool.parameters}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: {**properties[name], **({"description": parameter.description} if parameter.description else {})}
            for name, parameter in tool.parameters.items()
        },
        "required": [name for name in tool.parameters if name in needed],
        "additionalProperties": False,
    }
    for key in ("$defs", "definitions"):
        if key in described.input_schema:
            schema[key] = described.input_schema[key]
    return {
        "name": tool.name,
        "description": tool.description or described.description,
        "parameters": schema,
        "aliases": list(tool.aliases),
        "effect": tool.effect.value,
    }


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
