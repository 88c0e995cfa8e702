"""What this workspace adds to duckdb-kql: KQL that its parser accepts and its translator refuses or misreads.

duckdb-kql has no extension points, so the additions replace functions of the one release that is pinned; `install`
refuses any other. Operators that need the columns at their place become nodes of our own, which `columns_at_place`
resolves before SQL is made. Each addition is listed in `install`, with its reason at its function.
"""

from __future__ import annotations

import dataclasses
import threading
from importlib import metadata
from typing import Any

from duckdb_kql import lower, translate  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.ir import (  # noqa: TID253
    Between,
    BinaryOp,
    ColumnRef,
    Extend,
    FunctionCall,
    GetSchema,
    InList,
    Literal,
    MvExpandTarget,
    NamedExpr,
    PathAccess,
    PathStep,
    Query,
    TableRef,
    Take,
    Top,
    Wildcard,
)
from duckdb_kql.lower_graph import make_graph_index  # noqa: TID253
from duckdb_kql.translate import functions, naming, sharing  # noqa: TID253

from sentinel_rag.workspace.kql import (
    added_functions,
    dynamic_comparisons,
    evaluate_plugins,
    extension,
    literals,
    parse_patterns,
    several_columns,
    text_functions,
    text_search,
    time_arithmetic,
    window_functions,
)
from sentinel_rag.workspace.kql.aggregate_functions import plain_collection
from sentinel_rag.workspace.kql.array_sorting import sorts_several
from sentinel_rag.workspace.kql.bag_functions import path_with_text_keys
from sentinel_rag.workspace.kql.column_choices import ColumnChoice, lower_column_choice
from sentinel_rag.workspace.kql.dynamic_functions import RETURNING_DYNAMIC
from sentinel_rag.workspace.kql.empty_texts import aggregated_text
from sentinel_rag.workspace.kql.evaluate_plugins import lower_evaluate
from sentinel_rag.workspace.kql.make_series import lower_make_series
from sentinel_rag.workspace.kql.mv_apply import lower_mv_apply
from sentinel_rag.workspace.kql.newest_rows import with_newest_rows
from sentinel_rag.workspace.kql.parse_patterns import with_leading_column
from sentinel_rag.workspace.kql.partition import lower_partition
from sentinel_rag.workspace.kql.searches import (
    ROW_TEXT,
    RowTextSpec,
    lower_search,
    lower_search_head,
    lower_where_any_column,
)
from sentinel_rag.workspace.kql.streamed_range import streamed_range
from sentinel_rag.workspace.kql.tabular_names import (
    AsName,
    constant,
    declare_function,
    split_at_as,
    table_of_parameter,
)
from sentinel_rag.workspace.kql.top_nested import lower_sample_distinct, lower_top_hitters, lower_top_nested
from sentinel_rag.workspace.kql.unions import UnionSource
from sentinel_rag.workspace.kql.window_functions import Serialize, lower_serialize, windowed

PINNED = "1.1.2"

_CHOOSING = {
    "ProjectReorderOperator": "project-reorder",
    "ProjectKeepOperator": "project-keep",
    "ProjectAwayOperator": "project-away",
}

_INT_FUNCTIONS = frozenset(
    ["hourofday", "dayofmonth", "dayofyear", "getyear", "getmonth", "monthofyear", "weekofyear", "week_of_year"]
)
_ADDED: dict[str, Any] = {
    "TopNestedOperator": lower_top_nested,
    "TopNestedOperatorPart": lower_top_nested,
    "TopHittersOperator": lower_top_hitters,
    "SampleDistinctOperator": lower_sample_distinct,
    "PartitionOperator": lower_partition,
}
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
        _replace(lower, "_lower_operator", _lower_operator)
        _replace(lower, "_lower_head", _lower_head)
        _replace(lower, "_lower_source", _lower_source)
        _replace(lower, "_lower_path", _lower_path)
        _replace(lower, "_lower_binary", _lower_binary)
        _replace(lower, "_lower_function_call", _lower_function_call)
        _replace(lower, "_lower_named", _lower_named)
        _replace(lower, "_lower_expr", _lower_expr)
        _replace(lower, "_typed_literal", _typed_literal)
        _replace(lower, "_lower_mv_expand_target", _lower_mv_expand_target)
        _replace(lower, "_string_value", literals.string_value)
        _replace(lower, "_declare_let_function", _declare_let_function)
        _replace(translate, "_may_be_dynamic", _may_be_dynamic)
        _replace(translate, "render_literal", _render_literal)
        _replace(translate, "render_path", _render_path)
        _replace(translate, "_TODATETIME", literals.with_more_formats(functions._TODATETIME))
        _replace(translate, "render_bin", _render_bin)
        _replace(translate, "render_expr", _render_expr)
        _replace(translate, "_is_int_expr", _is_int_expr)
        _replace(translate, "_is_real_expr", _is_real_expr)
        _replace(translate, "_render_aggregate_call", _render_aggregate_call)
        _replace(translate, "_lift_aggregates", _lift_aggregates)
        _replace(translate, "render_sort_keys", _render_sort_keys)
        _replace(translate, "_is_timespan_expr", time_arithmetic.is_timespan)
        _replace(translate, "_is_datetime_expr", time_arithmetic.is_datetime)
        _replace(translate, "render_range", streamed_range)
        _replace(translate, "render_summarize", with_newest_rows(translate.render_summarize))
        _replace(translate, "_render_term_operator", _render_term_operator)
        _replace(translate, "_render_has_list", _render_has_list)
        _replace(translate, "_render_in_list", _render_in_list)
        _replace(translate, "_is_dynamic", _is_dynamic)
        _replace(translate, "render_kql_tostring", _render_kql_tostring)
        extension.install(_replace)
        parse_patterns.install(_replace)
        added_functions.register()
        for spec in (*window_functions.SPECS, *evaluate_plugins.SPECS):
            functions.SCALAR_FUNCTIONS[spec.name] = spec
        functions.SCALAR_FUNCTIONS[ROW_TEXT] = RowTextSpec(ROW_TEXT, "template", "{0}", ())
        _installed = True


