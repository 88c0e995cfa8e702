"""A loaded policy as frozen values. Whoever holds a `Policy` may rely on it: it was checked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.interceptor.policy.conditions import Expression, ValueType

DEFAULT_SERVER = "sentinel"
"""The MCP server of a tool that names none."""


class Effect(StrEnum):
    """What a call of the tool can change. READ: nothing. WRITE: the operator's own systems. EXTERNAL: it sends data
    out. A tool that does not say is EXTERNAL, the worst."""

    READ = "read"
    WRITE = "write"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. `format` names the canonical form in which its text is judged and forwarded."""

    name: str
    type: ValueType
    required: bool = False
    description: str = ""
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """`condition` is the author's text, `expression` its checked form. `line` is where it stands in the file.

    The first rule of a tool whose condition holds decides: it denies if `deny`, asks for a human if
    `requires_approval`, else allows; `taint_level` labels the result.
    """

    rule_id: str
    condition: str
    expression: Expression
    taint_level: Sensitivity
    requires_approval: bool = False
    deny: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """One tool. `first_match` gives the index of the first rule that holds; see `conditions.compile_rules`."""

    name: str
    description: str
    parameters: Mapping[str, Parameter]
    rules: tuple[Rule, ...]
    first_match: Callable[[Mapping[str, Any]], int] = field(repr=False, compare=False)
    server: str = DEFAULT_SERVER
    effect: Effect = Effect.EXTERNAL
    aliases: tuple[str, ...] = ()
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """`tools` by name, in the order of the file. `sha256` is over the bytes of the file, so it names the version."""

    tools: Mapping[str, ToolPolicy]
    sha256: str
    source: str
    names: Mapping[str, ToolPolicy] = field(repr=False, default_factory=dict)
    """Every name that a caller may use: tools and their aliases. Nothing else is a tool."""

    def tool(self, name: str) -> ToolPolicy | None:
        """The tool with exactly this name or alias; no folding of case, Unicode or white space."""
        return self.names.get(name)

    def servers(self) -> frozenset[str]:
        """The MCP servers that the tools name."""
        return frozenset(tool.server for tool in self.tools.values())
