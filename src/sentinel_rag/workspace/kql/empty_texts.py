"""Kusto's strings are never null: where an operator's SQL makes a null of one, the empty text takes its place.

A union fills the columns that an input lacks, an outer join those of a row without a partner, an aggregate over no
value its result. `scope` puts `FilledTexts` behind these operators, so that comparisons, keys and functions after them
see what Kusto shows. Stored columns, literals and functions are never null already and cost nothing here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.translate import summarize_names  # noqa: TID253

from sentinel_rag.workspace.kql.column_types import expression_type
from sentinel_rag.workspace.kql.extension import AddedOperator, Column, Frame, LibrarySchema, quoted
from sentinel_rag.workspace.kql.spelling import nodes

MAKING_NULLS = (ir.Join, ir.Lookup, ir.Summarize)
"""The library's operators that may put a null into a column of text, beside union."""

_OF_TEXTS = frozenset(("min", "max", "minif", "maxif", "any", "anyif", "take_any", "take_anyif"))


@dataclasses.dataclass(frozen=True)
class FilledTexts(AddedOperator):
    """The same columns, with `''` for null in those of `names`."""

    names: tuple[str, ...]
    keyword = "union, join or summarize"

    def columns(self, before: list[str], tables: LibrarySchema) -> list[str]:
        return list(before)

    def frame(self, before: Frame, tables: Mapping[str, Frame]) -> Frame:
        return dict(before)

    def sql(self, previous: str, before: list[str]) -> str:
        filled = ", ".join(f"coalesce({quoted(name)}, '') AS {quoted(name)}" for name in self.names)
        return f"SELECT * REPLACE ({filled}) FROM {previous}"  # noqa: S608


def filled_after(operator: ir.Operator, before: Frame, after: Frame | None) -> list[ir.Operator]:
    """What stands behind `operator`, between the columns `before` and `after`, so that no text is null."""
    if after is None:
        return []
    return filled([name for name in _made_null(operator, before, list(after)) if after[name] == "string"])


def filled(names: list[str]) -> list[ir.Operator]:
    """The operator for these text columns, or none."""
    return [FilledTexts(tuple(names))] if names else []


def aggregated_text(call: ir.FunctionCall, sql: str) -> str:
    """`sql` of an aggregate, with `''` for null if it is a text; it may stand inside an expression of `summarize`."""
    if call.name.lower() not in _OF_TEXTS or not call.args:
        return sql
    kinds = {node.name: node.kind for node in nodes(call.args[0]) if isinstance(node, Column)}
    return f"coalesce({sql}, '')" if expression_type(call.args[0], kinds, {}) == "string" else sql


def _made_null(operator: ir.Operator, before: Frame, after: list[str]) -> list[str]:
    """The columns in which the operator may leave a null that was in none of its inputs."""
    if isinstance(operator, ir.Join):
        left, right = after[: len(before)], after[len(before) :]
        return {"leftouter": right, "rightouter": left, "fullouter": after}.get(operator.kind, [])
    if isinstance(operator, ir.Lookup):
        return after[len(before) :] if operator.kind == "leftouter" else []
    if isinstance(operator, ir.Summarize):
        _, aggregates = summarize_names(operator, list(before))
        return [name for names in aggregates for name in names]
    return []
