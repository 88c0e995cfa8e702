"""Aggregates that duckdb-kql has no mapping for, and the collecting ones, whose largest size it does not keep.

Source: the Kusto pages named like the functions. Collections are JSON arrays of what stands in a dynamic, so that times
and spans read as Kusto writes them. Aggregates that keep sketches (`hll`, `tdigest` and their kind) stay refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from duckdb_kql import ir  # noqa: TID253 - this module writes that library's rows
from duckdb_kql.translate.functions import AggregateSpec  # noqa: TID253 - this module writes that library's rows

from sentinel_rag.workspace.kql.bag_functions import merged_bags
from sentinel_rag.workspace.kql.collected_rows import distinct_of, elements_of, rows_of
from sentinel_rag.workspace.kql.sql_forms import (
    MAX_ARRAY,
    WrittenAggregate,
    bound,
    distinct_in_order,
    json_element,
    json_object,
)


def _cut(values: str, size: str) -> str:
    return f"to_json(list_slice({values}, 1, least(CAST({size} AS BIGINT), {MAX_ARRAY})))"


def _list(value: str, size: str = str(MAX_ARRAY)) -> str:
    return f"to_json({elements_of(f'list_slice({rows_of(value)}, 1, least(CAST({size} AS BIGINT), {MAX_ARRAY}))')})"


def _list_if(value: str, condition: str, size: str = str(MAX_ARRAY)) -> str:
    rows = rows_of(value, condition)
    return f"to_json({elements_of(f'list_slice({rows}, 1, least(CAST({size} AS BIGINT), {MAX_ARRAY}))')})"


def _list_with_nulls(value: str, size: str = str(MAX_ARRAY)) -> str:
    return _cut(f"coalesce(list({json_element(value)}), [])", size)


def _set(value: str, size: str | None = None) -> str:
    return _cut(distinct_of(rows_of(value), size), size or str(MAX_ARRAY))


def _set_if(value: str, condition: str, size: str | None = None) -> str:
    return _cut(distinct_of(rows_of(value, condition), size), size or str(MAX_ARRAY))


_PLAIN = frozenset(("string", "long", "int", "real", "bool", "guid"))
_SORTED_UP_TO, _FEW = 10_000, 64


def plain_collection(call: ir.FunctionCall, render: Callable[[ir.Expr], str]) -> str | None:
    """SQL for `make_list` and `make_set` of a column that is known to be no dynamic; None for anything else.

    Of more than ten thousand values with more than 64 different ones these come in the order of the engine, which Kusto
    leaves open: with no JSON before the end it is six times faster on a million rows.
    """
    name = call.name.lower()
    conditional = name.endswith("_if")
    size = call.args[2 if conditional else 1 :]
    if name not in ("make_list", "make_set", "make_list_if", "make_set_if") or len(call.args) < 1 + conditional:
        return None
    if not isinstance(call.args[0], ir.ColumnRef) or getattr(call.args[0], "kind", "") not in _PLAIN or len(size) > 1:
        return None
    value = render(call.args[0])
    only = f" AND ({render(call.args[1])})" if conditional else ""
    values = f"coalesce(list({value}) FILTER (WHERE {value} IS NOT NULL{only}), [])"
    if name.startswith("make_set"):
        looked_for = "list_sort(list_transform(_few, lambda _v: struct_pack(i := list_position(_values, _v), v := _v)))"
        few = f"CASE WHEN len(_few) <= {_FEW} THEN list_transform({looked_for}, lambda _p: _p.v) ELSE _few END"
        many = bound("_few", "list_distinct(_values)", few)
        small = f"len(_values) <= {_SORTED_UP_TO}"
        values = bound("_values", values, f"CASE WHEN {small} THEN {distinct_in_order('_values')} ELSE {many} END")
    return _cut(values, render(size[0]) if size else str(MAX_ARRAY))


def _bag(value: str, size: str = str(MAX_ARRAY)) -> str:
    """Of several values for one key the first stays; Kusto leaves open which."""
    bags = f"coalesce(list({json_object(value)}) FILTER (WHERE {json_object(value)} IS NOT NULL), [])"
    return merged_bags(bags, size)


def _bag_if(value: str, condition: str, size: str = str(MAX_ARRAY)) -> str:
    present = f"{json_object(value)} IS NOT NULL AND ({condition})"
    return merged_bags(f"coalesce(list({json_object(value)}) FILTER (WHERE {present}), [])", size)


def _percentiles_array(value: str, *percents: str) -> str:
    """By nearest rank, as `percentile`. Percentages in one dynamic array are no constants to DuckDB and are refused."""
    single = ", ".join(f"CAST({percent} AS DOUBLE) / 100.0" for percent in percents)
    return f"to_json(quantile_disc({value}, [{single}]))"


def _over(template: str) -> Callable[..., str]:
    """An aggregate whose SQL is plain: `{0}` is its first argument."""
    return template.format


def _if(template: str) -> Callable[..., str]:
    """The same over the rows that fulfil the last argument."""

    def write(*arguments: str) -> str:
        return template.format(*arguments[:-1], where=f" FILTER (WHERE {arguments[-1]})")

    return write


def _aggregate(name: str, write: Callable[..., str], *arities: int, prefix: str | None = None) -> WrittenAggregate:
    return WrittenAggregate(name, "", arities, name_prefix=prefix, write=write)


_ROWS: tuple[WrittenAggregate, ...] = (
    _aggregate("make_list", _list, 1, 2, prefix="list"),
    _aggregate("make_list_if", _list_if, 2, 3, prefix="list"),
    _aggregate("make_list_with_nulls", _list_with_nulls, 1, 2, prefix="list"),
    _aggregate("make_set", _set, 1, 2, prefix="set"),
    _aggregate("make_set_if", _set_if, 2, 3, prefix="set"),
    _aggregate("make_bag", _bag, 1, 2, prefix="bag"),
    _aggregate("make_bag_if", _bag_if, 2, 3, prefix="bag"),
    _aggregate("percentiles_array", _percentiles_array, *range(2, 65), prefix="percentiles"),
    _aggregate("minif", _if("min({0}){where}"), 2),
    _aggregate("maxif", _if("max({0}){where}"), 2),
    _aggregate("stdevp", _over("coalesce(stddev_pop({0}), 0.0)"), 1),
    _aggregate("variancep", _over("coalesce(var_pop({0}), 0.0)"), 1),
    _aggregate("variancepif", _if("coalesce(var_pop({0}){where}, 0.0)"), 2),
    _aggregate("covariance", _over("coalesce(covar_samp({0}, {1}), 0.0)"), 2),
    _aggregate("covarianceif", _if("coalesce(covar_samp({0}, {1}){where}, 0.0)"), 3),
    _aggregate("covariancep", _over("coalesce(covar_pop({0}, {1}), 0.0)"), 2),
    _aggregate("covariancepif", _if("coalesce(covar_pop({0}, {1}){where}, 0.0)"), 3),
    _aggregate("count_distinct", _over("count(DISTINCT {0})"), 1),
    _aggregate("count_distinctif", _if("count(DISTINCT {0}){where}"), 2),
)

_OLD_NAMES = (("makeset", "make_set", 128), ("makelist", "make_list", 128), ("make_dictionary", "make_bag", 128))


def _with_default_size(row: WrittenAggregate, name: str, size: int) -> WrittenAggregate:
    """The older name of a collecting aggregate, which keeps fewer elements unless it is told."""

    def write(value: str, given: str = str(size)) -> str:
        return row.write(value, given)

    return replace(row, name=name, write=write)


def aggregates() -> dict[str, AggregateSpec]:
    """Every row by name."""
    rows: dict[str, AggregateSpec] = {row.name: row for row in _ROWS}
    by_name = {row.name: row for row in _ROWS}
    for name, newer, size in _OLD_NAMES:
        rows[name] = _with_default_size(by_name[newer], name, size)
    named_by_argument = (
        _aggregate("take_anyif", _if("any_value({0}){where}"), 2),
        _aggregate("binary_all_and", _over("bit_and(CAST({0} AS BIGINT))"), 1),
        _aggregate("binary_all_or", _over("bit_or(CAST({0} AS BIGINT))"), 1),
        _aggregate("binary_all_xor", _over("bit_xor(CAST({0} AS BIGINT))"), 1),
    )
    rows |= {row.name: replace(row, name_is_argument=True) for row in named_by_argument}
    rows["anyif"] = _aggregate("anyif", _if("any_value({0}){where}"), 2)
    # What `make_series` collects: the values as they are, nulls with them.
    rows["series_collect"] = _aggregate("series_collect", _over("list({0})"), 1)
    return rows
