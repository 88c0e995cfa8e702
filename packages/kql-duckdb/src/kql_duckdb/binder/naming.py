"""Names of columns: those that Kusto gives where a query names none, and those that a query reads.

A column gives its name to expressions of some functions (`tostring(a)` is `a`) and not to those of others
(`tolower(a)` is `Column1`). Which they are is measured on Kusto, not a rule.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from kql_duckdb.errors import KqlError
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast

NAME_PRESERVING: Final = frozenset(
    """tostring toint tolong todouble toreal tobool toboolean todatetime totimespan timespan toguid todecimal tohex
    todynamic toobject parse_json parsejson split bin bin_at floor ceiling round startofday abs sqrt log log10 log2 exp
    exp2 exp10 pow rand gamma loggamma erf erfc sin cos tan asin acos atan atan2 binary_and binary_or binary_xor
    binary_not binary_shift_left binary_shift_right bitset_count_ones format_datetime format_timespan format_bytes
    parse_csv parse_xml totime series_fill_backward series_fill_const series_fill_forward series_fill_linear series_fir
    series_iir""".split()  # noqa: SIM905 - a word list reads better
)
"""Functions whose value is named as their first argument."""

_PREFIXED: Final = {"strlen": "strlen", "string_size": "string_size", "dcount_hll": "dcount_hll", "gettype": "type",
                    "treepath": "tree", "repeat": "repeat"}  # fmt: skip
_FIXED: Final = {"hll_merge": "hll_merged_result", "ingestion_time": "$IngestionTime"}
_SORTING: Final = frozenset(("array_sort_asc", "array_sort_desc"))


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
    aggregate = registry.aggregate(name)
    if aggregate is not None and registry.scalar(name) is None:
        return aggregate.default_column_name(argument_name(first) if first is not None else "")
    if name in _FIXED:
        return _FIXED[name]
    if first is None:
        return ""
    if name in NAME_PRESERVING or (name in ("make_datetime", "make_timespan") and len(node.arguments) == 1):
        return argument_name(first)
    if name in _PREFIXED:
        return f"{_PREFIXED[name]}_{argument_name(first)}"
    return next(iter(sorted_names(node)), "")


def argument_name(one: ast.Argument) -> str:
    return one.name if one.name is not None else expression_name(one.value)


def _path_name(node: ast.Member | ast.Index) -> str:
    base = expression_name(node.value)
    if isinstance(node, ast.Member):
        step = node.name
    elif isinstance(node.index, ast.Literal):
        step = str(node.index.value).replace("-", "_")
    elif isinstance(node.index, ast.Operation) and isinstance(node.index.operands[0], ast.Literal):
        step = f"_{node.index.operands[0].value}"
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


def fresh(name: str, taken: Container[str]) -> str:
    """The name, or the first of it with a number that is free."""
    numbered = (f"{name}{number or ''}" for number in itertools.count())
    return next(one for one in numbered if one not in taken)


class Namer:
    """The output names of one operator, given from left to right.

    A column takes its base name unless an earlier column has it, and then the first of `name1`, `name2` ... that is
    neither taken nor spelled out anywhere in the list. `skip` are names that a `ColumnN` steps past.
    """

    def __init__(self, reserved: Iterable[str] = (), skip: Iterable[str] = (), first: int = 0) -> None:
        self._taken: set[str] = set()
        self._reserved = set(reserved)
        self._skip = set(skip)
        self._positional = first

    def of(self, one: ast.Named, given: str = "") -> str:
        """The name of a column of a list: its first of several, or the one that Kusto gives."""
        name = given or (one.names and one.names[0]) or expression_name(one.expression)
        return self.take(name or self.positional())

    def positional(self) -> str:
        self._positional += 1
        while f"Column{self._positional}" in self._skip:
            self._positional += 1
        return f"Column{self._positional}"

    def take(self, base: str) -> str:
        name = fresh(base, self._taken | self._reserved) if base in self._taken else base
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


def matches(pattern: str, name: str) -> bool:
    """Whether `name` fits a pattern, in which a star stands for any run of characters."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


# A union of every table has thousands of columns, and a statement that names them all takes DuckDB long to plan. Where
# a later operator fixes the columns, only those that are named until then are written.
_CLOSING = frozenset(("project", "summarize", "distinct", "count", "make-series", "top-hitters", "sample-distinct"))
_PASSING = _CLOSING | frozenset(
    """where filter extend project-rename sort order top take limit sample serialize parse parse-where mv-expand
    mvexpand""".split()  # noqa: SIM905 - a word list reads better
)
OF_ALL_COLUMNS: Final = frozenset(("pack_all", "bag_pack_columns"))
"""Functions that read every column."""


def needed_columns(following: Sequence[ast.Construct]) -> frozenset[str] | None:
    """The names that are read until an operator fixes the columns; None where all may be."""
    names: set[str] = set()
    for operator in following:
        if operator.word not in _PASSING:
            return None
        for node in ast.nodes(operator):
            if isinstance(node, ast.Pattern) or (isinstance(node, ast.Call) and node.name in OF_ALL_COLUMNS):
                return None
            if isinstance(node, ast.Name):
                names.add(node.name)
            elif isinstance(node, ast.Call) and node.name == "ingestion_time":
                names |= {"TimeGenerated", "_TimeReceived"}
            elif isinstance(node, ast.Literal) and isinstance(node.value, str):
                names.add(node.value)  # of column_ifexists()
        if operator.word in _CLOSING:
            return frozenset(names)
    return None
