"""`sentinel tools`: what the agent may ask for, what the policy says of it, and which definitions are pinned.

A changed definition is shown whole, as a difference from the accepted one and with invisible characters made visible,
before anything is asked: it was written by somebody who may want it to be accepted.
"""

from __future__ import annotations

import difflib
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS, canonical_tool_name
from sentinel_rag.gateway.policy import Policy, TaintRule, ToolPolicy, load_policy
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table, print_words
from sentinel_rag.surfaces.cli._zones import attached_zones, call_gateway
from sentinel_rag.surfaces.rendering.visible import safe


def run(name: str | None, tool: str | None, *, yes: bool, as_json: bool) -> int:
    """List all tools, describe one, or look after the pins of their definitions."""
    if name in ("pins", "accept"):
        return accept(tool, yes=yes, as_json=as_json) if name == "accept" else show_pins(as_json=as_json)
    if tool is not None:
        raise UsageError("One tool at a time.", next_step=f"Run: sentinel tools {name}")
    settings = load_settings()
    policy = load_policy(settings.policy_file)
    tools = _known_tools(policy)
    off = frozenset() if settings.freeform_kql else OPT_IN_TOOLS
    if name is not None:
        judged = policy.tool(name)
        canonical = canonical_tool_name(name) if judged is None else judged.name
        found = next((tool for tool in tools if tool.name == canonical), None)
        if found is None:
            from difflib import get_close_matches

            close = get_close_matches(name, [tool.name for tool in tools], 1)
            raise UsageError(
                f"There is no tool {name!r}.", next_step=f"Did you mean {close[0]}?" if close else "Run: sentinel tools"
            )
        tools = (found,)
    if as_json:
        print_json([_as_json(tool, policy, off) for tool in tools])
        return 0
    if name is None:
        _print_list(tools, policy, off)
    else:
        _print_tool(tools[0], policy, off)
    return 0


def _known_tools(policy: Policy) -> tuple[ToolSchema, ...]:
    """The tools of this product, and those that only the policy has: of other servers, described by the policy."""
    shipped = {tool.name for tool in SHIPPED_TOOLS}
    others = [tool for tool in policy.tools.values() if tool.name not in shipped]
    return (*SHIPPED_TOOLS, *map(_as_schema, others))


def _as_schema(tool: ToolPolicy) -> ToolSchema:
    properties: dict[str, JsonObject] = {
        name: {"type": parameter.type.kind.value, "description": parameter.description}
        for name, parameter in tool.parameters.items()
    }
    required = [name for name, parameter in tool.parameters.items() if parameter.required]
    parameters: JsonObject = {"type": "object", "properties": properties, "required": required}
    return ToolSchema(tool.name, tool.description, parameters, tool.aliases)


def _print_list(tools: tuple[ToolSchema, ...], policy: Policy, off: frozenset[str]) -> None:
    rows = [
        (
            tool.name,
            ", ".join(tool.parameter_schemas()),
            tool.description,
            "switched off" if tool.name in off else _in_short(policy.tool(tool.name)),
        )
        for tool in tools
    ]
    print_table(("tool", "parameters", "what it does", "policy"), rows)


def _print_tool(tool: ToolSchema, policy: Policy, off: frozenset[str]) -> None:
    print_words(f"{tool.name}: {tool.description}")
    if tool.aliases:
        print_words(f"Also called {', '.join(tool.aliases)}.")
    required = tool.required()
    parameters = [
        (
            key,
            str(schema["type"]) + (" (required)" if key in required else ""),
            _values(schema),
            str(schema.get("description", "")),
        )
        for key, schema in tool.parameter_schemas().items()
    ]
    if parameters:
        print_table(("parameter", "type", "values", "meaning"), parameters)
    judged = policy.tool(tool.name)
    print()
    if tool.name in off:
        print_words("It is switched off, so every call of it is denied; SENTINEL_FREEFORM_KQL=on switches it on.")
    if judged is None:
        print_words("The policy does not name this tool, so every call of it is denied.")
    else:
        rules = [(rule.rule_id, rule.condition, _verdict(rule)) for rule in judged.rules]
        print_table(("rule", "condition", "verdict"), rules, "Rules, the first that holds decides")


def _as_json(tool: ToolSchema, policy: Policy, off: frozenset[str]) -> dict[str, object]:
    judged = policy.tool(tool.name)
    return {
        "name": tool.name,
        "description": tool.description,
        "aliases": list(tool.aliases),
        "parameters": tool.parameters,
        "switched_off": tool.name in off,
        "rules": [
            {"rule_id": rule.rule_id, "condition": rule.condition, "verdict": _verdict(rule)}
            for rule in (() if judged is None else judged.rules)
        ],
    }


def _in_short(judged: ToolPolicy | None) -> str:
    if judged is None:
        return "denied"
    return "; ".join(dict.fromkeys(_verdict(rule) for rule in judged.rules))


def _verdict(rule: TaintRule) -> str:
    if rule.deny:
        return f"denied, {rule.taint_level.name}"
    return f"{'needs approval' if rule.requires_approval else 'allowed'}, {rule.taint_level.name}"


