"""Operators that choose among the columns at their place: `project-reorder`, `-keep`, `-away` and `distinct *`.

Kusto's pages of these names. A choice is a column or a pattern with `*`; what it matches is known only at the place.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253

from sentinel_rag.workspace.kql.errors import unresolved
from sentinel_rag.workspace.kql.extension import Place, PlacedOperator
from sentinel_rag.workspace.kql.spelling import unmarked

_ORDERS = ("", "asc", "desc", "granny-asc", "granny-desc")


@dataclasses.dataclass(frozen=True)
class Choice:
    """A name or pattern, the order of what a pattern matches, and where the query has it."""

    column_fields = ("pattern",)
    pattern: str
    order: str = ""
    line: int | None = None
    position: int | None = None


@dataclasses.dataclass(frozen=True)
class ColumnChoice(PlacedOperator):
    """`kind` is the operator's name."""

    kind: str
    choices: tuple[Choice, ...] = ()

    def resolve(self, place: Place) -> list[ir.Operator]:
        columns = list(place.frame)
        if self.kind == "distinct *":
            return [ir.Distinct(_references(columns))]
        return [ir.Project(_references(chosen_columns(self, columns)))]


def _references(columns: list[str]) -> tuple[ir.NamedExpr, ...]:
    return tuple(ir.NamedExpr(ir.ColumnRef(column)) for column in columns)


def chosen_columns(choice: ColumnChoice, columns: list[str]) -> list[str]:
    """The columns that the operator leaves, in order. Raises KqlError for an unknown name."""
    chosen: list[str] = []
    for wanted in choice.choices:
        matches = [name for name in columns if matches_wildcard(wanted.pattern, name) and name not in chosen]
        if not matches and "*" not in wanted.pattern and wanted.pattern not in columns:
            raise unresolved("column or scalar", wanted.pattern, columns, line=wanted.line, position=wanted.position)
        if wanted.order:
            key = _natural if wanted.order.startswith("granny") else str
            matches.sort(key=key, reverse=wanted.order.endswith("desc"))
        chosen.extend(matches)
    if choice.kind == "project-keep":
        return [name for name in columns if name in chosen]
    if choice.kind == "project-away":
        return [name for name in columns if name not in chosen]
    return chosen + [name for name in columns if name not in chosen]


def _natural(name: str) -> Any:
    """`granny` order: numbers inside names count as numbers, so a20 comes before a100."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def matches_wildcard(pattern: str, name: str) -> bool:
    """`a*b` matches what starts with a and ends with b; without a star only the same name matches."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    name = unmarked(name)
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    rest = name[len(parts[0]) : len(name) - len(parts[-1])] if len(name) >= len(parts[0]) + len(parts[-1]) else None
    if rest is None:
        return False
    for part in parts[1:-1]:
        found = rest.find(part)
        if found < 0:
            return False
        rest = rest[found + len(part) :]
    return True


def lower_column_choice(kind: str, node: Any) -> ColumnChoice:
    """`project-reorder`, `project-keep` or `project-away` with its names and patterns."""
    return ColumnChoice(kind, tuple(_choice(kind, child) for child in lower._rule_children(node)))


def _choice(kind: str, node: Any) -> Choice:
    reference, order = node, ""
    if kind == "project-reorder":
        reference = lower._rule_children(node)[0]
        order = node.getText()[len(reference.getText()) :]
        if order not in _ORDERS:
            raise KqlUnsupportedError(f"project-reorder {order}", span=lower._span(node))
    names, text = lower._find_names(reference), reference.getText()
    span = lower._span(reference)
    pattern = text if "*" in text or not names else names[0]
    return Choice(pattern, order, span.line if span else None, span.column if span else None)
