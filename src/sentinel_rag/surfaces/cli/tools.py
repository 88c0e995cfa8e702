"""`sentinel tools`: what the agent may ask for, and what the policy says of it."""

from __future__ import annotations

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS, canonical_tool_name
from sentinel_rag.gateway.policy import Policy, TaintRule, ToolPolicy, load_policy
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table, print_words


def run(name: str | None, tool: str | None, *, yes: bool, as_json: bool) -> int:
    """List all tools, describe one, or look after the pins of their definitions."""
    if name in ("pins", "accept"):
        from sentinel_rag.surfaces.cli import tool_pins

        return tool_pins.accept(tool, yes=yes, as_json=as_json) if name == "accept" else tool_pins.show(as_json=as_json)
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
