"""Which columns `project-away`, `project-keep` and `project-reorder` choose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Column, Relation
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.syntax import ast

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


def matches(pattern: str, name: str) -> bool:
    """Whether `name` fits a pattern, in which a star stands for any run of characters."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def chosen_columns(binder: Binder, relation: Relation, node: ast.Choose) -> list[Column]:
    """The columns that the operator leaves, in their order. Raises KqlError for an unknown name."""
    columns = list(relation.columns)
    chosen: list[Column] = []
    for wanted in node.columns:
        chosen += [column for column in _wanted(binder, columns, wanted) if column not in chosen]
    if node.keyword == "project-keep":
        return [column for column in columns if column in chosen]
    if node.keyword == "project-away":
        return [column for column in columns if column not in chosen]
    return chosen + [column for column in columns if column not in chosen]


def _wanted(binder: Binder, columns: list[Column], wanted: ast.OrderedBy) -> list[Column]:
    node = wanted.expression.expression
    if isinstance(node, ast.Name):
        found = [column for column in columns if column.name == node.name]
        if not found:
            known = (column.name for column in columns)
            raise binder.placed(unresolved("column or scalar", node.name, known), node)
        return found
    assert isinstance(node, ast.Pattern)
    found = [column for column in columns if matches(node.pattern, column.name)]
    if wanted.direction:
        key = _natural if wanted.direction.startswith("granny") else _plain
        found.sort(key=key, reverse=wanted.direction.endswith("desc"))
    return found


def _plain(column: Column) -> Any:
    return column.name


def _natural(column: Column) -> Any:
    """`granny` order: numbers inside names count as numbers, so a20 comes before a100."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", column.name)]