def _values(schema: object) -> str:
    assert isinstance(schema, dict)
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if "maximum" in schema:
        return f"{schema.get('minimum', '')} to {schema['maximum']}"
    return ""


WIDTH = 100
Json = Mapping[str, Any]


def show_pins(*, as_json: bool) -> int:
    """List every pinned tool with its state, and what changed in those that wait."""
    with _gateway() as ask:
        pins = ask("GET", "/v1/pins")["pins"]
    if as_json:
        print_json(pins)
        return 0
    rows = [(pin["tool"], pin["server"], _state(pin), pin["accepted"]["sha256"][:12]) for pin in pins]
    print_table(("tool", "server", "state", "accepted hash"), rows)
    waiting = [pin for pin in pins if pin["waiting"] is not None]
    for pin in waiting:
        print(f"\n{safe(pin['tool'])} of {safe(pin['server'])} is in quarantine: its server now describes it so\n")
        print(changes(pin))
    if waiting:
        print("\nIts calls are denied until: sentinel tools accept TOOL")
    if any(_is_unread(pin) for pin in pins):
        print(
            "\nThe agent is not shown what a server says of a tool that is not read, until: sentinel tools accept TOOL"
        )
    return 0


def _is_unread(pin: Json) -> bool:
    return pin["waiting"] is None and not pin["vouched"]


def _state(pin: Json) -> str:
    return "pinned, not read" if _is_unread(pin) else str(pin["state"])


def accept(tool: str | None, *, yes: bool, as_json: bool) -> int:
    """Accept the new or changed definition of one tool, after showing it; `yes` answers the question."""
    if tool is None:
        raise UsageError("Which tool?", next_step="Run: sentinel tools accept TOOL (sentinel tools pins lists them)")
    with _gateway() as ask:
        pin = _waiting(ask("GET", "/v1/pins")["pins"], tool)
        sha256 = (pin["waiting"] or pin["accepted"])["sha256"]
        if not as_json:
            print(changes(pin) if pin["waiting"] else safe("\n".join(_definition_lines(pin["accepted"]["definition"]))))
            print(f"\n{'new hash' if pin['waiting'] else 'hash'} {sha256}")
        if not yes and not _confirmed():
            print("Nothing was accepted.")
            return 1
        accepted = ask("POST", f"/v1/pins/{pin['server']}/{pin['tool']}", {"sha256": sha256})
    print(json.dumps(accepted, indent=2) if as_json else f"Accepted: {safe(pin['tool'])} may be called again.")
    return 0


def changes(pin: Json) -> str:
    """The difference between the accepted and the waiting definition, line by line, safe to print."""
    before, after = (_definition_lines(pin[name]["definition"]) for name in ("accepted", "waiting"))
    return safe("\n".join(difflib.unified_diff(before, after, "accepted", "now", lineterm="", n=2)))


def _definition_lines(definition: Json) -> list[str]:
    """A definition as people read it: the words wrapped, the schemas indented."""
    lines = ["description:"]
    for paragraph in str(definition["description"]).splitlines() or [""]:
        lines += [f"  {line}" for line in textwrap.wrap(paragraph, WIDTH) or [""]]
    for name in ("inputSchema", "outputSchema", "annotations"):
        text = json.dumps(definition[name], indent=2, sort_keys=True, ensure_ascii=False)
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _waiting(pins: list[Json], tool: str) -> Json:
    named = [pin for pin in pins if tool in (pin["tool"], f"{pin['server']}/{pin['tool']}")]
    if not named:
        raise UsageError(f"No tool {tool!r} is pinned.", next_step="Run: sentinel tools pins")
    found = [pin for pin in named if pin["waiting"] is not None or _is_unread(pin)]
    if not found:
        raise UsageError(f"The definition of {tool!r} has not changed.", next_step="Run: sentinel tools pins")
    if len(found) > 1:
        servers = ", ".join(f"{pin['server']}/{pin['tool']}" for pin in found)
        raise UsageError(f"Several servers have a new or changed {tool!r}.", next_step=f"Name one of: {servers}")
    return found[0]


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to confirm it.", next_step="Look at the difference, then add --yes.")
    return input("Accept this definition? [y/N] ").strip().lower() in ("y", "yes")


@contextmanager
def _gateway() -> Iterator[Any]:
    """A function that asks the gateway as its administrator, after it has looked at its servers again."""
    settings = load_settings()
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set, and the pins of a gateway that runs elsewhere are its operator's.",
            next_step="Use GET and POST /v1/pins there with a key of the scope admin, or unset SENTINEL_URL.",
        )
    with attached_zones(settings, None) as (state, _):
        zone = state.zone("interceptor")
        assert zone is not None

        def ask(method: str, path: str, body: Any = None) -> Any:
            status, answer = call_gateway(zone.url, state.keys["admin"], method, path, body)
            if status == 409:
                raise UsageError(answer["detail"], next_step="Run: sentinel tools pins")
            if status != 200:
                raise UnavailableError(
                    f"The gateway could not do it: {answer.get('detail', status)}", next_step="Run: sentinel status"
                )
            return answer

        call_gateway(zone.url, state.keys["agent"], "GET", "/v1/tools")
        yield ask
