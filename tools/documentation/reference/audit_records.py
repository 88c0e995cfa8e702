"""`docs/reference/audit-records.md`: every kind of record that the journal holds, from the classes that write them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from sentinel_rag.audit import (
    approval_events,
    events,
    flow_events,
    key_events,
    policy_events,
    tool_events,
    upkeep_events,
)
from tools.documentation.reference import markdown

INTRODUCTION = """
Every kind of record. Beside the fields named here each has `kind`, `audit_id`, `ts` and its place in the chain. A
kind's name and fields stay for ever, because old records must still be read. `sentinel audit show` prints them,
`sentinel audit export` writes them; [the audit journal](../audit.md) tells what proves them.
"""

GROUPS: tuple[tuple[str, ModuleType], ...] = (
    ("Calls and sessions", events),
    ("Information flow", flow_events),
    ("Approvals", approval_events),
    ("Keys and requests", key_events),
    ("The policy", policy_events),
    ("Tool definitions", tool_events),
    ("The journal itself", upkeep_events),
)


def page(_: Path) -> str:
    parts: list[str] = []
    for title, module in GROUPS:
        if found := list(kinds(module)):
            parts.append(f"## {title}")
            for kind in found:
                parts += [f"### {kind.kind}", _said(kind), f"Fields: {markdown.codes(_fields(kind))}."]
    return markdown.page("Audit records", INTRODUCTION, parts)


def kinds(module: ModuleType) -> Iterable[Any]:
    """The record classes that `module` defines, in their order there."""
    return (
        each
        for each in vars(module).values()
        if inspect.isclass(each)
        and each.__module__ == module.__name__
        and dataclasses.is_dataclass(each)
        and isinstance(getattr(each, "kind", None), str)
        and hasattr(each, "fields")
    )


def _fields(kind: Any) -> list[str]:
    """The keys that the record's own `fields` gives, those of a part that may be missing first."""
    found: list[str] = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind.fields)))):
        if isinstance(node, ast.Return | ast.AnnAssign):
            given = node.value.orelse if isinstance(node.value, ast.IfExp) else node.value
            assert isinstance(given, ast.Dict), f"{kind.__name__}.fields is not made of one dictionary"
            found += [key.value for key in given.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return found


def _said(kind: Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())
