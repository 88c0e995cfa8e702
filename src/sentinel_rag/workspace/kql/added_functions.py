"""Puts the added functions, aggregates and operators into the registries of duckdb-kql.

The rows themselves are in modules by idea (`text_functions`, `dynamic_functions`, `aggregate_functions`, ...); here are
only the few that belong to none of them. What needs data that this workspace does not have (the geography of an
address, a watchlist), or is not defined exactly by Kusto's pages, is in no row and is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duckdb_kql import translate  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import functions  # noqa: TID253
from duckdb_kql.translate.functions import FunctionSpec  # noqa: TID253

from sentinel_rag.workspace.kql import (
    address_location,
    array_sorting,
    bag_functions,
    dynamic_functions,
    ipv4_functions,
    ipv6_functions,
    literals,
    number_functions,
    parsing_functions,
    series_functions,
    text_functions,
    text_search,
    time_functions,
)
from sentinel_rag.workspace.kql.aggregate_functions import aggregates
from sentinel_rag.workspace.kql.sql_forms import scalar

_OTHER_ROWS = (
    # Rows arrive in the embedded workspace at the moment they were generated; no other time is known.
    FunctionSpec("ingestion_time", "template", '"TimeGenerated"', (0,)),
    *(
        FunctionSpec(name, "template", f"CAST({part}({{0}}) AS INTEGER)", (1,))
        for name, part in {
            "hourofday": "hour",
            "dayofmonth": "day",
            "dayofyear": "dayofyear",
            "getyear": "year",
            "getmonth": "month",
            "monthofyear": "month",
            "weekofyear": "weekofyear",
            "week_of_year": "weekofyear",
        }.items()
    ),
    FunctionSpec("notempty", "template", "({0} IS NOT NULL AND CAST({0} AS VARCHAR) <> '')", (1,)),
    FunctionSpec("todatetime", "template", literals.with_more_formats(functions._TODATETIME), (1,)),
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
)

_TEXT_ARGUMENTS: dict[str, tuple[int, ...]] = {
    "notempty": (0,),
    "strcmp": (0, 1),
    "indexof": (0, 1),
    "translate": (2,),
    "url_encode": (0,),
    "url_encode_component": (0,),
    "url_decode": (0,),
    **dict.fromkeys(("parse_csv", "parse_path", "parse_version"), (0,)),
    "string_size": (0,),
    **dict.fromkeys(("base64_encode_tostring", "base64_encodestring", "base64_decode_tostring"), (0,)),
    "geo_info_from_ip_address": (0,),
    "format_ipv4": (0,),
    "format_ipv4_mask": (0,),
    **dict.fromkeys(("ipv4_is_private", "ipv4_netmask_suffix", "ipv4_is_in_any_range", "parse_ipv4_mask"), (0,)),
    **dict.fromkeys(("ipv4_is_in_range", "ipv4_compare", "ipv4_is_match"), (0, 1)),
    **dict.fromkeys(("has_ipv4", "has_any_ipv4", "has_ipv4_prefix", "has_any_ipv4_prefix"), (0,)),
}
"""The arguments that Kusto reads as text, where a dynamic holds it: `ipv4_is_private(Properties.ip)`."""


def register() -> None:
    """Add all rows. One that the library has too replaces the library's."""
    for row in (
        *text_functions.FUNCTIONS,
        *text_search.FUNCTIONS,
        *dynamic_functions.FUNCTIONS,
        *ipv4_functions.FUNCTIONS,
        *address_location.FUNCTIONS,
        *number_functions.FUNCTIONS,
        *parsing_functions.FUNCTIONS,
        *series_functions.FUNCTIONS,
        *time_functions.FUNCTIONS,
        *_OTHER_ROWS,
    ):
        functions.SCALAR_FUNCTIONS[row.name] = row
        if row.name != "todatetime":  # whose special form declines all but what is a time already
            translate._SPECIAL_FORMS.pop(row.name, None)
    translate._SPECIAL_FORMS.update(_special_forms())
    for name in translate._SPECIAL_FORMS:  # `summarize` takes a name that is in no row for an unknown aggregate
        functions.SCALAR_FUNCTIONS.setdefault(name, scalar(name, _declined(name)))
    translate._STRING_ARG_POSITIONS.update(_TEXT_ARGUMENTS)
    functions.AGGREGATE_FUNCTIONS.update(aggregates())
    text_search.register(functions.BINARY_OPERATORS)


def _declined(name: str) -> Callable[..., str]:
    def write(*_arguments: str) -> str:
        raise KqlUnsupportedError(f"function:{name}", hint="with these arguments")

    return write


def _special_forms() -> dict[str, Any]:
    """Functions that need the query's form of their arguments; those that return None leave the rest to their row."""
    return {
        **ipv6_functions.FORMS,
        "bin_at": time_functions.bin_at,
        "abs": time_functions.absolute,
        "format_datetime": time_functions.format_datetime,
        "datetime_diff": time_functions.datetime_diff,
        "datetime_part": time_functions.datetime_part,
        "format_timespan": time_functions.format_timespan,
        "bag_pack_columns": bag_functions.pack_columns,
        "array_sort_asc": array_sorting.sorted_arrays,
        "array_sort_desc": array_sorting.sorted_arrays,
        "array_sort_asc_together": array_sorting.sorted_together("ASC"),
        "array_sort_desc_together": array_sorting.sorted_together("DESC"),
        "parse_urlquery": parsing_functions.urlquery,
        "parse_command_line": parsing_functions.command_line,
        "extract": text_functions.extract,
        "extract_json": text_functions.extract_json,
        "extractjson": text_functions.extract_json,
    }
