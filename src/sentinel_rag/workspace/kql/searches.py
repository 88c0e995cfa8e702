"""`search`, and `where * has "term"`: rows found by what any of their columns hold.

Kusto's pages "search operator" and "where operator". A bare term is looked for, as `has` does, in the texts of a row:
string, dynamic and guid columns. A term without a letter could also stand in a number or a time, whose text form is
not pinned down, so it is refused unless it is dotted as an address is. `Column:"term"` is `has`; with a star it is a
prefix, suffix or substring.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate.functions import FunctionSpec  # noqa: TID253

from sentinel_rag.workspace.kql.errors import not_supported, unresolved
from sentinel_rag.workspace.kql.extension import Column, Frame, Place, PlacedOperator
from sentinel_rag.workspace.kql.unions import UnionSource

_DOTTED = re.compile(r"\d+(\.\d+){2,}\.?")
_TEXTS = ("string", "dynamic", "guid")
_LABEL = "$table"
_WITHIN = frozenset(
    ("has", "has_cs", "contains", "contains_cs", "hasprefix", "hassuffix", "hasprefix_cs", "hassuffix_cs")
)
_SEPARATOR = "\x01"
ROW_TEXT = "row text"
"""A function of ours; no query can call it, since its name has a space."""


@dataclasses.dataclass(frozen=True)
class SearchRows(PlacedOperator):
    """The rows that a search predicate finds; a string in place of a truth is a term for every text of the row."""

    predicate: ir.Expr
    case_sensitive: bool = False
    kind = "search"
    keeps_label = True

    def resolve(self, place: Place) -> list[ir.Operator]:
        return _with_row_text(_found(self.predicate, place, case_sensitive=self.case_sensitive), place.frame)


@dataclasses.dataclass(frozen=True)
class SearchHere(PlacedOperator):
    """`Table | search ...`: as the operator before it, with the name of the table as first column."""

    rows: SearchRows
    kind = "search"

    def resolve(self, place: Place) -> list[ir.Operator]:
        if not place.label:
            raise not_supported("search", hint="after other operators; write it directly after a table")
        labelled = ir.Extend((ir.NamedExpr(ir.Literal(place.label, "string"), _LABEL),))
        columns = [_LABEL, *place.frame]
        return [self.rows, labelled, ir.Project(tuple(ir.NamedExpr(ir.ColumnRef(name)) for name in columns))]


@dataclasses.dataclass(frozen=True)
class WhereAnyColumn(PlacedOperator):
    """`where` with `* has "term"` somewhere in its predicate."""

    predicate: ir.Expr
    kind = "where *"

    def resolve(self, place: Place) -> list[ir.Operator]:
        return _with_row_text(_any_column(self.predicate, place.frame), place.frame)


def lower_search_head(node: Any, rest: list[Any]) -> ir.Query:
    """`search [in (tables)] predicate | ...` at the beginning of a query."""
    rows, inputs = _parts(node)
    sources = [_table(one) for clause in inputs for one in lower._rule_children(clause)]
    branches = tuple(ir.Query(source, [rows]) for source in sources or [ir.WildcardTableRef("*")])
    return ir.Query(UnionSource(branches, with_source=_LABEL), lower._lower_operators(rest))


def lower_search(node: Any) -> PlacedOperator:
    """`| search predicate`."""
    rows, inputs = _parts(node)
    if inputs:
        raise KqlUnsupportedError("search in", span=lower._span(node), hint="after a table")
    return SearchHere(rows)


def lower_where_any_column(node: Any) -> ir.Operator:
    """A `where` whose predicate mentions `*`."""
    return WhereAnyColumn(lower._lower_expr(lower._rule_children(node)[-1]))


def _parts(node: Any) -> tuple[SearchRows, list[Any]]:
    inputs, predicates, case_sensitive = [], [], False
    for child in lower._rule_children(node):
        kind = lower._cls(child)
        if kind == "SearchOperatorInClause":
            inputs.append(child)
        elif "Parameter" in kind:
            name, _, value = child.getText().partition("=")
            if name != "kind" or value not in ("case_sensitive", "case_insensitive", "default"):
                raise KqlUnsupportedError(f"search {name}", span=lower._span(child))
            case_sensitive = value == "case_sensitive"
        else:
            predicates.append(child)
    text = "".join(child.getText() for child in predicates)
    if text == "*":
        return SearchRows(ir.Literal(True, "bool"), case_sensitive), inputs
    if len(predicates) != 1:
        raise KqlUnsupportedError("search", span=lower._span(node))
    return SearchRows(lower._lower_expr(predicates[0]), case_sensitive), inputs


def _table(node: Any) -> ir.Source:
    text = node.getText()
    if "*" in text:
        return ir.WildcardTableRef(text)
    source: ir.Source = lower._lower_source(node)
    return source


def _found(node: Any, place: Place, *, case_sensitive: bool) -> ir.Expr:
    if isinstance(node, ir.Literal) and node.kind == "string":
        return _has_term(str(node.value), place.frame, "has_cs" if case_sensitive else "has")
    if isinstance(node, ir.BinaryOp) and node.op in ("and", "or"):
        return dataclasses.replace(
            node,
            left=_found(node.left, place, case_sensitive=case_sensitive),
            right=_found(node.right, place, case_sensitive=case_sensitive),
        )
    if isinstance(node, (ir.UnaryOp, ir.FunctionCall)) and getattr(node, "op", getattr(node, "name", "")) == "not":
        inner = node.operand if isinstance(node, ir.UnaryOp) else node.args[0]
        return ir.FunctionCall("not", (_found(inner, place, case_sensitive=case_sensitive),))
    absent = [column for column in _columns(node) if column.name not in place.frame]
    for column in absent:
        if not any(column.name in frame for frame in place.tables.values()):
            raise unresolved("column or scalar", column.name, place.frame, line=column.line, position=column.position)
    if absent:
        return ir.Literal(False, "bool")
    if isinstance(node, ir.BinaryOp) and node.op == ":":
        return _in_column(node, case_sensitive=case_sensitive)
    return _any_column(node, place.frame)


def _in_column(node: ir.BinaryOp, *, case_sensitive: bool) -> ir.Expr:
    suffix = "_cs" if case_sensitive else ""
    if not isinstance(node.right, ir.Literal) or node.right.kind != "string":
        raise not_supported("search :", hint="its right side must be a text")
    text = str(node.right.value)
    operator = _operator_for(text)
    return ir.BinaryOp(operator + suffix, node.left, ir.Literal(text.strip("*"), "string"))


def _operator_for(term: str) -> str:
    """The operator that a term with stars stands for."""
    inner = term.strip("*")
    if "*" in inner or not inner:
        raise not_supported("search", hint="a star inside a term")
    if term.startswith("*") and term.endswith("*"):
        return "contains"
    if term.endswith("*"):
        return "hasprefix"
    return "hassuffix" if term.startswith("*") else "has"


def _any_column(node: Any, frame: Frame) -> ir.Expr:
    """`node` with each `* operator "term"` written out over the texts of the row."""
    if isinstance(node, ir.BinaryOp) and isinstance(node.left, ir.Wildcard):
        if not isinstance(node.right, ir.Literal) or node.right.kind != "string":
            raise not_supported(f"* {node.op}", hint="its right side must be a text")
        return _has_term(str(node.right.value), frame, node.op)
    if isinstance(node, ir.BinaryOp):
        return dataclasses.replace(node, left=_any_column(node.left, frame), right=_any_column(node.right, frame))
    if isinstance(node, ir.FunctionCall):
        return dataclasses.replace(node, args=tuple(_any_column(one, frame) for one in node.args))
    expression: ir.Expr = node
    return expression


def _has_term(term: str, frame: Frame, operator: str) -> ir.Expr:
    if "*" in term:
        base = _operator_for(term)
        operator = base + ("_cs" if operator.endswith("_cs") else "")
        term = term.strip("*")
    if not any(character.isalpha() for character in term) and not _DOTTED.fullmatch(term):
        raise not_supported("search", hint="a term needs a letter, or is an address")
    unknown = [name for name, kind in frame.items() if not kind]
    if unknown:
        raise not_supported("search", hint=f"the type of {unknown[0]} is not known here")
    if operator.removeprefix("!") not in _WITHIN or _SEPARATOR in term:
        raise not_supported(f"* {operator}")
    return ir.BinaryOp(operator, Column(ROW_TEXT, "string"), ir.Literal(term, "string"))


def _with_row_text(predicate: ir.Expr, frame: Frame) -> list[ir.Operator]:
    """The rows that `predicate` finds, with their text beside them for as long as it is looked at."""
    if not any(column.name == ROW_TEXT for column in _columns(predicate)):
        return [ir.Where(predicate)]
    texts = tuple(Column(name, kind) for name, kind in frame.items() if kind in _TEXTS and name != _LABEL)
    text: ir.Expr = ir.FunctionCall(ROW_TEXT, texts) if texts else ir.Literal("", "string")
    named = ir.NamedExpr(text, ROW_TEXT)
    return [ir.Extend((named,)), ir.Where(predicate), ir.ProjectAway((ROW_TEXT,))]


class RowTextSpec(FunctionSpec):
    """The texts of a row as one text: looking through one column costs the engine far less than through sixty.

    The separator is no letter or digit, so no term and no part of one reaches from one column into the next.
    """

    def render(self, args: list[str]) -> str:
        return f"concat_ws('{_SEPARATOR}', {', '.join(args)})"


def _columns(node: Any) -> list[Column]:
    """The columns that an expression reads, not those of nested queries."""
    if isinstance(node, ir.ColumnRef):
        return [node if isinstance(node, Column) else Column(node.name)]
    if isinstance(node, ir.Query):
        return []
    if isinstance(node, (list, tuple)):
        return [column for one in node for column in _columns(one)]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [column for field in dataclasses.fields(node) for column in _columns(getattr(node, field.name))]
    return []
