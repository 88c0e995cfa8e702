"""`docs/reference/audit-records.md`: every kind of record that the journal holds, from the classes that write them."""

from __future__ import annotations

import dataclasses
import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from sentinel_rag.audit import events
from tools.documentation.reference import markdown

INTRODUCTION = """
Every kind of record. Beside the fields named here each has `kind`, `audit_id`, `ts` and its place in the chain. A
kind's name and fields stay for ever, because old records must still be read. `sentinel audit show` prints them,
`sentinel audit export` writes them; [the audit journal](../audit.md) tells what proves them.
"""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Calls and sessions": ("intent", "outcome", "refusal", "authentication_failed", "session"),
    "Information flow": ("values_named", "handles_resolved", "context_raised"),
    "Approvals": (
        *("preview_read", "approval_asked", "approval_decided", "approval_decision_refused"),
        *("approval_denial_lifted", "approvals_bounded", "approval_lapsed", "approval_notified", "approved_call_told"),
    ),
    "Keys and requests": ("key", "store_changed", "request_refused"),
    "The policy": ("policy_loaded", "policy_refused"),
    "Tool definitions": ("tool_pinned", "tool_quarantined", "tool_accepted"),
    "The journal itself": ("tail_sealed", "sealing", "segment_closed", "pruned", "restored"),
}


def page(_: Path) -> str:
    parts: list[str] = []
    known = {each.kind: each for each in kinds(events)}
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for kind in (known.pop(name) for name in names):
            parts += [f"### {kind.kind}", _said(kind), f"Fields: {markdown.codes(_fields(kind))}."]
    assert not known, f"put into a group of {__name__}: {', '.join(known)}"
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
    """The keys that `fields` of a record gives which holds everything that it may."""
    record = object.__new__(kind)
    for each in dataclasses.fields(kind):
        empty: object = () if str(each.type).startswith("tuple") else defaultdict(str)
        object.__setattr__(record, each.name, empty)
    return list(record.fields())


def _said(kind: Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())
