"""What this workspace adds to duckdb-kql: KQL that its parser accepts and its translator refuses or misreads.

duckdb-kql has no extension points, so the additions replace functions of the one release that is pinned; `install`
refuses any other. Operators that need the columns at their place become nodes of our own, which `scope` resolves before
SQL is made. Each addition is listed in `install`, with its reason at its function: those that read KQL are in
`lowering`, those that write SQL in `rendering`.
"""

from __future__ import annotations

import threading
from importlib import metadata

from duckdb_kql import lower, translate  # noqa: TID253 - this module is about that library
from duckdb_kql.translate import functions  # noqa: TID253

from sentinel_rag.workspace.kql import (
    added_functions,
    evaluate_plugins,
    extension,
    literals,
    lowering,
    parse_patterns,
    rendering,
    time_arithmetic,
    window_functions,
)
from sentinel_rag.workspace.kql.newest_rows import with_newest_rows
from sentinel_rag.workspace.kql.replacements import replace
from sentinel_rag.workspace.kql.searches import ROW_TEXT, RowTextSpec
from sentinel_rag.workspace.kql.streamed_range import streamed_range

PINNED = "1.1.2"

_lock = threading.Lock()
_installed = False


def install() -> None:
    """Put the additions in place, once per process. Raises RuntimeError for another release of duckdb-kql."""
    global _installed
    with _lock:
        if _installed:
            return
        version = metadata.version("duckdb-kql")
        if version != PINNED:
            raise RuntimeError(f"the KQL additions are written for duckdb-kql {PINNED}, not {version}")
        replace(lower, "_lower_operator", lowering.lower_operator)
        replace(lower, "_lower_head", lowering.lower_head)
        replace(lower, "_lower_source", lowering.lower_source)
        replace(lower, "_lower_path", lowering.lower_path)
        replace(lower, "_lower_binary", lowering.lower_binary)
        replace(lower, "_lower_function_call", lowering.lower_function_call)
        replace(lower, "_lower_named", lowering.lower_named)
        replace(lower, "_lower_expr", lowering.lower_expr)
        replace(lower, "_typed_literal", lowering.typed_literal)
        replace(lower, "_lower_mv_expand_target", lowering.lower_mv_expand_target)
        replace(lower, "_string_value", literals.string_value)
        replace(lower, "_declare_let_function", lowering.declare_let_function)
        replace(translate, "_may_be_dynamic", rendering.may_be_dynamic)
        replace(translate, "render_literal", rendering.render_literal)
        replace(translate, "render_path", rendering.render_path)
        replace(translate, "_TODATETIME", literals.with_more_formats(functions._TODATETIME))
        replace(translate, "render_bin", rendering.render_bin)
        replace(translate, "render_expr", rendering.render_expr)
        replace(translate, "_is_int_expr", rendering.is_int_expr)
        replace(translate, "_is_real_expr", rendering.is_real_expr)
        replace(translate, "_render_aggregate_call", rendering.render_aggregate_call)
        replace(translate, "_lift_aggregates", rendering.lift_aggregates)
        replace(translate, "render_sort_keys", rendering.render_sort_keys)
        replace(translate, "_is_timespan_expr", time_arithmetic.is_timespan)
        replace(translate, "_is_datetime_expr", time_arithmetic.is_datetime)
        replace(translate, "render_range", streamed_range)
        replace(translate, "render_summarize", with_newest_rows(translate.render_summarize))
        replace(translate, "_render_term_operator", rendering.render_term_operator)
        replace(translate, "_render_has_list", rendering.render_has_list)
        replace(translate, "_render_in_list", rendering.render_in_list)
        replace(translate, "_is_dynamic", rendering.is_dynamic)
        replace(translate, "render_kql_tostring", rendering.render_kql_tostring)
        extension.install(replace)
        parse_patterns.install(replace)
        added_functions.register()
        for spec in (*window_functions.SPECS, *evaluate_plugins.SPECS):
            functions.SCALAR_FUNCTIONS[spec.name] = spec
        functions.SCALAR_FUNCTIONS[ROW_TEXT] = RowTextSpec(ROW_TEXT, "template", "{0}", ())
        _installed = True
