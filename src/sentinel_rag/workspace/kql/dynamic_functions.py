"""Dynamic values: arrays, property bags and sets, where duckdb-kql has no mapping or a different one.

Source: the Kusto pages named like the functions. An array is JSON here; what is no array where one is needed gives
null. Sets keep the order in which their elements first stand, which Kusto leaves open.
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
    distinct_in_order,
    first_by,
    json_array,
    json_element,
    json_object,
    number_of,
    scalar,
)

RETURNING_DYNAMIC = frozenset(
    [
        "parse_json",
        "todynamic",
        "parsejson",
        "toobject",
        "pack",
        "pack_array",
        "bag_pack",
        "bag_pack_columns",
        "bag_keys",
        "bag_merge",
        "bag_remove_keys",
        "bag_set_key",
        "bag_zip",
        "array_concat",
        "array_iff",
        "array_iif",
        "array_reverse",
        "array_rotate_left",
        "array_rotate_right",
        "array_shift_left",
        "array_shift_right",
        "array_slice",
        "array_sort_asc",
        "array_sort_desc",
        "array_split",
        "range",
        "repeat",
        "set_difference",
        "set_intersect",
        "set_union",
        "zip",
        "split",
        "extract_all",
        "parse_csv",
        "parse_path",
        "parse_url",
        "parse_urlquery",
        "parse_command_line",
        "unicode_codepoints_from_string",
        "base64_decode_toarray",
    ]
)
"""Functions whose value is a dynamic, which duckdb-kql must know to compare it as one."""


def _parsed(value: str) -> str:
    """Text that is no JSON is kept as a dynamic text, as Kusto does; empty text is null."""
    read = f"coalesce(TRY_CAST({value} AS JSON), to_json(nullif(CAST({value} AS VARCHAR), '')))"
    return f"nullif({read}, CAST('null' AS JSON))"


def _size(array: str) -> str:
    """Null for what is no array."""
    return f"CAST(len({json_array(array)}) AS BIGINT)"


def _sum(array: str) -> str:
    """A real; null if any element is no number."""
    return bound(
        "_l",
        f"list_transform({json_array(array)}, lambda _e: {number_of('_e')})",
        "CASE WHEN len(list_filter(_l, lambda _e: _e IS NULL)) > 0 THEN NULL "
        "ELSE CAST(coalesce(list_sum(_l), 0) AS DOUBLE) END",
    )


def _slice(array: str, start: str, end: str) -> str:
    """Both ends inclusive; what lies outside is cut off."""
    return bound_all(
        "_s",
        "CASE WHEN _s.l IS NULL THEN NULL ELSE to_json(list_slice(_s.l, "
        "greatest(CASE WHEN _s.a < 0 THEN len(_s.l) + _s.a ELSE _s.a END, 0) + 1, "
        "greatest(CASE WHEN _s.b < 0 THEN len(_s.l) + _s.b ELSE _s.b END + 1, 0))) END",
        l=json_array(array),
        a=f"CAST({start} AS BIGINT)",
        b=f"CAST({end} AS BIGINT)",
    )


def _index_of(array: str, value: str, start: str = "0", length: str = "-1", occurrence: str = "1") -> str:
    begin = "CASE WHEN _s.a < 0 THEN greatest(len(_s.l) + _s.a, 0) ELSE _s.a END"
    places = (
        "list_filter(range(len(_s.l)), lambda _i: _s.l[_i + 1] = _s.v "
        f"AND _i >= {begin} AND (_s.n = -1 OR _i < {begin} + _s.n))"
    )
    return bound_all(
        "_s",
        f"CASE WHEN _s.o < 1 OR _s.n < -1 THEN NULL ELSE coalesce({places}[_s.o], -1) END",
        l=json_array(array),
        v=json_element(value),
        a=f"CAST({start} AS BIGINT)",
        n=f"CAST({length} AS BIGINT)",
        o=f"CAST({occurrence} AS BIGINT)",
    )


def _reverse(array: str) -> str:
    return f"to_json(list_reverse({json_array(array)}))"


def _rotate(array: str, count: str, sign: str) -> str:
    turn = f"(({sign}_s.n) % len(_s.l) + len(_s.l)) % len(_s.l)"
    return bound_all(
        "_s",
        f"CASE WHEN len(_s.l) > 0 THEN to_json(list_concat(list_slice(_s.l, {turn} + 1, len(_s.l)), "
        f"list_slice(_s.l, 1, {turn}))) ELSE to_json(_s.l) END",
        l=json_array(array),
        n=f"CAST({count} AS BIGINT)",
    )


def _rotate_left(array: str, count: str) -> str:
    return _rotate(array, count, "")


def _rotate_right(array: str, count: str) -> str:
    return _rotate(array, count, "-")


def _shift(array: str, count: str, default: str, sign: str) -> str:
    """What is shifted in is `default`: null, or an empty text if the array is one of texts."""
    texts = "len(_s.l) > 0 AND len(list_filter(_s.l, lambda _e: json_type(_e) = 'VARCHAR')) = len(_s.l)"
    filler = json_element(default) if default else f"CASE WHEN {texts} THEN to_json('') END"
    size = "least(abs(_s.n), len(_s.l))"
    filling = f"list_transform(range({size}), lambda _i: _s.d)"
    body = (
        f"to_json(CASE WHEN {sign}_s.n >= 0 THEN list_concat(list_slice(_s.l, {size} + 1, len(_s.l)), {filling}) "
        f"ELSE list_concat({filling}, list_slice(_s.l, 1, len(_s.l) - {size})) END)"
    )
    if default:
        return bound_all("_s", body, l=json_array(array), n=f"CAST({count} AS BIGINT)", d=filler)
    filled = bound("_s", f"struct_pack(l := _s.l, n := _s.n, d := {filler})", body)
    return bound_all("_s", filled, l=json_array(array), n=f"CAST({count} AS BIGINT)")


def _shift_left(array: str, count: str, default: str = "") -> str:
    return _shift(array, count, default, "")


def _shift_right(array: str, count: str, default: str = "") -> str:
    return _shift(array, count, default, "-")


def _split(array: str, index: str) -> str:
    """At one index or at each of an array of them; a negative index counts from the end."""
    indices = (
        f"coalesce(list_transform({json_array(index)}, lambda _e: TRY_CAST(CAST(_e AS VARCHAR) AS BIGINT)), "
        f"[TRY_CAST(CAST({index} AS VARCHAR) AS BIGINT)])"
    )
    places = (
        "list_transform(_s.i, lambda _x: least(len(_s.l), "
        "greatest(0, CASE WHEN _x < 0 THEN len(_s.l) + _x ELSE _x END)))"
    )
    pieces = (
        "to_json(list_transform(range(len(_s.p) + 1), lambda _k: list_slice(_s.l, "
        "CASE WHEN _k = 0 THEN 1 ELSE _s.p[_k] + 1 END, "
        "CASE WHEN _k = len(_s.p) THEN len(_s.l) ELSE _s.p[_k + 1] END)))"
    )
    return bound_all(
        "_s",
        "CASE WHEN _s.l IS NULL THEN NULL ELSE "
        + bound("_s", f"struct_pack(l := _s.l, p := {places})", pieces)
        + " END",
        l=json_array(array),
        i=indices,
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


def _choose(condition: str, when_true: str, when_false: str) -> str:
    """Element by element; a value that is no array stands for each place."""

    def at(key: str) -> str:
        return f"CASE WHEN json_type(_s.{key}) = 'ARRAY' THEN _s.{key}l[_i + 1] ELSE _s.{key} END"

    truth = (
        f"CASE WHEN json_type(_s.c[_i + 1]) = 'BOOLEAN' THEN CAST(_s.c[_i + 1] AS VARCHAR) = 'true' "
        f"ELSE {number_of('_s.c[_i + 1]')} <> 0 END"
    )
    chosen = f"CASE WHEN {truth} THEN {at('t')} WHEN NOT ({truth}) THEN {at('f')} END"
    return bound_all(
        "_s",
        f"to_json(CASE WHEN _s.c IS NULL THEN NULL ELSE list_transform(range(len(_s.c)), lambda _i: {chosen}) END)",
        c=json_array(condition),
        t=json_element(when_true),
        f=json_element(when_false),
        tl=json_array(when_true),
        fl=json_array(when_false),
    )


def _repeat(value: str, count: str) -> str:
    return bound_all(
        "_s",
        f"CASE WHEN _s.n >= 0 THEN to_json(list_transform(range(least(_s.n, {MAX_ARRAY})), lambda _i: _s.v)) END",
        v=json_element(value),
        n=f"CAST({count} AS BIGINT)",
    )


def _range(start: str, stop: str, step: str = "") -> str:
    """Numbers, or times and spans; whole numbers stay whole. The step is 1, or 1h for times, unless it is given."""
    whole = "('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT')"
    count = f"least(CAST(floor((_r.b - _r.a) / _r.s) AS BIGINT) + 1, {MAX_ARRAY})"

    def series(kind: str, element: str) -> str:
        default = "3600000000" if kind != "DOUBLE" else "1"
        number = {"DOUBLE": "CAST({0} AS DOUBLE)", "TIMESTAMP": "epoch_us(CAST({0} AS TIMESTAMP))"}.get(
            kind, "epoch_us(CAST({0} AS INTERVAL))"
        )
        width = (
            f"epoch_us(CAST({step} AS INTERVAL))" if step and kind != "DOUBLE" else f"CAST({step or default} AS DOUBLE)"
        )
        return bound_all(
            "_r",
            f"CASE WHEN _r.s = 0 OR _r.s IS NULL THEN NULL ELSE "
            f"list_transform(range(greatest({count}, 0)), lambda _i: {element}) END",
            a=number.format(start),
            b=number.format(stop),
            s=width,
        )

    real = series("DOUBLE", "to_json(_r.a + _i * _r.s)")
    integer = series("DOUBLE", "to_json(CAST(_r.a + _i * _r.s AS BIGINT))")
    moment = series("TIMESTAMP", json_element("make_timestamp(CAST(_r.a + _i * _r.s AS BIGINT))"))
    span = series("INTERVAL", json_element("to_microseconds(CAST(_r.a + _i * _r.s AS BIGINT))"))
    all_whole = " AND ".join(f"typeof({value}) IN {whole}" for value in (start, stop, step) if value)
    return (
        f"to_json(CASE WHEN typeof({start}) = 'TIMESTAMP' THEN {moment} WHEN typeof({start}) = 'INTERVAL' THEN {span} "
        f"WHEN {all_whole} THEN {integer} ELSE {real} END)"
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


def sorted_arrays(call: ir.FunctionCall) -> None:
    """Refuses `array_sort_*` of several arrays where it is no list of columns; one array is left to its row."""
    if sorts_several(call):
        raise KqlUnsupportedError(f"function:{call.name}", hint="name the columns: extend (a, b) = ...")


def sorts_several(call: ir.FunctionCall) -> bool:
    """Whether the call is an `array_sort_*` of more than one array."""
    return len(call.args) > 2 or (len(call.args) == 2 and not _is_bool(call.args[1]))


def _is_bool(node: ir.Expr) -> bool:
    return isinstance(node, ir.Literal) and node.kind == "bool"


def pack_columns(call: ir.FunctionCall) -> str:
    """`bag_pack_columns(A, B)`: the columns under their own names."""
    members = []
    for column in call.args:
        if not isinstance(column, ir.ColumnRef):
            raise KqlUnsupportedError("function:bag_pack_columns", hint="each argument must be a column")
        members.append(f"{quote_string(column.name)}, {json_element(render_expr(column))}")
    return f"json_object({', '.join(members)})"


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("parse_json", _parsed, 1),
    scalar("todynamic", _parsed, 1),
    scalar("parsejson", _parsed, 1),
    scalar("toobject", _parsed, 1),
    scalar("array_length", _size, 1),
    scalar("array_sum", _sum, 1),
    scalar("array_slice", _slice, 3),
    scalar("array_index_of", _index_of, 2, 3, 4, 5),
    scalar("array_reverse", _reverse, 1),
    scalar("array_rotate_left", _rotate_left, 2),
    scalar("array_rotate_right", _rotate_right, 2),
    scalar("array_shift_left", _shift_left, 2, 3),
    scalar("array_shift_right", _shift_right, 2, 3),
    scalar("array_split", _split, 2),
    scalar("array_sort_asc", _sort_ascending, 1, 2),
    scalar("array_sort_desc", _sort_descending, 1, 2),
    scalar("array_iff", _choose, 3),
    scalar("array_iif", _choose, 3),
    scalar("repeat", _repeat, 2),
    scalar("range", _range, 2, 3),
    scalar("bag_keys", _keys, 1),
    scalar("bag_has_key", _has_key, 2),
    scalar("bag_merge", _merge, *range(2, 65)),
    scalar("bag_remove_keys", _remove_keys, 2),
    scalar("bag_set_key", _set_key, 3),
    scalar("bag_zip", _zip, 2),
    scalar("set_union", _union, *range(2, 65)),
    scalar("set_intersect", _intersection, *range(2, 65)),
    scalar("set_difference", _difference, *range(2, 65)),
    scalar("set_equals", _equal_sets, 2),
    scalar("set_has_element", _has_element, 2),
    scalar("jaccard_index", _jaccard, 2),
)