_original: dict[str, Any] = {}


def _replace(module: Any, name: str, replacement: Any) -> Any:
    original = getattr(module, name)
    _original.setdefault(name, original)
    setattr(module, name, replacement)
    return original


def _lower_operator(node: Any) -> Any:
    """Adds as, project-reorder, project-keep, distinct *, serialize, sample and make-series."""
    inner = node
    while lower._cls(inner) in ("PipedOperator", "AfterPipeOperator"):
        children = lower._rule_children(inner)
        if not children:
            return _original["_lower_operator"](node)
        inner = children[0]
    inner = lower._collapse(inner)
    kind, children = lower._cls(inner), lower._rule_children(inner)
    if kind == "AsOperator":
        return None
    if kind in _CHOOSING:
        return lower_column_choice(_CHOOSING[kind], inner)
    if kind == "DistinctOperator" and any(lower._cls(child) == "DistinctOperatorStarTarget" for child in children):
        return ColumnChoice("distinct *")
    if kind == "SerializeOperator":
        return lower_serialize(inner)
    if kind == "SortOperator" and inner.getText() == "sortby1":
        return [Serialize()]
    if kind == "MakeSeriesOperator":
        return lower_make_series(inner)
    if kind == "MvapplyOperator":
        return lower_mv_apply(inner)
    added = _ADDED.get(kind)
    if added is not None:
        return added(inner)
    if kind == "EvaluateOperator":
        return lower_evaluate(inner)
    if kind == "SearchOperator":
        return lower_search(inner)
    if kind == "WhereOperator" and lower._find_all(inner, "StringStarOperatorExpression"):
        return lower_where_any_column(inner)
    if kind == "GetSchemaOperator":
        ordinal = FunctionCall("tolong", (ColumnRef("ColumnOrdinal"),))
        return [GetSchema(), Extend((NamedExpr(ordinal, "ColumnOrdinal"),))]
    counted = _counted(kind, children)
    if counted is not None:
        return counted
    if kind in ("ParseOperator", "ParseWhereOperator"):
        return with_leading_column(inner, _original["_lower_operator"])
    lowered = several_columns.expanded(_original["_lower_operator"](node))
    return [windowed(one) for one in lowered] if isinstance(lowered, list) else windowed(lowered)


def _lower_head(head: Any, rest: list[Any]) -> Any:
    """Lets a query begin with `search` or with brackets: `(union A, B) | where ...` continues what they hold."""
    named = split_at_as(rest)
    if named is not None:
        index, name = named
        binding = AsName(name)
        return Query(
            TableRef(name), lower._lower_operators(rest[index + 1 :]), [(binding, _lower_head(head, rest[:index]))]
        )
    collapsed = lower._collapse(head)
    if lower._cls(collapsed) == "SearchOperator":
        return lower_search_head(collapsed, rest)
    if lower._cls(collapsed) == "UnionOperator" and make_graph_index(rest) is None:
        union = lower._lower_union(collapsed, lower._rule_children(collapsed))
        source = UnionSource(union.branches, union.kind, union.with_source, union.isfuzzy)
        return Query(source, lower._lower_operators(rest))
    if lower._cls(collapsed) != "ParenthesizedExpression" or make_graph_index(rest) is not None:
        return _original["_lower_head"](head, rest)
    inner = lower._lower_query_node(collapsed)
    return Query(inner.source, [*inner.operators, *lower._lower_operators(rest)], list(inner.lets))


