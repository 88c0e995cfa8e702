"""Arrays of dynamic values: cutting, turning, filling and making them.

Source: the Kusto pages named like the functions. An array is JSON here; what is no array where one is needed gives
null.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.sql_forms import (
    MAX_ARRAY,
    WrittenFunction,
    bound,
    bound_all,
    json_array,
    json_element,
    number_of,
    scalar,
)


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


ARRAY_FUNCTIONS: tuple[WrittenFunction, ...] = (
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
    scalar("array_iff", _choose, 3),
    scalar("array_iif", _choose, 3),
    scalar("repeat", _repeat, 2),
    scalar("range", _range, 2, 3),
)
