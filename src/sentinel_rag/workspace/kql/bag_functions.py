"""Property bags: reading, merging and writing JSON objects, and paths whose key a row holds.

Source: the Kusto pages named like the functions. What is no bag where one is needed gives null.
"""

from __future__ import annotations

from collections.abc import Callable

from duckdb_kql import ir, translate  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import quote_string, render_expr  # noqa: TID253

from sentinel_rag.workspace.kql.column_types import expression_type
from sentinel_rag.workspace.kql.sql_forms import (
    MAX_ARRAY,
    WrittenFunction,
    bound,
    bound_all,
    constant_array,
    first_by,
    json_array,
    json_element,
    json_object,
    scalar,
)


def _keys(bag: str) -> str:
    """The names at the top of a property bag; null for anything else."""
    return bound("_o", json_object(bag), "CASE WHEN _o IS NOT NULL THEN to_json(json_keys(_o)) END")


_POINTER = "'/' || replace(replace({0}, '~', '~0'), '/', '~1')"


def path_with_text_keys(node: ir.PathAccess, render: Callable[[ir.PathAccess], str]) -> str | None:
    """SQL for a path with a key that a row or a parameter holds, such as `bag[Name]`; None if there is none."""
    if not any(step.index is not None and _is_text(step.index) for step in node.steps):
        return None
    value = render_expr(node.base)
    for step in node.steps:
        if step.index is not None and _is_text(step.index):
            value = f"json_extract({value}, {_POINTER.format(render_expr(step.index))})"
        else:
            value = render(ir.PathAccess(ir.RenderedAggregate(value), (step,)))
    return value


def _is_text(node: ir.Expr) -> bool:
    if getattr(node, "kind", "") == "string" or translate._is_string_expr(node):
        return True
    return isinstance(node, ir.FunctionCall) and expression_type(node, {}, {}) == "string"


def _entries(bag: str) -> str:
    value = f"json_extract(_o, {_POINTER.format('_k')})"
    return bound("_o", bag, f"list_transform(json_keys(_o), lambda _k: struct_pack(k := _k, v := {value}))")


def _bag_of(entries: str) -> str:
    member = "CAST(to_json(_m.k) AS VARCHAR) || ':' || coalesce(CAST(_m.v AS VARCHAR), 'null')"
    members = f"list_transform({entries}, lambda _m: {member})"
    return f"CAST('{{' || array_to_string({members}, ',') || '}}' AS JSON)"


def _has_key(bag: str, key: str) -> str:
    """A key, or a path such as `$.a.b`."""
    path = bound("_p", key, f"CASE WHEN starts_with(_p, '$.') THEN _p ELSE {_POINTER.format('_p')} END")
    return bound_all(
        "_h",
        "CASE WHEN _h.o IS NOT NULL THEN coalesce(json_exists(_h.o, _h.p), false) END",
        o=json_object(bag),
        p=path,
    )


def merged_bags(bags: str, size: str = str(MAX_ARRAY)) -> str:
    """One bag of a list of them, of at most `size` keys; of two values for a key the earlier one stays."""
    entries = first_by(f"flatten(list_transform({bags}, lambda _b: {_entries('_b')}))", "_v.k")
    return _bag_of(f"list_slice({entries}, 1, CAST({size} AS BIGINT))")


def _merge(*bags: str) -> str:
    """The leftmost value of a key wins; what is no bag is left out."""
    return bound(
        "_bags",
        f"list_filter({constant_array([json_object(bag) for bag in bags])}, lambda _b: _b IS NOT NULL)",
        f"CASE WHEN len(_bags) > 0 THEN {merged_bags('_bags')} END",
    )


def _nested(path: str, innermost: str) -> str:
    """`{"a": {"b": innermost}}` as JSON text for the path `$.a.b`."""
    return (
        f"list_reduce(list_reverse(string_split(substr({path}, 3), '.')), "
        "lambda _inner, _step: '{' || CAST(to_json(_step) AS VARCHAR) || ':' || _inner || '}', "
        f"{innermost})"
    )


_PLAIN_PATH = "CASE WHEN contains({0}, '[') THEN error('a path with brackets is not run here') ELSE {0} END"


def _remove_keys(bag: str, keys: str) -> str:
    """Keys at the top, and paths such as `$.a.b`."""
    kept = _bag_of(f"list_filter({_entries('_r.o')}, lambda _m: NOT list_contains(_r.k, _m.k))")
    paths = "list_filter(_r.k, lambda _k: starts_with(_k, '$.') AND json_exists(_r.o, _k))"
    patch = f"CAST({_nested(_PLAIN_PATH.format('_k'), chr(39) + 'null' + chr(39))} AS JSON)"
    patches = f"list_transform({paths}, lambda _k: {patch})"
    removed = f"list_reduce(list_concat([{kept}], {patches}), lambda _a, _b: json_merge_patch(_a, _b))"
    return bound_all(
        "_r",
        f"CASE WHEN _r.o IS NOT NULL THEN {removed} END",
        o=json_object(bag),
        k=f"coalesce(list_transform({json_array(keys)}, lambda _e: _e ->> '$'), [])",
    )


def _set_key(bag: str, key: str, value: str) -> str:
    """A key at the top keeps its place; a path such as `$.a.b` is made as far as it is missing."""
    patch = f"CAST({_nested(_PLAIN_PATH.format('_r.k'), 'CAST(_r.v AS VARCHAR)')} AS JSON)"
    entries = _entries("_r.o")
    replaced = (
        f"list_transform({entries}, "
        "lambda _m: struct_pack(k := _m.k, v := CASE WHEN _m.k = _r.k THEN _r.v ELSE _m.v END))"
    )
    appended = f"list_concat({entries}, [struct_pack(k := _r.k, v := _r.v)])"
    return bound_all(
        "_r",
        "CASE WHEN _r.o IS NULL THEN NULL "
        f"WHEN starts_with(_r.k, '$.') THEN json_merge_patch(_r.o, {patch}) "
        f"WHEN list_contains(json_keys(_r.o), _r.k) THEN {_bag_of(replaced)} ELSE {_bag_of(appended)} END",
        o=json_object(bag),
        k=f"CAST({key} AS VARCHAR)",
        v=f"coalesce({json_element(value)}, CAST('null' AS JSON))",
    )


def _zip(keys: str, values: str) -> str:
    """Keys that are no text are left out with their values; a missing value is null."""
    entries = (
        "list_filter(list_transform(range(len(_z.k)), lambda _i: struct_pack(t := json_type(_z.k[_i + 1]), "
        "k := _z.k[_i + 1] ->> '$', v := _z.v[_i + 1])), lambda _m: coalesce(_m.t = 'VARCHAR', false))"
    )
    return bound_all(
        "_z",
        f"CASE WHEN _z.k IS NOT NULL THEN {_bag_of(entries)} END",
        k=json_array(keys),
        v=json_array(values),
    )


def pack_columns(call: ir.FunctionCall) -> str:
    """`bag_pack_columns(A, B)`: the columns under their own names."""
    members = []
    for column in call.args:
        if not isinstance(column, ir.ColumnRef):
            raise KqlUnsupportedError("function:bag_pack_columns", hint="each argument must be a column")
        members.append(f"{quote_string(column.name)}, {json_element(render_expr(column))}")
    return f"json_object({', '.join(members)})"


BAG_FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("bag_keys", _keys, 1),
    scalar("bag_has_key", _has_key, 2),
    scalar("bag_merge", _merge, *range(2, 65)),
    scalar("bag_remove_keys", _remove_keys, 2),
    scalar("bag_set_key", _set_key, 3),
    scalar("bag_zip", _zip, 2),
)
