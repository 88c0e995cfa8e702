"""`array_sort_asc` and `array_sort_desc`, of one array or of several in the order of the first.

Source: the Kusto pages named like the functions.
"""

from __future__ import annotations

from collections.abc import Callable

from duckdb_kql import ir  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import render_expr  # noqa: TID253

from sentinel_rag.workspace.kql.sql_forms import (
    WrittenFunction,
    bound,
    bound_all,
    constant_array,
    json_array,
    number_of,
    scalar,
)


def _sorted_places(values: str, direction: str, nulls_last: str) -> str:
    """The places, from 1, of the elements in order: numbers, then texts, then everything else.

    Nulls stand at the end that is asked for; equal elements keep their order.
    """
    number = number_of("_p.e")
    text = "CASE WHEN json_type(_p.e) = 'VARCHAR' THEN _p.e ->> '$' END"
    tie = "-_p.i" if direction == "DESC" else "_p.i"

    def sorted_by(key: str) -> str:
        keyed = f"list_transform(_pairs, lambda _p: struct_pack(k := {key}, t := {tie}, i := _p.i))"
        present = f"list_filter({keyed}, lambda _q: _q.k IS NOT NULL)"
        return f"list_transform(list_sort({present}, '{direction}'), lambda _q: _q.i)"

    def those(test: str) -> str:
        return f"list_transform(list_filter(_pairs, lambda _p: {test}), lambda _p: _p.i)"

    others = those(f"_p.e IS NOT NULL AND {number} IS NULL AND json_type(_p.e) <> 'VARCHAR'")
    nulls = those("_p.e IS NULL")
    present = f"list_concat(list_concat({sorted_by(number)}, {sorted_by(text)}), {others})"
    ordered = (
        f"CASE WHEN coalesce(CAST({nulls_last} AS BOOLEAN), true) THEN list_concat({present}, {nulls}) "
        f"ELSE list_concat({nulls}, {present}) END"
    )
    return bound("_pairs", f"list_transform({values}, lambda _e, _i: struct_pack(e := _e, i := _i))", ordered)


def _sort(array: str, direction: str, nulls_last: str) -> str:
    return bound_all(
        "_s",
        f"to_json(list_transform({_sorted_places('_s.l', direction, '_s.nl')}, lambda _i: _s.l[_i]))",
        l=json_array(array),
        nl=nulls_last,
    )


def sorted_together(direction: str) -> Callable[[ir.FunctionCall], str]:
    """SQL for a dynamic that holds the sorted first array and the others in its order.

    An array of another length than the first gives null.
    """

    def write(call: ir.FunctionCall) -> str:
        *arrays, last = call.args
        nulls_last = render_expr(last) if _is_bool(last) else "true"
        if not _is_bool(last):
            arrays.append(last)
        lists = [json_array(render_expr(array)) for array in arrays]
        moved = "CASE WHEN len(_l) = len(_s.first) THEN to_json(list_transform(_s.places, lambda _i: _l[_i])) END"
        return bound_all(
            "_s",
            bound(
                "_s",
                f"struct_pack(first := _s.lists[1], lists := _s.lists, "
                f"places := {_sorted_places('_s.lists[1]', direction, '_s.nl')})",
                f"to_json(list_transform(_s.lists, lambda _l: {moved}))",
            ),
            lists=constant_array(lists),
            nl=nulls_last,
        )

    return write


def _sort_ascending(array: str, nulls_last: str = "true") -> str:
    return _sort(array, "ASC", nulls_last)


def _sort_descending(array: str, nulls_last: str = "true") -> str:
    return _sort(array, "DESC", nulls_last)


def sorted_arrays(call: ir.FunctionCall) -> None:
    """Refuses `array_sort_*` of several arrays where it is no list of columns; one array is left to its row."""
    if sorts_several(call):
        raise KqlUnsupportedError(f"function:{call.name}", hint="name the columns: extend (a, b) = ...")


def sorts_several(call: ir.FunctionCall) -> bool:
    """Whether the call is an `array_sort_*` of more than one array."""
    return len(call.args) > 2 or (len(call.args) == 2 and not _is_bool(call.args[1]))


def _is_bool(node: ir.Expr) -> bool:
    return isinstance(node, ir.Literal) and node.kind == "bool"


SORTING_FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("array_sort_asc", _sort_ascending, 1, 2),
    scalar("array_sort_desc", _sort_descending, 1, 2),
)
