"""Evaluates a KQL expression through the registry and DuckDB alone, with cells as Azure writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb

from kql_duckdb.expressions import Typed, column, literal, microseconds, quote_name, type_literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall, Context
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.parser import parse
from kql_duckdb.time_texts import timespan_text
from kql_duckdb.types import KustoType

Cell = bool | int | float | str | None
NOW = datetime(2024, 5, 6, 7, 8, 9)
CONTEXT = Context(now=literal(NOW, KustoType.DATETIME), names={"current_database": "logs"})


def value_of(node: ast.Literal) -> Any:
    """The Python value of a literal of the syntax tree."""
    is_span = node.kind == "timespan" and node.value is not None
    return timedelta(microseconds=node.value // 10) if is_span else node.value


class Evaluation:
    """One expression bound to SQL. With `as_columns` its literals are columns of a row, so that nothing is constant."""

    def __init__(self, as_columns: bool) -> None:
        self._as_columns = as_columns
        self.columns: list[Typed] = []

    def bind(self, node: ast.Expression) -> Typed:
        if isinstance(node, ast.Literal):
            return self._literal(node)
        if isinstance(node, ast.TypeOf):
            return type_literal(KustoType(node.types[0]))
        if isinstance(node, ast.Call):
            function = registry.scalar(node.name)
            if function is None:
                raise registry.unknown(node.name)
            arguments = tuple(self.bind(one.value) for one in node.arguments)
            names = tuple(one.name for one in node.arguments)
            return function.build(BoundCall(node.name, arguments, names if any(names) else (), CONTEXT))
        parts: dict[type, Callable[[Any], tuple[str, list[ast.Expression]]]] = {
            ast.Binary: lambda one: (one.operator, [one.left, one.right]),
            ast.Operation: lambda one: (one.operator, list(one.operands)),
            ast.Index: lambda one: ("index", [one.value, one.index]),
            ast.Member: lambda one: ("member", [one.value, ast.Literal("string", one.name)]),
        }
        name, operands = parts[type(node)](node)
        function = registry.scalar(f"operator:{name}")
        assert function is not None, name
        values = tuple(self.bind(one) for one in operands)
        if isinstance(node, ast.Member):
            values = (values[0], literal(node.name, KustoType.STRING))
        return function.build(BoundCall(f"operator:{name}", values, (), CONTEXT))

    def _literal(self, node: ast.Literal) -> Typed:
        made = literal(value_of(node), KustoType(node.kind))
        if not self._as_columns:
            return made
        self.columns.append(made)
        return column(quote_name(f"c{len(self.columns)}"), made.type)


def evaluate(connection: duckdb.DuckDBPyConnection, expression: str, *, as_columns: bool = False) -> tuple[str, Cell]:
    """Return the type and the cell of an expression. Raises KqlError where it is refused."""
    printed = parse(f"print {expression}").statements[0]
    assert isinstance(printed, ast.Query)
    source = printed.expression
    assert isinstance(source, ast.Construct)
    evaluation = Evaluation(as_columns)
    made = evaluation.bind(source.columns[0].expression)
    row = ", ".join(f"{one.sql} AS c{place}" for place, one in enumerate(evaluation.columns, start=1)) or "1"
    # A table, since DuckDB folds what it reads of a SELECT of constants.
    connection.execute(f"CREATE OR REPLACE TEMP TABLE one AS SELECT {row}").fetchall()
    (value,) = connection.execute(f"SELECT {made.sql} FROM one").fetchall()[0]
    return made.type.value, cell(made.type, value)


def cell(kind: KustoType, value: Any) -> Cell:
    """A value of DuckDB as the cell that Azure's API writes."""
    if value is None:
        return "" if kind is KustoType.STRING else None
    if kind is KustoType.DYNAMIC:
        held = json.loads(value)
        return (
            held
            if isinstance(held, str)
            else None
            if held is None
            else json.dumps(held, separators=(",", ":"), ensure_ascii=False)
        )
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".") + "Z"
    if isinstance(value, timedelta):
        return timespan_text(microseconds(value) * 10)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value) if isinstance(value, UUID) else value
