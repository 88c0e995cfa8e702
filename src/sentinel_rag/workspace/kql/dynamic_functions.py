"""Dynamic values, where duckdb-kql has no mapping or a different one: reading them from text, and every function over
arrays, property bags and sets in one table.

Source: the Kusto pages named like the functions.
"""

from __future__ import annotations

from sentinel_rag.workspace.kql.array_functions import ARRAY_FUNCTIONS
from sentinel_rag.workspace.kql.array_sorting import SORTING_FUNCTIONS
from sentinel_rag.workspace.kql.bag_functions import BAG_FUNCTIONS
from sentinel_rag.workspace.kql.set_functions import SET_FUNCTIONS
from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, scalar

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


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("parse_json", _parsed, 1),
    scalar("todynamic", _parsed, 1),
    scalar("parsejson", _parsed, 1),
    scalar("toobject", _parsed, 1),
    *ARRAY_FUNCTIONS,
    *SORTING_FUNCTIONS,
    *BAG_FUNCTIONS,
    *SET_FUNCTIONS,
)
