"""Sets: arrays of dynamic values without doubles, in the order in which elements first stand, which Kusto leaves open.

Source: the Kusto pages named like the functions.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.sql_forms import (
    WrittenFunction,
    bound_all,
    constant_array,
    distinct_in_order,
    json_array,
    json_element,
    scalar,
)


def _union(*sets: str) -> str:
    return f"to_json({distinct_in_order(f'flatten({constant_array([json_array(each) for each in sets])})')})"


def _intersection(first: str, *others: str) -> str:
    kept = first_list = distinct_in_order(json_array(first))
    for other in others:
        kept = bound_all("_k", "list_filter(_k.a, lambda _e: list_contains(_k.b, _e))", a=kept, b=json_array(other))
    return f"to_json({kept if others else first_list})"


def _difference(first: str, *others: str) -> str:
    kept = distinct_in_order(json_array(first))
    for other in others:
        kept = bound_all("_k", "list_filter(_k.a, lambda _e: NOT list_contains(_k.b, _e))", a=kept, b=json_array(other))
    return f"to_json({kept})"


def _equal_sets(left: str, right: str) -> str:
    return bound_all(
        "_k",
        "len(list_filter(_k.a, lambda _e: NOT list_contains(_k.b, _e))) = 0 "
        "AND len(list_filter(_k.b, lambda _e: NOT list_contains(_k.a, _e))) = 0",
        a=json_array(left),
        b=json_array(right),
    )


def _has_element(array: str, value: str) -> str:
    return f"list_contains({json_array(array)}, {json_element(value)})"


def _jaccard(left: str, right: str) -> str:
    return bound_all(
        "_j",
        "len(list_filter(_j.a, lambda _e: list_contains(_j.b, _e))) / "
        "nullif(len(list_distinct(list_concat(_j.a, _j.b))), 0)",
        a=f"list_distinct({json_array(left)})",
        b=f"list_distinct({json_array(right)})",
    )


SET_FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("set_union", _union, *range(2, 65)),
    scalar("set_intersect", _intersection, *range(2, 65)),
    scalar("set_difference", _difference, *range(2, 65)),
    scalar("set_equals", _equal_sets, 2),
    scalar("set_has_element", _has_element, 2),
    scalar("jaccard_index", _jaccard, 2),
)
