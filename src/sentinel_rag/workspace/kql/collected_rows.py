"""What `make_list` and `make_set` collect, without JSON for every row: a set of five of a million rows needs five.

The values are collected as the column holds them and become JSON elements afterwards. A set looks at the first rows
first, which nearly always hold as many different values as are asked for, and at all rows only if they do not. Both
keep the order in which values first stand.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.sql_forms import MAX_ARRAY, bound, distinct_in_order, json_array, json_element

_FEW = 64


def rows_of(value: str, condition: str = "") -> str:
    """The values that are not null, of all rows or of those that fulfil `condition`, in the order of the rows."""
    only = f" AND ({condition})" if condition else ""
    return f"coalesce(list({value}) FILTER (WHERE {value} IS NOT NULL{only}), [])"


def elements_of(rows: str) -> str:
    """A JSON element for each row."""
    return f"list_transform({rows}, lambda _row: {json_element('_row')})"


def distinct_of(rows: str, size: str | None) -> str:
    """The first `size` different elements of the rows, an array standing for its elements; all where None is given."""
    whole = bound("_rows", rows, _all_distinct("_rows"))
    if size is None:
        return whole
    most = f"least(CAST({size} AS BIGINT), {MAX_ARRAY})"
    head = distinct_in_order(_parts(f"list_slice(_rows, 1, 4 * {most} + {_FEW})"))
    enough = bound("_head", head, f"CASE WHEN len(_head) >= {most} THEN _head ELSE {_all_distinct('_rows')} END")
    return bound("_rows", rows, enough)


def _all_distinct(rows: str) -> str:
    """Of few different values each is looked for; many are sorted, which costs more for each and less for all."""
    ordered = f"list_sort(list_transform(_few, lambda _v: struct_pack(i := list_position({rows}, _v), v := _v)))"
    looked_for = distinct_in_order(_parts(f"list_transform({ordered}, lambda _p: _p.v)"))
    return bound(
        "_few",
        f"list_distinct({rows})",
        f"CASE WHEN len(_few) <= {_FEW} THEN {looked_for} ELSE {distinct_in_order(_parts(rows))} END",
    )


def _parts(rows: str) -> str:
    return f"flatten(list_transform({rows}, lambda _row: coalesce({json_array('_row')}, [{json_element('_row')}])))"
