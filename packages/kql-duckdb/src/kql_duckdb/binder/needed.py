"""Which columns of a wide union the operators behind it read.

A union of every table has thousands of columns, and a statement that names them all for each table takes DuckDB long to
plan. Where a later operator fixes the columns (`project`, `summarize`, `distinct`, `count`), only those that are
named until then are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from kql_duckdb.syntax import ast

_PASSING = (ast.Where, ast.Extend, ast.Sort, ast.Top, ast.Take, ast.Serialize, ast.Sample, ast.Parse, ast.MvExpand)
_CLOSING = (ast.Project, ast.Summarize, ast.Distinct, ast.Count, ast.MakeSeries, ast.TopHitters)
_OF_ALL = frozenset(("pack_all", "bag_pack_columns"))


def needed_columns(following: Sequence[ast.Operator]) -> frozenset[str] | None:
    """The names that are read until an operator fixes the columns; None where all may be."""
    names: set[str] = set()
    for operator in following:
        if not isinstance(operator, (*_PASSING, *_CLOSING)):
            return None
        for node in nodes(operator):
            if isinstance(node, ast.Pattern) or (isinstance(node, ast.Call) and node.name in _OF_ALL):
                return None
            if isinstance(node, ast.Name):
                names.add(node.name)
            elif isinstance(node, ast.Literal) and isinstance(node.value, str):
                names.add(node.value)  # of column_ifexists()
        if _reads_hidden_columns(operator):
            names |= {"TimeGenerated", "_TimeReceived"}
        if isinstance(operator, _CLOSING) and not (isinstance(operator, ast.Project) and operator.keyword != "project"):
            return frozenset(names)
    return None


def _reads_hidden_columns(operator: ast.Operator) -> bool:
    return any(isinstance(node, ast.Call) and node.name == "ingestion_time" for node in nodes(operator))


def nodes(node: Any) -> Iterator[ast.Node]:
    """Every node of a tree, the outermost first."""
    if isinstance(node, tuple):
        for one in node:
            yield from nodes(one)
    elif is_dataclass(node) and isinstance(node, ast.Node):
        yield node
        for field in fields(node):
            yield from nodes(getattr(node, field.name))
