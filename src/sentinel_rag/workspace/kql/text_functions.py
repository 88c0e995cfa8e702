"""Text: searching, replacing, encoding and measuring strings, where duckdb-kql has no mapping or a different one.

Source: the Kusto pages named like the functions. Positions count characters from 0. Search by terms (`has` and its
kind) is not here but in `text_search`.
"""

from __future__ import annotations

import dataclasses
import re

from duckdb_kql import ir  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import constant_string, render_expr  # noqa: TID253

from sentinel_rag.workspace.kql.literals import TypeName
from sentinel_rag.workspace.kql.sql_forms import (
    WrittenFunction,
    bound,
    bound_all,
    json_array,
    json_element,
    scalar,
)


def text_of(node: ir.Expr) -> str | None:
    """`tostring` of what is surely text or a decimal; None leaves any other to the library.

    A decimal has no zeros at its end, and a column of text needs no look at the type of each value.
    """
    kind = str(getattr(node, "kind", ""))
    if isinstance(node, ir.ColumnRef) and kind == "string":
        return f"coalesce({render_expr(node)}, '')"
    decimal_call = isinstance(node, ir.FunctionCall) and node.name.lower() in ("todecimal", "parse_version")
    if decimal_call or (kind == "decimal" and isinstance(node, (ir.ColumnRef, ir.Literal))):
        plain = "CASE WHEN contains(_d, '.') THEN rtrim(rtrim(_d, '0'), '.') ELSE _d END"
        return f"coalesce({bound('_d', f'CAST({render_expr(node)} AS VARCHAR)', plain)}, '')"
    return None


def with_reals_as_kusto(node: ir.Expr, sql: str) -> str:
    """The library's `tostring` with Kusto's spelling of a real: `1E+21`, `1E-05`, `Infinity`."""
    text = f"CAST({render_expr(node)} AS VARCHAR)"
    spelled = "WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity' ELSE upper({}) END"
    return sql.replace(f"THEN 'NaN' ELSE {text} END", f"THEN 'NaN' {spelled.format(text)}")


def extract(call: ir.FunctionCall) -> str | None:
    """`extract(regex, group, text, typeof(long))`: the text, then converted."""
    if len(call.args) != 4:
        return None
    return _converted(dataclasses.replace(call, args=call.args[:3]), call.args[3])


def _converted(call: ir.FunctionCall, type_: ir.Expr) -> str:
    if not isinstance(type_, TypeName):
        raise KqlUnsupportedError(f"function:{call.name}", hint="the last argument must be typeof(...)")
    if type_.name == "string":
        return str(render_expr(call))
    conversion = "todynamic" if type_.name == "dynamic" else f"to{type_.name}"
    return str(render_expr(ir.FunctionCall(conversion, (call,))))


