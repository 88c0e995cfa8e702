"""Which tools a caller is offered: those of the policy that their server really serves as it was pinned, with the
server's schemas cut down to the parameters that the policy allows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.pins import Pins, Quarantined, definition_of
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.schema_fit import cut_down, difference, of_policy
from sentinel_rag.gateway.upstream import Upstream, UpstreamTool

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