def _lower_binary(node: Any, left: Any = None) -> Any:
    """Adds `* has "x"` and, for `search`, `Column:"x"`."""
    children = lower._rule_children(node)
    if lower._cls(node) == "StringStarOperatorExpression":
        return BinaryOp(lower._op_text(children[0]), Wildcard(), lower._lower_expr(children[1]))
    operations = [child for child in children if lower._cls(child) == "StringBinaryOperation"]
    if len(operations) == 1 and lower._children(operations[0])[0].getText() == ":":
        return BinaryOp(":", lower._lower_expr(children[0]), lower._lower_expr(lower._rule_children(operations[0])[-1]))
    return _original["_lower_binary"](node, left)


def _lower_mv_expand_target(node: Any) -> Any:
    """Names an unnamed expression as Kusto does elsewhere: `Props.tags` gives `Props_tags`, else it is `Column1`."""
    try:
        return _original["_lower_mv_expand_target"](node)
    except KqlUnsupportedError as error:
        if "unnamed" not in error.construct:
            raise
    to_type, named = None, node
    for child in lower._rule_children(node):
        if lower._cls(child) == "MvapplyOperatorExpressionToClause":
            to_type = child.getText().lower().partition("typeof(")[2].rstrip(")").strip()
        elif lower._cls(child) == "NamedExpression":
            named = child
    expression = lower._lower_named(named).expr
    name = naming.expression_name(expression) or "Column1"
    return MvExpandTarget(name, None, to_type), NamedExpr(expression, name)


def _declare_let_function(declaration: Any, scalars: Any) -> None:
    declare_function(declaration, scalars, _original["_declare_let_function"])


def _lower_source(node: Any) -> Any:
    return table_of_parameter(_original["_lower_source"](node))


def _counted(kind: str, children: list[Any]) -> Any:
    """`take N` and `top N by X` with a number that an earlier `let` or a parameter names; None for anything else."""
    if kind not in ("TakeOperator", "TopOperator", "SampleOperator") or not children:
        return None
    count: Any = constant(children[-1] if kind == "TakeOperator" else children[0])
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return None
    if kind == "TopOperator":
        return Top(count.value, (lower._lower_sort_key(children[1]),)) if len(children) == 2 else None
    return Take(max(count.value, 0))


def _lower_path(node: Any) -> Any:
    """Reads the older `value.[0]` as `value[0]`."""
    for child in lower._rule_children(node):
        if lower._cls(lower._collapse(child)) == "LegacyFunctionCallOrPathElementOperation":
            break
    else:
        return _original["_lower_path"](node)
    root, *operations = lower._rule_children(node)
    steps = []
    for operation in operations:
        inner = lower._collapse(operation)
        if lower._cls(inner) == "FunctionCallOrPathPathOperation":
            steps.append(PathStep(name=lower._find_names(inner)[0]))
            continue
        index: Any = lower._lower_expr(lower._rule_children(inner)[0])
        named = isinstance(index, Literal) and index.kind == "string"
        steps.append(PathStep(name=str(index.value)) if named else PathStep(index=index))
    return PathAccess(lower._lower_expr(root), tuple(steps))


def _may_be_dynamic(node: Any) -> bool:
    """A column that is known to be no dynamic needs no check of its type for each row."""
    return isinstance(node, ColumnRef) and getattr(node, "kind", "") in ("", "dynamic")


def _typed_literal(node: Any, kind: str, convert: Any) -> Any:
    """`decimal(0.1)` keeps its digits; a text that is no time is refused instead of becoming null."""
    if lower._cls(node) == "DecimalLiteralExpression":
        return _original["_typed_literal"](node, "decimal", literals.decimal_text)
    literal = _original["_typed_literal"](node, kind, convert)
    if kind != "datetime" or literal.value is None:
        return literal
    literal = dataclasses.replace(literal, value=literals.datetime_text(str(literal.value)))
    if not literals.is_datetime_text(literal.value):
        raise KqlUnsupportedError("literal:datetime", span=lower._span(node), hint=f"'{literal.value}' is no time")
    return literal


def _render_literal(literal: Any) -> Any:
    return literals.literal_sql(literal) or _original["render_literal"](literal)


def _lower_function_call(node: Any) -> Any:
    """Refuses `f(b = 1, a = 2)`: the library would drop the names and take the values in order."""
    for argument in lower._rule_children(node):
        named = lower._collapse(argument)
        if lower._cls(named) in ("ArgumentExpression", "NamedExpression"):
            children = lower._rule_children(named)
            if len(children) == 2 and lower._cls(children[0]) == "NamedExpressionNameClause":
                raise KqlUnsupportedError("named-argument", span=lower._span(named), hint="give arguments in order")
    return _original["_lower_function_call"](node)


def _lower_named(node: Any) -> Any:
    return several_columns.named_tuple(node, _original["_lower_named"](node))