_JSON_STEP = re.compile(r"""\.([A-Za-z_][A-Za-z0-9_]*)|\[(-?\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")


def extract_json(call: ir.FunctionCall) -> str | None:
    """`extract_json('$.a[0].b', text)` and with `typeof(...)`; the path must be a constant."""
    if len(call.args) not in (2, 3):
        raise KqlUnsupportedError(f"function:{call.name}", hint="it takes 2 or 3 arguments")
    path = constant_string(call.args[0])
    if path is None:
        raise KqlUnsupportedError(f"function:{call.name}", hint="the path must be a constant")
    found = ir.FunctionCall("tostring", (ir.PathAccess(ir.FunctionCall("todynamic", (call.args[1],)), _steps(path)),))
    return _converted(found, call.args[2]) if len(call.args) == 3 else str(render_expr(found))


def _steps(path: str) -> tuple[ir.PathStep, ...]:
    steps: list[ir.PathStep] = []
    place = 1 if path.startswith("$") else 0
    while place < len(path):
        step = _JSON_STEP.match(path, place)
        if step is None:
            raise KqlUnsupportedError("function:extract_json", hint=f"the path '{path}'")
        name, index, single, double = step.groups()
        if index is not None:
            steps.append(ir.PathStep(index=ir.Literal(int(index), "long")))
        else:
            steps.append(ir.PathStep(name=next(part for part in (name, single, double) if part is not None)))
        place = step.end()
    return tuple(steps)


def _compare(left: str, right: str) -> str:
    return bound_all(
        "_s", "CAST(CASE WHEN _s.a < _s.b THEN -1 WHEN _s.a > _s.b THEN 1 ELSE 0 END AS BIGINT)", a=left, b=right
    )


def _index_of(text: str, lookup: str, start: str = "0", length: str = "-1", occurrence: str = "1") -> str:
    """-1 where it is not found; a negative start counts from the end. Each occurrence is looked for from the character
    after the one before it, in `length` characters."""
    if (start, length, occurrence) == ("0", "-1", "1"):
        return f"CAST(position(CAST({lookup} AS VARCHAR) IN CAST({text} AS VARCHAR)) - 1 AS BIGINT)"
    window = "CASE WHEN _w.l = -1 THEN substr(_w.t, _from + 1) ELSE substr(_w.t, _from + 1, _w.l) END"
    following = f"_from + nullif(position(_w.f IN {window}), 0)"
    first = "CASE WHEN _w.s < 0 THEN greatest(length(_w.t) + _w.s, 0) ELSE _w.s END"
    found = f"coalesce(list_reduce(range(_w.o), lambda _from, _each: {following}, {first}) - 1, -1)"
    return bound_all(
        "_w",
        f"CASE WHEN _w.l < -1 OR _w.o < 1 THEN NULL ELSE {found} END",
        t=f"CAST({text} AS VARCHAR)",
        f=f"CAST({lookup} AS VARCHAR)",
        s=f"CAST({start} AS BIGINT)",
        l=f"CAST({length} AS BIGINT)",
        o=f"CAST({occurrence} AS BIGINT)",
    )


def _index_of_regex(text: str, pattern: str, start: str = "0", length: str = "-1", occurrence: str = "1") -> str:
    """What stands before the n-th match is matched too: its length is the place. Matches do not overlap."""
    before = "'(?s)^((?:.*?(?:' || _w.f || ')){' || CAST(_w.o - 1 AS VARCHAR) || '}.*?)(?:' || _w.f || ')'"
    window = "CASE WHEN _w.l = -1 THEN substr(_w.t, _w.s + 1) ELSE substr(_w.t, _w.s + 1, _w.l) END"
    found = bound_all(
        "_m",
        "CASE WHEN regexp_matches(_m.t, _m.p) THEN _m.s + length(regexp_extract(_m.t, _m.p, 1)) ELSE -1 END",
        t=window,
        p=before,
        s="_w.s",
    )
    return bound_all(
        "_w",
        f"CASE WHEN _w.s < 0 OR _w.o < 1 OR _w.l < -1 THEN NULL ELSE {found} END",
        t=text,
        f=pattern,
        s=f"CAST({start} AS BIGINT)",
        l=f"CAST({length} AS BIGINT)",
        o=f"CAST({occurrence} AS BIGINT)",
    )


def _repeated(value: str, count: str, delimiter: str = "''") -> str:
    """More than 1024 repetitions are 1024, as the page of strrep says of its result."""
    return bound_all(
        "_r",
        "CASE WHEN _r.n > 0 THEN repeat(_r.v || _r.d, _r.n - 1) || _r.v ELSE '' END",
        v=f"coalesce(json({json_element(value)}) ->> '$', '')",
        n=f"least(CAST({count} AS BIGINT), 1024)",
        d=delimiter,
    )


def _replace_strings(text: str, lookups: str, rewrites: str) -> str:
    """A lookup takes all its places before the next one looks; one whose rewrite is no text stands as it is.

    Each place is first marked by a character from the end of Unicode's private use, which no later lookup finds.
    """
    pairs = (
        "list_transform(list_filter(list_transform(list_zip(_r.l, _r.w), lambda _p, _i: struct_pack(l := _p[1], "
        "w := _p[2], i := _i)), lambda _p: coalesce(json_type(_p.l) = 'VARCHAR', false)), lambda _p: struct_pack("
        "t := _r.t, l := _p.l ->> '$', m := chr(CAST(1048576 + _p.i AS INTEGER)), "
        "w := CASE WHEN json_type(_p.w) = 'VARCHAR' THEN _p.w ->> '$' ELSE _p.l ->> '$' END))"
    )
    start = "struct_pack(t := {0}, l := '', m := '', w := '')"

    def folded(seed: str, find: str, put: str) -> str:
        step = f"struct_pack(t := replace(_a.t, _b.{find}, _b.{put}), l := _b.l, m := _b.m, w := _b.w)"
        return f"list_reduce(list_concat([{start.format(seed)}], _r.p), lambda _a, _b: {step}).t"

    marked = folded("_r.t", "l", "m")
    rewritten = bound("_r", f"struct_pack(t := {marked}, p := _r.p)", folded("_r.t", "m", "w"))
    with_pairs = bound("_r", f"struct_pack(t := _r.t, p := {pairs})", rewritten)
    return bound_all("_r", with_pairs, t=text, l=json_array(lookups), w=json_array(rewrites))


def _translate(search: str, replacement: str, text: str) -> str:
    """A shorter list of replacements goes on with its last character; an empty one removes."""
    padded = bound_all(
        "_t",
        "CASE WHEN _t.r = '' THEN '' WHEN length(_t.r) < length(_t.s) "
        "THEN rpad(_t.r, CAST(length(_t.s) AS INTEGER), right(_t.r, 1)) ELSE _t.r END",
        s=search,
        r=replacement,
    )
    return f"translate({text}, {search}, {padded})"


def _url_encoded(text: str, space: str) -> str:
    """DuckDB writes capital hexadecimal digits and %20; Kusto writes small ones."""
    pieces = f"string_split(url_encode({text}), '%')"
    lowered = "CASE WHEN _i = 1 THEN _x ELSE '%' || lower(left(_x, 2)) || substr(_x, 3) END"
    encoded = f"array_to_string(list_transform({pieces}, lambda _x, _i: {lowered}), '')"
    return encoded if space == "%20" else f"replace({encoded}, '%20', '{space}')"


def _url_encode(text: str) -> str:
    return _url_encoded(text, "+")


def _url_encode_component(text: str) -> str:
    return _url_encoded(text, "%20")


def _url_decode(text: str) -> str:
    return f"url_decode(replace({text}, '+', ' '))"


def _hexadecimal(value: str, length: str = "1") -> str:
    digits = f"lower(CASE typeof({value}) WHEN 'INTEGER' THEN right(hex({value}), 8) ELSE hex({value}) END)"
    return bound_all(
        "_h",
        "CASE WHEN length(_h.d) >= _h.l THEN _h.d ELSE lpad(_h.d, CAST(least(_h.l, 16) AS INTEGER), '0') END",
        d=digits,
        l=length,
    )


def _codepoints(text: str) -> str:
    return (
        f"to_json(list_transform(list_filter(string_split({text}, ''), lambda _c: _c <> ''), lambda _c: unicode(_c)))"
    )


def _from_codepoints(*values: str) -> str:
    numbers = ", ".join(
        f"coalesce(list_transform({json_array(value)}, lambda _e: TRY_CAST(CAST(_e AS VARCHAR) AS INTEGER)), "
        f"[TRY_CAST(CAST({value} AS VARCHAR) AS INTEGER)])"
        for value in values
    )
    return f"array_to_string(list_transform(flatten([{numbers}]), lambda _n: chr(_n)), '')"


def _bytes_of_base64(text: str) -> str:
    return bound(
        "_x",
        f"hex(TRY(from_base64({text})))",
        "to_json(list_transform(range(length(_x) // 2), lambda _i: CAST('0x' || substr(_x, _i * 2 + 1, 2) AS BIGINT)))",
    )


def _base64_of_bytes(array: str) -> str:
    digits = "lpad(hex(TRY_CAST(CAST(_e AS VARCHAR) AS UTINYINT)), 2, '0')"
    return f"to_base64(unhex(array_to_string(list_transform({json_array(array)}, lambda _e: {digits}), '')))"


def _base64_of_text(text: str) -> str:
    """Of the bytes in UTF-8; a cast to BLOB would read a backslash as an escape and refuse letters beyond ASCII."""
    return f"to_base64(encode(CAST({text} AS VARCHAR)))"


def _text_of_base64(text: str) -> str:
    """Empty if the text is no base64 or the bytes in it are no UTF-8."""
    return f"coalesce(TRY(decode(from_base64({text}))), '')"


_UNITS = ("Bytes", "KB", "MB", "GB", "TB", "PB", "EB")


def _format_bytes(size: str, precision: str = "0", unit: str = "''") -> str:
    units = ", ".join(f"'{name}'" for name in _UNITS)
    automatic = "least(6, CAST(floor(ln(greatest(abs(_b.v), 1)) / ln(1024) + 1e-12) AS INTEGER))"
    power = f"CASE WHEN _b.u = '' THEN {automatic} ELSE list_position([{units}], _b.u) - 1 END"
    rounded = bound_all(
        "_q",
        f"CASE WHEN _q.d <= 0 OR _q.v = trunc(_q.v) THEN CAST(CAST(_q.v AS BIGINT) AS VARCHAR) "
        f"ELSE CAST(_q.v AS VARCHAR) END || ' ' || [{units}][_q.k + 1]",
        v="round(_k.v / power(1024, _k.k), _k.d)",
        d="_k.d",
        k="_k.k",
    )
    chosen = bound("_k", f"struct_pack(v := _b.v, d := _b.d, k := {power})", rounded)
    return bound_all("_b", chosen, v=f"CAST({size} AS DOUBLE)", d=f"CAST({precision} AS INTEGER)", u=unit)


def _quoted_regex(text: str) -> str:
    return rf"regexp_replace({text}, '([\\.+*?()|\[\]{{}}^$#&\-~])', '\\\1', 'g')"


def _same_text(text: str) -> str:
    return f"({text} IS NOT NULL)"


def _length(text: str) -> str:
    return f"length(CAST({text} AS VARCHAR))"


def _size(text: str) -> str:
    return f"CAST(strlen({text}) AS BIGINT)"


def _ascii(text: str) -> str:
    return f"(NOT regexp_matches({text}, '[^\\x00-\\x7F]'))"


def _split(text: str, delimiter: str, index: str = "") -> str:
    """An array; with an index an array of that one part, empty if there is none."""
    parts = f"str_split({text}, {delimiter})"
    if not index:
        return f"to_json({parts})"
    place = f"CAST({index} AS BIGINT)"
    return f"to_json(CASE WHEN {place} < 0 THEN [] ELSE list_slice({parts}, {place} + 1, {place} + 1) END)"


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("strlen", _length, 1),
    scalar("strcmp", _compare, 2),
    scalar("indexof", _index_of, 2, 3, 4, 5),
    scalar("indexof_regex", _index_of_regex, 2, 3, 4, 5),
    scalar("strrep", _repeated, 2, 3),
    scalar("replace_strings", _replace_strings, 3),
    scalar("translate", _translate, 3),
    scalar("split", _split, 2, 3),
    scalar("url_encode", _url_encode, 1),
    scalar("url_encode_component", _url_encode_component, 1),
    scalar("url_decode", _url_decode, 1),
    scalar("tohex", _hexadecimal, 1, 2),
    scalar("string_size", _size, 1),
    scalar("isascii", _ascii, 1),
    scalar("isutf8", _same_text, 1),
    scalar("unicode_codepoints_from_string", _codepoints, 1),
    scalar("unicode_codepoints_to_string", _from_codepoints),
    scalar("base64_decode_toarray", _bytes_of_base64, 1),
    scalar("base64_encode_fromarray", _base64_of_bytes, 1),
    scalar("base64_encode_tostring", _base64_of_text, 1),
    scalar("base64_encodestring", _base64_of_text, 1),
    scalar("base64_decode_tostring", _text_of_base64, 1),
    scalar("base64_decodestring", _text_of_base64, 1),
    scalar("format_bytes", _format_bytes, 1, 2, 3),
    scalar("regex_quote", _quoted_regex, 1),
)
