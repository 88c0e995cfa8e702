"""Which columns of a wide union the rest of the query can still see.

A union of all tables has over a thousand columns, and the engine takes seconds to plan it. Most such queries count or
pick a few columns right after, so the others can be left out of every input without changing the answer.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form

_PASSING = (ir.Where, ir.Extend, ir.Sort, ir.Top, ir.Take)
_CLOSING = (ir.Project, ir.Summarize, ir.Distinct, ir.Count)


def needed_columns(following: list[ir.Operator]) -> frozenset[str] | None:
    """The names that `following` may read of its input, or None if it may read or return any."""
    found: set[str] = set()
    for operator in following:
        if not isinstance(operator, (*_PASSING, *_CLOSING)) or not _collect(operator, found):
            return None
        if isinstance(operator, _CLOSING):
            return frozenset(found)
    return None


def _collect(node: Any, found: set[str]) -> bool:
    """Adds the names that `node` reads; False if it reads columns that it does not name."""
    if isinstance(node, ir.Wildcard):
        return False
    if isinstance(node, ir.Query):
        return True  # a nested query has an input of its own
    if isinstance(node, (ir.ColumnRef, ir.LetRef)):
        found.add(node.name)
    if isinstance(node, ir.FunctionCall):
        name = node.name.lower()
        if name == "pack_all":
            return False
        if name in ("column_ifexists", "columnifexists") and node.args and isinstance(node.args[0], ir.Literal):
            found.add(str(node.args[0].value))
        if name == "ingestion_time":
            found.add("TimeGenerated")
    if isinstance(node, (list, tuple)):
        return all(_collect(one, found) for one in node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return all(_collect(getattr(node, field.name), found) for field in dataclasses.fields(node))
    return True
