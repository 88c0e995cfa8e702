"""`docs/reference/tools.md`: the shipped tools, what each takes and gives back, and what the shipped policy says.

Arguments come from the tools' schemas, results from the docstrings that state their shapes, rules from the policy file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from sentinel_rag.contracts import file_tools, knowledge_tools, tool_schemas, web_tools
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, ToolPolicy, load_policy
from tools.documentation.reference import markdown

INTRODUCTION = """
The tools of the four tool servers that are shipped. An agent sees of them what the [policy](../policy.md) in force
lists and its key may call (`sentinel tools`, `GET /v1/tools`); the rules named here are those of the policy as shipped.
Nothing is converted: a number in quotes is a number for clients of MCP alone. Results of the server `sentinel` are rows
with their coverage.
"""

GROUPS: tuple[tuple[str, ModuleType, tuple[ToolSchema, ...]], ...] = (
    ("Server sentinel", tool_schemas, tool_schemas.SENTINEL_TOOLS),
    ("Server knowledge", knowledge_tools, knowledge_tools.KNOWLEDGE_TOOLS),
    ("Server files", file_tools, file_tools.FILE_TOOLS),
    ("Server web", web_tools, web_tools.WEB_TOOLS),
)


def page(repository: Path) -> str:
    policy = load_policy(repository / "config" / "sentinel_config.yaml")
    parts: list[str] = []
    for title, module, tools in GROUPS:
        shapes, rest = result_shapes(module.__doc__ or "", [tool.name for tool in tools])
        parts.append(f"## {title}")
        for tool in tools:
            parts += [f"### {tool.name}", *_tool(tool, shapes.get(tool.name, ""), policy)]
        if rest:
            parts += [f"### Of all results of {title.split()[-1]}", *(_plain(paragraph) for paragraph in rest)]
    return markdown.page("Tools", INTRODUCTION, parts)


def result_shapes(docstring: str, names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """What a contract's docstring says of each tool's result, and what it says after that, of all of them."""
    starts = re.compile(rf"({'|'.join(map(re.escape, names))})\s+(.*)")
    shapes: dict[str, list[str]] = {}
    rest: list[list[str]] = []
    current: list[str] | None = None
    for line in docstring.splitlines():
        if begun := starts.fullmatch(line):
            current = shapes.setdefault(begun[1], [])
            current.append(begun[2])
        elif line.startswith(" ") and current is not None:
            current.append(line.strip())
        elif shapes and line.strip():
            if current is None or current not in rest:
                current = []
                rest.append(current)
            current.append(line.strip())
        elif shapes:
            current = None
    return {name: " ".join(lines) for name, lines in shapes.items()}, [" ".join(lines) for lines in rest]


def _tool(tool: ToolSchema, shape: str, policy: Policy) -> list[str]:
    parts = [tool.description]
    if tool.aliases:
        parts.append(f"Also called {markdown.codes(tool.aliases)}.")
    if tool.parameter_schemas():
        parts.append(markdown.fields(tool.parameters, "argument"))
    else:
        parts.append("Takes no argument.")
    if shape:
        parts.append(f"**Result.** {_plain(shape)}")
    parts.append(_rules(policy.tools.get(tool.name)))
    return parts


def _rules(tool: ToolPolicy | None) -> str:
    if tool is None:
        return "**Policy as shipped.** Not listed: every call is denied (`unknown_tool`)."
    rows = []
    for rule in tool.rules:
        what = "denies" if rule.deny else "asks a person" if rule.requires_approval else "allows"
        if rule.offers_approval and not rule.requires_approval:
            what += "; asks a person where an argument carries more than is accepted"
        rows.append((markdown.code(rule.rule_id), markdown.code(rule.condition), what, rule.taint_level.name))
    head = f"**Policy as shipped.** Effect `{tool.effect.value}`; the first rule that holds decides."
    return f"{head}\n\n" + markdown.table(("rule", "holds if", "what it does", "level"), rows)


def _plain(text: str) -> str:
    """Text of a docstring in Markdown: what looks like a link, a tag or a reference is shown as it stands."""
    return re.sub(r"([\[\]<>|])", r"\\\1", " ".join(text.split()))
