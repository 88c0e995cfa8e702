"""IPv6 addresses and networks: `ipv6_*` and `parse_ipv6_mask`, which take IPv4 too, as the last 32 of 128 bits.

Source: the Kusto pages "ipv6_compare()", "ipv6_is_in_range()" and "parse_ipv6_mask()". The canonical text of an address
comes from duckdb-kql's `parse_ipv6`; here it becomes a text of 128 bits, whose first ones are compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from duckdb_kql import ir  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import render_expr, render_kql_tostring  # noqa: TID253

from sentinel_rag.workspace.kql.sql_forms import bound, bound_all

SpecialForm = Callable[[ir.FunctionCall], str]


def _bits(address: ir.Expr) -> str:
    """128 digits; null for what is no address. `::10.0.0.1` is read as 10.0.0.1."""
    plain = ir.FunctionCall(
        "replace_regex", (address, ir.Literal(r"^::(\d+\.)", "string"), ir.Literal(r"\1", "string"))
    )
    canonical = render_expr(ir.FunctionCall("parse_ipv6", (plain,)))
    return bound(
        "_c",
        f"replace({canonical}, ':', '')",
        "CASE WHEN length(_c) = 32 THEN CAST(CAST(unhex(_c) AS BIT) AS VARCHAR) END",
    )


def _length(text: str) -> str:
    """The length of the network in the text, counted in IPv6 bits; 128 if there is none."""
    return (
        f"coalesce(TRY_CAST(nullif(split_part({text}, '/', 2), '') AS INTEGER) "
        f"+ CASE WHEN contains({text}, '.') THEN 96 ELSE 0 END, 128)"
    )


def _given(call: ir.FunctionCall, place: int) -> str:
    if len(call.args) <= place:
        return "128"
    return f"(CASE WHEN {render_expr(call.args[place])} BETWEEN 0 AND 128 THEN {render_expr(call.args[place])} END)"


def _compared(call: ir.FunctionCall, result: str) -> str:
    if len(call.args) not in (2, 3):
        raise KqlUnsupportedError(f"function:{call.name}", hint="it takes 2 or 3 arguments")
    first, second = call.args[:2]
    return bound_all(
        "_v",
        "CASE WHEN _v.n IS NULL OR _v.x IS NULL OR _v.y IS NULL THEN NULL ELSE "
        + bound_all("_q", result, a="left(_v.x, least(_v.l, _v.m, _v.n))", b="left(_v.y, least(_v.l, _v.m, _v.n))")
        + " END",
        x=_bits(first),
        y=_bits(second),
        l=f"CAST({_length(render_kql_tostring(first))} AS BIGINT)",
        m=f"CAST({_length(render_kql_tostring(second))} AS BIGINT)",
        n=f"CAST({_given(call, 2)} AS BIGINT)",
    )


def _compare(call: ir.FunctionCall) -> str:
    order = "CASE WHEN _q.a < _q.b THEN -1 WHEN _q.a > _q.b THEN 1 ELSE 0 END"
    return f"CAST({_compared(call, order)} AS BIGINT)"


def _is_match(call: ir.FunctionCall) -> str:
    return _compared(call, "_q.a = _q.b")


def _is_in_range(call: ir.FunctionCall) -> str:
    if len(call.args) != 2:
        raise KqlUnsupportedError(f"function:{call.name}", hint="it takes 2 arguments")
    return _in_range(*call.args)


def _in_range(address: ir.Expr, network: ir.Expr) -> str:
    return bound_all(
        "_v",
        "left(_v.x, _v.l) = left(_v.y, _v.l)",
        x=_bits(address),
        y=_bits(network),
        l=f"CAST({_length(render_kql_tostring(network))} AS BIGINT)",
    )


def _is_in_any_range(call: ir.FunctionCall) -> str:
    """Of networks as arguments; an array of them is run if it is a constant."""
    if len(call.args) < 2:
        raise KqlUnsupportedError(f"function:{call.name}", hint="it takes at least 2 arguments")
    address, *networks = call.args
    if any(isinstance(network, ir.Literal) and network.kind == "dynamic" for network in networks):
        networks = [item for network in networks for item in _items(network)]
    if not all(isinstance(network, ir.Literal) and network.kind == "string" for network in networks):
        raise KqlUnsupportedError(f"function:{call.name}", hint="the networks must be constants")
    tests = " OR ".join(f"coalesce({_in_range(address, network)}, FALSE)" for network in networks)
    return f"(CASE WHEN {_bits(address)} IS NOT NULL THEN ({tests}) END)"


def _items(network: ir.Expr) -> list[ir.Expr]:

    if not isinstance(network, ir.Literal) or network.kind != "dynamic":
        return [network]
    values = json.loads(str(network.value))
    return [ir.Literal(str(value), "string") for value in (values if isinstance(values, list) else [values])]


def _parse_mask(call: ir.FunctionCall) -> str:
    if len(call.args) != 2:
        raise KqlUnsupportedError(f"function:{call.name}", hint="it takes 2 arguments")
    masked = "hex(CAST(CAST(rpad(left(_v.x, _v.l), 128, '0') AS BIT) AS BLOB))"
    return bound_all(
        "_v",
        f"CASE WHEN _v.x IS NULL OR _v.l IS NULL THEN '' "
        f"ELSE lower(rtrim(regexp_replace({masked}, '(.{{4}})', '\\1:', 'g'), ':')) END",
        x=_bits(call.args[0]),
        l=f"least({_length(render_kql_tostring(call.args[0]))}, CAST({_given(call, 1)} AS BIGINT))",
    )


FORMS: dict[str, SpecialForm] = {
    "ipv6_compare": _compare,
    "ipv6_is_match": _is_match,
    "ipv6_is_in_range": _is_in_range,
    "ipv6_is_in_any_range": _is_in_any_range,
    "parse_ipv6_mask": _parse_mask,
}
