"""Texts that have a form: `parse_csv`, `parse_path`, `parse_urlquery`, `parse_version` and `parse_command_line`.

Source: the Kusto pages named like the functions. `parse_url`, `parse_ipv4` and `parse_ipv6` are duckdb-kql's own;
`parse_user_agent` and `parse_xml` need tables and a parser that SQL is not, and stay refused.
"""

from __future__ import annotations

from duckdb_kql import ir  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import constant_string, render_expr  # noqa: TID253

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, bound_all, scalar

_CSV_RECORD = r'^(?:"(?:[^"]|"")*"|[^"\r\n])*'
_CSV_FIELD = r',(?:"(?:[^"]|"")*"|[^,]*)'


def _csv(text: str) -> str:
    """The fields of the first record; quotes around a field go, two in it are one."""
    fields = f"regexp_extract_all(',' || regexp_extract({text}, '{_CSV_RECORD}'), '{_CSV_FIELD}')"
    unquoted = bound(
        "_f",
        "substr(_f, 2)",
        "CASE WHEN length(_f) >= 2 AND starts_with(_f, '\"') AND ends_with(_f, '\"') "
        "THEN replace(substr(_f, 2, length(_f) - 2), '\"\"', '\"') ELSE _f END",
    )
    return f"to_json(list_transform({fields}, lambda _f: {unquoted}))"


def _path(text: str) -> str:
    """A bag of the seven parts of a Windows or Unix path; a part that is not there is empty text."""
    scheme = r"regexp_extract(_p.t, '^([A-Za-z][A-Za-z0-9+.-]+)://', 1)"
    rest = r"regexp_replace(_p.t, '^[A-Za-z][A-Za-z0-9+.-]+://', '')"
    name_and_stream = r"regexp_extract(_p.r, '([^\\/]*)$', 1)"
    directory = r"regexp_extract(_p.r, '^(.*)[\\/][^\\/]*$', 1)"
    extension = r"regexp_extract(_p.f, '\.([^.]*)$', 1)"
    parts = (
        r"json_object('Scheme', _p.s, 'RootPath', regexp_extract(_p.r, '^(?:\\\\[?.]\\)?([A-Za-z]:)(?:[\\/]|$)', 1), "
        r"'DirectoryPath', _p.d, 'DirectoryName', regexp_extract(_p.d, '([^\\/]*)$', 1), "
        rf"'Filename', _p.f, 'Extension', {extension}, 'AlternateDataStreamName', _p.a)"
    )
    with_file = bound(
        "_p",
        "struct_pack(s := _p.s, r := _p.r, d := _p.d, f := split_part(_p.n, ':', 1), "
        "a := CASE WHEN contains(_p.n, ':') THEN substr(_p.n, length(split_part(_p.n, ':', 1)) + 2) ELSE '' END)",
        parts,
    )
    with_name = bound("_p", f"struct_pack(s := _p.s, r := _p.r, d := {directory}, n := {name_and_stream})", with_file)
    with_rest = bound("_p", f"struct_pack(s := {scheme}, r := {rest})", with_name)
    return bound_all("_p", f"CASE WHEN _p.t IS NOT NULL THEN {with_rest} END", t=text)


def _version(text: str) -> str:
    """A decimal of four groups of eight digits; null for what is no version."""
    part = "lpad(coalesce(nullif(split_part(_v, '.', {0}), ''), '0'), 8, '0')"
    digits = " || ".join(part.format(place) for place in range(1, 5))
    shape = r"^\d{1,8}(?:\.\d{1,8}){0,3}$"
    return bound("_v", text, f"CASE WHEN regexp_matches(_v, '{shape}') THEN CAST({digits} AS DECIMAL(38, 0)) END")


def urlquery(call: ir.FunctionCall) -> str:
    """The query part of `parse_url` alone."""
    if len(call.args) != 1:
        raise KqlUnsupportedError("function:parse_urlquery", hint="it takes 1 argument")
    address = ir.FunctionCall("strcat", (ir.Literal("http://h/?", "string"), call.args[0]))
    parts = render_expr(ir.FunctionCall("parse_url", (address,)))
    return f"json_object('Query Parameters', json_extract({parts}, '$.\"Query Parameters\"'))"


# An argument: plain characters, quoted stretches, and quotes that a backslash makes plain.
_ARGUMENT = r'(?:\\"|"(?:\\"|[^"])*"?|[^\s"])+'
_PROGRAM = r'^(?:"[^"]*"?|[^\s"]+)+'
_MARK = "chr(57344)"


def command_line(call: ir.FunctionCall) -> str:
    """As Windows splits it. Doubled quotes, and backslashes that stand in pairs before a quote, fail: versions of
    Windows read them differently."""
    if len(call.args) != 2 or (constant_string(call.args[1]) or "").lower() != "windows":
        raise KqlUnsupportedError("function:parse_command_line", hint="the second argument must be 'windows'")
    program = f"regexp_extract(_c, '{_PROGRAM}')"
    arguments = f"regexp_extract_all(substr(_c, length({program}) + 1), '{_ARGUMENT}')"
    plain = f"replace(replace(replace(_a, '\\\"', {_MARK}), '\"', ''), {_MARK}, '\"')"
    unclear = r"""regexp_matches(_c, '\\\\"|[^\s\\]""')"""
    return bound(
        "_c",
        f"trim(coalesce({render_expr(call.args[0])}, ''))",
        f"CASE WHEN _c = '' THEN NULL WHEN {unclear} THEN error('the quotes of this command line are not read here') "
        f"ELSE to_json(list_concat([replace({program}, '\"', '')], "
        f"list_transform({arguments}, lambda _a: {plain}))) END",
    )


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("parse_csv", _csv, 1),
    scalar("parse_path", _path, 1),
    scalar("parse_version", _version, 1),
)
