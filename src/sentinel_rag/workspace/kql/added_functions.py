"""Functions and aggregates that Sentinel queries use and duckdb-kql 1.1.2 has no mapping for, as SQL templates.

A row of data each, in the library's own notation (`{0}` is the first argument). Only what can be answered exactly is
here; a function that needs data this workspace does not have (geography of an address, a watchlist) stays refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duckdb_kql.translate.functions import AggregateSpec, FunctionSpec  # noqa: TID253 - this module is about it

_OCTETS = "list_transform(string_split(split_part({0}, '/', 1), '.'), lambda o: TRY_CAST(o AS UINTEGER))"
_IPV4_NUMBER = (
    "(SELECT CASE WHEN len(o) = 4 AND list_max(o) <= 255 AND len(list_filter(o, lambda x: x IS NULL)) = 0"
    " THEN o[1] * 16777216 + o[2] * 65536 + o[3] * 256 + o[4] END FROM (SELECT {octets} AS o))"
)


def _ipv4(argument: str) -> str:
    return _IPV4_NUMBER.replace("{octets}", _OCTETS.replace("{0}", argument))


def _in_range(address: str, network: str) -> str:
    prefix = f"coalesce(TRY_CAST(nullif(split_part({network}, '/', 2), '') AS INTEGER), 32)"
    shift = f"CAST(greatest(0, 32 - {prefix}) AS INTEGER)"
    return f"((CAST({_ipv4(address)} AS BIGINT) >> {shift}) = (CAST({_ipv4(network)} AS BIGINT) >> {shift}))"


_PRIVATE = " OR ".join(
    _in_range("{0}", f"'{network}'") for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)


class SplitSpec(FunctionSpec):
    """`split(text, delimiter)` and `split(text, delimiter, index)`, which is an array of the one part or empty."""

    def render(self, args: list[str]) -> str:
        parts = f"str_split({args[0]}, {args[1]})"
        if len(args) == 2:
            return parts
        if len(args) == 3:
            return f"list_slice({parts}, CAST({args[2]} AS BIGINT) + 1, CAST({args[2]} AS BIGINT) + 1)"
        raise ValueError(f"split() takes 2 or 3 arguments, got {len(args)}")


_SCALARS = (
    FunctionSpec("ipv4_is_private", "template", f"({_PRIVATE})", (1,)),
    FunctionSpec("ipv4_is_in_range", "template", _in_range("{0}", "{1}"), (2,)),
    # Rows arrive in the embedded workspace at the moment they were generated; no other time is known.
    FunctionSpec("ingestion_time", "template", '"TimeGenerated"', (0,)),
    FunctionSpec("translate", "template", "translate({2}, {0}, {1})", (3,)),
    FunctionSpec("unixtime_seconds_todatetime", "template", "make_timestamp(CAST({0} * 1000000 AS BIGINT))", (1,)),
    FunctionSpec("unixtime_milliseconds_todatetime", "template", "make_timestamp(CAST({0} * 1000 AS BIGINT))", (1,)),
    FunctionSpec("bag_keys", "template", "to_json(json_keys(CAST({0} AS JSON)))", (1,)),
    FunctionSpec("url_decode", "template", "url_decode({0})", (1,)),
    FunctionSpec("url_encode", "template", "url_encode({0})", (1,)),
    # The three parts of `make-series` (see `make_series`); lists are aligned, times are Kusto's text in a
    # dynamic, and the NaN of an average over nothing, which JSON cannot hold, is null.
    FunctionSpec("series_bucket", "template", "time_bucket({2}, CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP))", (3,)),
    FunctionSpec(
        "series_fill",
        "template",
        "to_json(list_transform(range(CAST({2} AS TIMESTAMP), CAST({3} AS TIMESTAMP), {4}), "
        "lambda t: CASE WHEN CAST({1}[list_position({0}, t)] AS VARCHAR) = 'nan' THEN NULL "
        "ELSE coalesce({1}[list_position({0}, t)], {5}) END))",
        (6,),
    ),
    FunctionSpec(
        "series_axis",
        "template",
        "to_json(list_transform(range(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP), {2}), "
        "lambda t: strftime(t, '%Y-%m-%dT%H:%M:%S.%f') || '0Z'))",
        (3,),
    ),
    FunctionSpec("isascii", "template", "(NOT regexp_matches({0}, '[^\\x00-\\x7F]'))", (1,)),
)

_SET_IF = (
    "to_json(coalesce(list_distinct(flatten(list("
    "CASE WHEN json_type(TRY_CAST({0} AS JSON)) = 'ARRAY' THEN CAST(to_json({0}) AS JSON[]) ELSE [to_json({0})] END"
    ") FILTER (WHERE {0} IS NOT NULL AND ({1})))), []))"
)

_AGGREGATES = (
    AggregateSpec("make_set_if", _SET_IF, (2, 3), name_prefix="set"),
    AggregateSpec(
        "make_list_if",
        "coalesce(list({0}) FILTER (WHERE {0} IS NOT NULL AND ({1})), [])",
        (2, 3),
        name_prefix="list",
    ),
    AggregateSpec("series_collect", "list({0})", (1,)),
    AggregateSpec("minif", "min({0}) FILTER (WHERE {1})", (2,)),
    AggregateSpec("maxif", "max({0}) FILTER (WHERE {1})", (2,)),
    AggregateSpec("take_anyif", "any_value({0}) FILTER (WHERE {1})", (2,), name_is_argument=True),
    AggregateSpec("stdevp", "coalesce(stddev_pop({0}), 0.0)", (1,)),
    AggregateSpec("variancep", "coalesce(var_pop({0}), 0.0)", (1,)),
    AggregateSpec("count_distinct", "count(DISTINCT {0})", (1,)),
    AggregateSpec("count_distinctif", "count(DISTINCT {0}) FILTER (WHERE {1})", (2,)),
)


# DuckDB runs LIKE with ESCAPE, which the library writes, without its fast substring search: three times slower.
_SUBSTRING = {
    "contains": "contains(lower({0}), lower({1}))",
    "contains_cs": "contains({0}, {1})",
    "startswith": "starts_with(lower({0}), lower({1}))",
    "endswith": "ends_with(lower({0}), lower({1}))",
}


def register(scalars: dict[str, Any], aggregates: dict[str, Any], operators: dict[str, Any]) -> None:
    """Add the rows to the library's registries; a name it knows is left alone, but for `split` and substrings."""
    for name, template in _SUBSTRING.items():
        operators[name] = replace(operators[name], template=template)
        operators[f"!{name}"] = replace(operators[f"!{name}"], template=f"NOT {template}")
    for scalar in _SCALARS:
        scalars.setdefault(scalar.name, scalar)
    split = scalars["split"]
    scalars["split"] = SplitSpec(split.name, split.kind, split.template, (2, 3), split.rules, split.note)
    for aggregate in _AGGREGATES:
        aggregates.setdefault(aggregate.name, aggregate)
    for old, new in (("make_set", "makeset"), ("make_list", "makelist")):
        aggregates.setdefault(new, replace(aggregates[old], name=new))
