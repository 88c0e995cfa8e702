"""The names that Kusto gives columns that a query does not name.

A column gives its name to expressions of some functions (`tostring(a)` is `a`) and not to those of others
(`tolower(a)` is `Column1`). Which they are is measured on Kusto, not a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall, Context
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

NAME_PRESERVING: Final = frozenset(
    """tostring toint tolong todouble toreal tobool toboolean todatetime totimespan timespan toguid todecimal tohex
    todynamic toobject parse_json parsejson split bin bin_at floor ceiling round startofday abs sqrt log log10 log2 exp
    exp2 exp10 pow rand gamma loggamma erf erfc sin cos tan asin acos atan atan2 binary_and binary_or binary_xor
    binary_not binary_shift_left binary_shift_right bitset_count_ones format_datetime format_timespan format_bytes
    parse_csv parse_xml totime series_fill_backward series_fill_const series_fill_forward series_fill_linear series_fir
    series_iir""".split()  # noqa: SIM905 - a word list reads better
)
"""Functions whose value is named as their first argument."""

_PREFIXED: Final = {
    "strlen": "strlen",
    "string_size": "string_size",
    "dcount_hll": "dcount_hll",
    "gettype": "type",
    "treepath": "tree",
    "repeat": "repeat",
}
_FIXED: Final = {"hll_merge": "hll_merged_result", "ingestion_time": "$IngestionTime"}
_SORTING: Final = frozenset(("array_sort_asc", "array_sort_desc"))
_NOWHERE: Final = Context(now=literal(None, KustoType.DATETIME))


def expression_name(node: ast.Expression) -> str:
    """The name of the column that an unnamed expression makes; empty if it is a `ColumnN`."""
    if isinstance(node, ast.Name):
        return node.name
    if isinstance(node, ast.Index) and isinstance(node.value, ast.Call) and sorted_names(node.value)[1:]:
        names, place = sorted_names(node.value), getattr(node.index, "value", None)
        return names[place] if isinstance(place, int) and 0 <= place < len(names) else ""
    if isinstance(node, (ast.Member, ast.Index)):
        return _path_name(node)
    if not isinstance(node, ast.Call):
        return ""
    name = node.name.lower()
    first = node.arguments[0] if node.arguments else None
    if registry.aggregate(name) is not None and registry.scalar(name) is None:
        return aggregate_name(node)
    if name in _FIXED:
        return _FIXED[name]
    if first is None:
        return ""
    if name in NAME_PRESERVING or (name in ("make_datetime", "make_timespan") and len(node.arguments) == 1):
        return argument_name(first)
    if name in _PREFIXED:
        return f"{_PREFIXED[name]}_{argument_name(first)}"
    if name in _SORTING:
        return f"{first.value.name}_sorted" if isinstance(first.value, ast.Name) else "array0_sorted"
    return ""


def argument_name(one: ast.Argument) -> str:
    """The name that an argument gives: the one before it, or that of its expression."""
    return one.name if one.name is not None else expression_name(one.value)


def aggregate_name(node: ast.Call) -> str:
    """`count_`, `sum_x`, `percentile_x_95`: what Kusto calls the column of an aggregate."""
    function = registry.aggregate(node.name)
    assert function is not None
    arguments = tuple(
        literal(None, KustoType.LONG).named(argument_name(one))
        if not (isinstance(one.value, ast.Literal) and isinstance(one.value.value, (int, float)))
        else literal(one.value.value, KustoType(one.value.kind)).named("")
        if one.value.kind in ("int", "long", "real")
        else literal(None, KustoType.LONG)
        for one in node.arguments
    )
    return function.default_column_name(BoundCall(node.name, arguments, (), _NOWHERE))


def _path_name(node: ast.Member | ast.Index) -> str:
    base = expression_name(node.value)
    if isinstance(node, ast.Member):
        step = node.name
    elif isinstance(node.index, ast.Literal):
        step = str(node.index.value).replace("-", "_")
    elif isinstance(node.index, ast.Unary) and isinstance(node.index.value, ast.Literal):
        step = f"_{node.index.value.value}"
    else:
        return ""
    return f"{base}_{step}" if base else step


def sorted_names(node: ast.Call) -> list[str]:
    """The names of the columns that an unnamed `array_sort_asc(a, b)` makes; empty for any other function."""
    if node.name.lower() not in _SORTING:
        return []
    return [
        f"{one.value.name}_sorted" if isinstance(one.value, ast.Name) else f"array{place}_sorted"
        for place, one in enumerate(node.arguments)
    ]


class Namer:
    """The output names of one operator, given from left to right.

    A column takes its base name unless an earlier column has it, and then the first of `name1`, `name2` ... that is
    neither taken nor spelled out anywhere in the list. `skip` are names that a `ColumnN` steps past.
    """

    def __init__(self, reserved: Iterable[str] = (), skip: Iterable[str] = ()) -> None:
        self._taken: set[str] = set()
        self._reserved = set(reserved)
        self._skip = set(skip)
        self._positional = 0

    def positional(self) -> str:
        self._positional += 1
        while f"Column{self._positional}" in self._skip:
            self._positional += 1
        return f"Column{self._positional}"

    def take(self, base: str) -> str:
        name, number = base, 0
        while name in self._taken or (number and name in self._reserved):
            number += 1
            name = f"{base}{number}"
        self._taken.add(name)
        return name


def declared_names(columns: Sequence[ast.Named], operator: str) -> list[str]:
    """The names that a list spells out, `name = ...` and bare columns. Raises KqlError for a repeated one."""
    found: list[str] = []
    for one in columns:
        spelled = one.names or ((one.expression.name,) if isinstance(one.expression, ast.Name) else ())
        for name in spelled:
            if name in found:
                raise KqlError(f"'{operator}' names two columns '{name}'.", "SEM0034")
            found.append(name)
    return found