def _lower_expr(node: Any) -> Any:
    """Reads `typeof(long)`, the last argument of `extract`, as a literal, and `pack_dictionary` as what it is now."""
    try:
        lowered = _original["_lower_expr"](node)
        if isinstance(lowered, FunctionCall) and lowered.name == "pack_dictionary":
            return dataclasses.replace(lowered, name="bag_pack")
        return lowered
    except KqlUnsupportedError as error:
        inner = lower._collapse(node)
        if lower._cls(inner) == "StringStarOperatorExpression":
            return _lower_binary(inner)
        if "TypeLiteralExpression" not in error.construct or lower._cls(inner) != "TypeLiteralExpression":
            raise
        return literals.TypeName(inner.getText().partition("(")[2].rstrip(")").strip().lower())


def _is_real_expr(node: Any) -> Any:
    """A column of reals divided by zero is infinite, as a literal is; between whole numbers it would be null."""
    if isinstance(node, ColumnRef) and getattr(node, "kind", "") == "real":
        return True
    return _original["_is_real_expr"](node)


def _is_int_expr(node: Any) -> Any:
    """Parts of a date are of type int too, and arithmetic over them is of type long."""
    if isinstance(node, FunctionCall) and node.name.lower() in _INT_FUNCTIONS:
        return True
    if isinstance(node, ColumnRef):
        return getattr(node, "kind", "") == "int"
    return _original["_is_int_expr"](node)


def _render_sort_keys(keys: Any) -> Any:
    for key in keys:
        dynamic_comparisons.refuse_order("sort by", key.expr)
    return _original["render_sort_keys"](keys)


def _render_aggregate_call(call: Any) -> Any:
    if call.args and call.name.lower() in ("max", "min", "maxif", "minif"):
        dynamic_comparisons.refuse_order(call.name, call.args[0])
    rendered = (
        time_arithmetic.time_aggregate(call, translate.render_expr)
        or plain_collection(call, translate.render_expr)
        or _original["_render_aggregate_call"](call)
    )
    return aggregated_text(call, rendered)


def _lift_aggregates(node: Any, *, depth: int = 0) -> Any:
    """Finds aggregates below a path and `in` too: `tostring(make_list(x)[0])`, `iff(max(x) in (1, 2), ...)`."""
    if not isinstance(node, (PathAccess, InList)):
        return _original["_lift_aggregates"](node, depth=depth)
    found = 0

    def lift(part: Any) -> Any:
        nonlocal found
        lifted, inside = translate._lift_aggregates(part, depth=depth)
        found += inside
        return lifted

    parts = {field.name: extension.mapped(getattr(node, field.name), lift) for field in dataclasses.fields(node)}
    return dataclasses.replace(node, **parts), found


def _render_path(node: Any) -> Any:
    """A JSON null that a path leads to is null, as in Kusto, so that `isnull` and `coalesce` see it."""
    base = node.base
    if isinstance(base, FunctionCall) and base.name in ("array_sort_asc", "array_sort_desc") and sorts_several(base):
        node = dataclasses.replace(node, base=dataclasses.replace(base, name=f"{base.name}_together"))
    rendered = path_with_text_keys(node, _original["render_path"]) or _original["render_path"](node)
    return f"nullif({rendered}, CAST('null' AS JSON))"


def _render_bin(node: Any, name: str = "bin") -> Any:
    return time_arithmetic.time_bin(node, translate.render_expr) or _original["render_bin"](node, name)


def _render_expr(node: Any) -> Any:
    if isinstance(node, (BinaryOp, Between, InList)) and sharing.slot_for(node) is None:
        node = dynamic_comparisons.converted(node)
    if isinstance(node, BinaryOp) and sharing.slot_for(node) is None:
        spans = time_arithmetic.span_arithmetic(node, translate.render_expr)
        if spans is not None:
            return spans
    return _original["render_expr"](node)


def _render_term_operator(node: Any, sides: Any) -> Any:
    return text_search.search_operator(node, sides) or _original["_render_term_operator"](node, sides)


def _render_has_list(node: Any, haystack: str) -> Any:
    found = text_search.search_list(node, haystack)
    return translate._has_list_result(found, node) if found else _original["_render_has_list"](node, haystack)


def _render_in_list(node: Any, value: str) -> Any:
    original = _original["_render_in_list"]
    return text_search.member_of_values(node, value, original) or original(node, value)


def _is_dynamic(node: Any) -> Any:
    if isinstance(node, FunctionCall):
        return node.name.lower() in RETURNING_DYNAMIC
    return _original["_is_dynamic"](node)


def _render_kql_tostring(node: Any) -> Any:
    text = text_functions.text_of(node)
    return text or text_functions.with_reals_as_kusto(node, _original["render_kql_tostring"](node))
