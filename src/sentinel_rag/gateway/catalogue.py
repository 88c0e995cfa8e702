"""Which tools a caller is offered: those of the policy that their server really serves as it was pinned.

A server's schemas are cut down to the parameters that the policy allows. A schema is a stranger's: what cannot be
understood fits or does not fit, and never raises. Nothing is fetched: a reference leads to a place in the document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import anyio

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.pins import Pins, Quarantined, definition_of
from sentinel_rag.gateway.policy import Parameter, Policy, ToolPolicy
from sentinel_rag.gateway.policy.conditions import TypeName
from sentinel_rag.gateway.upstream import Upstream, UpstreamTool

MAX_DEPTH = 32
"""Steps that are followed through unions and references; beyond them a schema has no type."""

KEPT_KEYS = ("$schema", "$defs", "definitions")
"""What stands beside the parameters and may be needed to read them; `definitions` is the older name of `$defs`."""


def difference(tool: ToolPolicy, schema: Mapping[str, Any]) -> str:
    """Why a call that the policy allows could not be one that the server takes; empty if there is nothing."""
    properties = _properties(schema)
    for parameter in tool.parameters.values():
        if parameter.name not in properties:
            return f"its server has no parameter {parameter.name!r}"
        if not _same_type(parameter, properties[parameter.name], schema, MAX_DEPTH):
            return f"its server gives the parameter {parameter.name!r} another type"
    for name in _required(schema):
        if name not in tool.parameters:
            return f"its server requires {name!r}, which the policy does not have"
    cut = cut_down(tool, schema)
    if any(_at(cut, reference) is None for reference in _references(cut, MAX_DEPTH)):
        return "its server's schema refers to a parameter that the policy does not have"
    return ""


def cut_down(tool: ToolPolicy, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the policy's parameters and no others; the policy's descriptions replace the server's."""
    properties = _properties(schema)
    needed = _required(schema)
    required = [name for name, parameter in tool.parameters.items() if parameter.required or name in needed]
    return {
        "type": "object",
        "properties": {
            name: {
                **_as_object(properties.get(name)),
                **({"description": parameter.description} if parameter.description else {}),
            }
            for name, parameter in tool.parameters.items()
        },
        **({"required": required} if required else {}),
        "additionalProperties": False,
        **{key: schema[key] for key in KEPT_KEYS if key in schema},
    }


def of_policy(tool: ToolPolicy, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the policy itself says of the parameters, and of the server's schema no more than which are required: not a
    word of it."""
    needed = _required(schema)
    required = [name for name, parameter in tool.parameters.items() if parameter.required or name in needed]
    return {
        "type": "object",
        "properties": {name: _said(parameter) for name, parameter in tool.parameters.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _said(parameter: Parameter) -> dict[str, Any]:
    said: dict[str, Any] = {"type": parameter.type.kind.value}
    if parameter.type.items is not None:
        said["items"] = {"type": parameter.type.items.value}
    if parameter.description:
        said["description"] = parameter.description
    return said


def _same_type(parameter: Parameter, schema: Any, root: Mapping[str, Any], depth: int) -> bool:
    """Whether the schema has a value of the policy's type. Unions, and schemas that do not say, may."""
    if schema is True or depth == 0:
        return True
    if not isinstance(schema, dict):
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str) and "type" not in schema:
        return _same_type(parameter, _at(root, reference), root, depth - 1)
    unions = [schema[key] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)]
    if any(unions):
        return any(_same_type(parameter, part, root, depth - 1) for union in unions for part in union)
    declared = schema.get("type")
    types = declared if isinstance(declared, list) else [declared]
    kind = parameter.type.kind
    return declared is None or kind.value in types or (kind is TypeName.INTEGER and TypeName.NUMBER.value in types)


def _references(schema: Any, depth: int) -> Iterator[str]:
    """Every reference by place (`#/...`) in the schema; anchors and other documents are the reader's affair."""
    if depth == 0:
        return
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
            yield reference
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _references(part, depth - 1)


def _at(root: Mapping[str, Any], reference: str) -> Any:
    """What a reference by place leads to; None for nowhere, True for what is not looked up."""
    if not reference.startswith("#/"):
        return root if reference == "#" else True
    found: Any = root
    for step in reference[2:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            return None
    return found


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _as_object(schema: Any) -> Mapping[str, Any]:
    return schema if isinstance(schema, dict) else {}


LIST_SECONDS = 5.0
NOT_READ = "The policy does not describe this tool, and nobody has accepted what its server says of it."


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`offered` is the wire form of each tool that can be called. `withheld` maps a tool of the policy that cannot to
    the reason, and `unreachable` names the servers that did not answer; both are for operators."""

    offered: tuple[dict[str, Any], ...]
    withheld: Mapping[str, str]
    unreachable: frozenset[str]


async def survey(
    policy: Policy, upstreams: Mapping[str, Upstream], pins: Pins, switched_off: Collection[str] = ()
) -> Catalogue:
    """Ask every server, at once, what it serves now; only what is pinned so is offered, and nothing `switched_off`."""
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
        if tool.name in switched_off:
            continue
        if tool.server not in served:
            withheld[tool.name] = "its server does not answer"
        elif tool.name not in served[tool.server]:
            withheld[tool.name] = "its server does not serve it"
        else:
            described = served[tool.server][tool.name]
            reason = difference(tool, described.input_schema) or _change(pins.sha256_of(tool), described)
            if reason:
                withheld[tool.name] = reason
            else:
                offered.append(_wire_form(tool, described, vouched=pins.vouches(tool)))
    wanted = {tool.server for tool in policy.tools.values() if tool.name not in switched_off}
    return Catalogue(tuple(offered), withheld, frozenset(wanted - served.keys()))


def _change(pin: str | Quarantined | None, described: UpstreamTool) -> str:
    """Why a definition may not be shown; empty if it is the pinned one."""
    try:
        same = pin == definition_of(described).sha256
    except ValueError:
        return "its definition cannot be written as JSON"
    return "" if same else "its definition has changed and is not accepted yet"


def _wire_form(tool: ToolPolicy, described: UpstreamTool, *, vouched: bool) -> dict[str, Any]:
    """As an agent sees it. What a stranger's server says of its tool is input, and no model reads it unlabelled: until
    a person has accepted it, the agent is told what the policy says alone."""
    return {
        "name": tool.name,
        "description": tool.description or (described.description if vouched else NOT_READ),
        "parameters": cut_down(tool, described.input_schema) if vouched else of_policy(tool, described.input_schema),
        "aliases": list(tool.aliases),
        "effect": tool.effect.value,
    }
