"""From operators and expressions to SQL, where the library's SQL gives another value than Kusto.

Each function stands in the place of the library's one of the same name, which it asks for everything else.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import translate  # noqa: TID253 - this module is about that library
from duckdb_kql.ir import (  # noqa: TID253
    Between,
    BinaryOp,
    ColumnRef,
    FunctionCall,
    InList,
    PathAccess,
)
from duckdb_kql.translate import sharing  # noqa: TID253

from sentinel_rag.workspace.kql import (
    dynamic_comparisons,
    extension,
    literals,
    text_functions,
    text_search,
    time_arithmetic,
)
from sentinel_rag.workspace.kql.aggregate_functions import plain_collection
from sentinel_rag.workspace.kql.array_sorting import sorts_several
from sentinel_rag.workspace.kql.bag_functions import path_with_text_keys
from sentinel_rag.workspace.kql.dynamic_functions import RETURNING_DYNAMIC
from sentinel_rag.workspace.kql.empty_texts import aggregated_text
from sentinel_rag.workspace.kql.replacements import original

_INT_FUNCTIONS = frozenset(
    ["hourofday", "dayofmonth", "dayofyear", "getyear", "getmonth", "monthofyear", "weekofyear", "week_of_year"]
)


def may_be_dynamic(node: Any) -> bool:
    """A column that is known to be no dynamic needs no check of its type for each row."""
    return isinstance(node, ColumnRef) and getattr(node, "kind", "") in ("", "dynamic")


def render_literal(literal: Any) -> Any:
    """Decimals, types and moments as Kusto reads them."""
    return literals.literal_sql(literal) or original["render_literal"](literal)


def is_real_expr(node: Any) -> Any:
    """A column of reals divided by zero is infinite, as a literal is; between whole numbers it would be null."""
    if isinstance(node, ColumnRef) and getattr(node, "kind", "") == "real":
        return True
    return original["_is_real_expr"](node)


def is_int_expr(node: Any) -> Any:
    """Parts of a date are of type int too, and arithmetic over them is of type long."""
    if isinstance(node, FunctionCall) and node.name.lower() in _INT_FUNCTIONS:
        return True
    if isinstance(node, ColumnRef):
        return getattr(node, "kind", "") == "int"
    return original["_is_int_expr"](node)


def render_sort_keys(keys: Any) -> Any:
    """Refuses to sort by what Kusto has no order for."""
    for key in keys:
        dynamic_comparisons.refuse_order("sort by", key.expr)
    return original["render_sort_keys"](keys)


def render_aggregate_call(call: Any) -> Any:
    """Refuses the largest of values without an order; times, spans and collections are as Kusto gives them."""
    if call.args and call.name.lower() in ("max", "min", "maxif", "minif"):
        dynamic_comparisons.refuse_order(call.name, call.args[0])
    rendered = (
        time_arithmetic.time_aggregate(call, translate.render_expr)
        or plain_collection(call, translate.render_expr)
        or original["_render_aggregate_call"](call)
    )
    return aggregated_text(call, rendered)


def lift_aggregates(node: Any, *, depth: int = 0) -> Any:
    """Finds aggregates below a path and `in` too: `tostring(make_list(x)[0])`, `iff(max(x) in (1, 2), ...)`."""
    if not isinstance(node, (PathAccess, InList)):
        return original["_lift_aggregates"](node, depth=depth)
    found = 0

    def lift(part: Any) -> Any:
        nonlocal found
        lifted, inside = translate._lift_aggregates(part, depth=depth)
        found += inside
        return lifted

    parts = {field.name: extension.mapped(getattr(node, field.name), lift) for field in dataclasses.fields(node)}
    return dataclasses.replace(node, **parts), found


def render_path(node: Any) -> Any:
    """A JSON null that a path leads to is null, as in Kusto, so that `isnull` and `coalesce` see it."""
    base = node.base
    if isinstance(base, FunctionCall) and base.name in ("array_sort_asc", "array_sort_desc") and sorts_several(base):
        node = dataclasses.replace(node, base=dataclasses.replace(base, name=f"{base.name}_together"))
    rendered = path_with_text_keys(node, original["render_path"]) or original["render_path"](node)
    return f"nullif({rendered}, CAST('null' AS JSON))"


def render_bin(node: Any, name: str = "bin") -> Any:
    """Bins of times count from Kusto's first moment."""
    return time_arithmetic.time_bin(node, translate.render_expr) or original["render_bin"](node, name)


def render_expr(node: Any) -> Any:
    """Compares dynamic values by their type, and reckons with times and spans."""
    if isinstance(node, (BinaryOp, Between, InList)) and sharing.slot_for(node) is None:
        node = dynamic_comparisons.converted(node)
    if isinstance(node, BinaryOp) and sharing.slot_for(node) is None:
        spans = time_arithmetic.span_arithmetic(node, translate.render_expr)
        if spans is not None:
            return spans
    return original["render_expr"](node)


def render_term_operator(node: Any, sides: Any) -> Any:
    """`has` and its kin find terms as Kusto cuts them."""
    return text_search.search_operator(node, sides) or original["_render_term_operator"](node, sides)


def render_has_list(node: Any, haystack: str) -> Any:
    """The same for a list of terms."""
    found = text_search.search_list(node, haystack)
    return translate._has_list_result(found, node) if found else original["_render_has_list"](node, haystack)


def render_in_list(node: Any, value: str) -> Any:
    """`in` also takes a list that is a value."""
    before = original["_render_in_list"]
    return text_search.member_of_values(node, value, before) or before(node, value)


def is_dynamic(node: Any) -> Any:
    """Which functions return a dynamic, `dynamic_functions` tells."""
    if isinstance(node, FunctionCall):
        return node.name.lower() in RETURNING_DYNAMIC
    return original["_is_dynamic"](node)


def render_kql_tostring(node: Any) -> Any:
    """Texts of reals, times and dynamics as Kusto writes them."""
    text = text_functions.text_of(node)
    return text or text_functions.with_reals_as_kusto(node, original["render_kql_tostring"](node))
