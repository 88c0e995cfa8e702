"""From KQL's parse tree to operators and expressions, where the library refuses or misreads what Kusto takes.

Each function stands in the place of the library's one of the same name, which it asks for everything else.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.ir import (  # noqa: TID253
    BinaryOp,
    ColumnRef,
    Extend,
    FunctionCall,
    GetSchema,
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
from duckdb_kql.translate import naming  # noqa: TID253

from sentinel_rag.workspace.kql import literals, several_columns
from sentinel_rag.workspace.kql.column_choices import ColumnChoice, lower_column_choice
from sentinel_rag.workspace.kql.evaluate_plugins import lower_evaluate
from sentinel_rag.workspace.kql.make_series import lower_make_series
from sentinel_rag.workspace.kql.mv_apply import lower_mv_apply
from sentinel_rag.workspace.kql.parse_patterns import with_leading_column
from sentinel_rag.workspace.kql.partition import lower_partition
from sentinel_rag.workspace.kql.replacements import original
from sentinel_rag.workspace.kql.searches import (
    lower_search,
    lower_search_head,
    lower_where_any_column,
)
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

_CHOOSING = {
    "ProjectReorderOperator": "project-reorder",
    "ProjectKeepOperator": "project-keep",
    "ProjectAwayOperator": "project-away",
}
_ADDED: dict[str, Any] = {
    "TopNestedOperator": lower_top_nested,
    "TopNestedOperatorPart": lower_top_nested,
    "TopHittersOperator": lower_top_hitters,
    "SampleDistinctOperator": lower_sample_distinct,
    "PartitionOperator": lower_partition,
    "SerializeOperator": lower_serialize,
    "MakeSeriesOperator": lower_make_series,
    "MvapplyOperator": lower_mv_apply,
    "EvaluateOperator": lower_evaluate,
    "SearchOperator": lower_search,
}
"""Operators that become nodes of ours, whatever stands in them."""


def lower_operator(node: Any) -> Any:
    """Adds the operators of `_ADDED`, as, project-reorder, project-keep, distinct *, sample, getschema and counts by
    name."""
    inner = node
    while lower._cls(inner) in ("PipedOperator", "AfterPipeOperator"):
        children = lower._rule_children(inner)
        if not children:
            return original["_lower_operator"](node)
        inner = children[0]
    inner = lower._collapse(inner)
    kind, children = lower._cls(inner), lower._rule_children(inner)
    if kind == "AsOperator":
        return None
    if kind in _CHOOSING:
        return lower_column_choice(_CHOOSING[kind], inner)
    if kind == "DistinctOperator" and any(lower._cls(child) == "DistinctOperatorStarTarget" for child in children):
        return ColumnChoice("distinct *")
    if kind == "SortOperator" and inner.getText() == "sortby1":
        return [Serialize()]
    added = _ADDED.get(kind)
    if added is not None:
        return added(inner)
    if kind == "WhereOperator" and lower._find_all(inner, "StringStarOperatorExpression"):
        return lower_where_any_column(inner)
    if kind == "GetSchemaOperator":
        ordinal = FunctionCall("tolong", (ColumnRef("ColumnOrdinal"),))
        return [GetSchema(), Extend((NamedExpr(ordinal, "ColumnOrdinal"),))]
    counted = _counted(kind, children)
    if counted is not None:
        return counted
    if kind in ("ParseOperator", "ParseWhereOperator"):
        return with_leading_column(inner, original["_lower_operator"])
    lowered = several_columns.expanded(original["_lower_operator"](node))
    return [windowed(one) for one in lowered] if isinstance(lowered, list) else windowed(lowered)


def lower_head(head: Any, rest: list[Any]) -> Any:
    """Lets a query begin with `search` or with brackets: `(union A, B) | where ...` continues what they hold."""
    named = split_at_as(rest)
    if named is not None:
        index, name = named
        binding = AsName(name)
        return Query(
            TableRef(name), lower._lower_operators(rest[index + 1 :]), [(binding, lower_head(head, rest[:index]))]
        )
    collapsed = lower._collapse(head)
    if lower._cls(collapsed) == "SearchOperator":
        return lower_search_head(collapsed, rest)
    if lower._cls(collapsed) == "UnionOperator" and make_graph_index(rest) is None:
        union = lower._lower_union(collapsed, lower._rule_children(collapsed))
        source = UnionSource(union.branches, union.kind, union.with_source, union.isfuzzy)
        return Query(source, lower._lower_operators(rest))
    if lower._cls(collapsed) != "ParenthesizedExpression" or make_graph_index(rest) is not None:
        return original["_lower_head"](head, rest)
    inner = lower._lower_query_node(collapsed)
    return Query(inner.source, [*inner.operators, *lower._lower_operators(rest)], list(inner.lets))


def lower_binary(node: Any, left: Any = None) -> Any:
    """Adds `* has "x"` and, for `search`, `Column:"x"`."""
    children = lower._rule_children(node)
    if lower._cls(node) == "StringStarOperatorExpression":
        return BinaryOp(lower._op_text(children[0]), Wildcard(), lower._lower_expr(children[1]))
    operations = [child for child in children if lower._cls(child) == "StringBinaryOperation"]
    if len(operations) == 1 and lower._children(operations[0])[0].getText() == ":":
        return BinaryOp(":", lower._lower_expr(children[0]), lower._lower_expr(lower._rule_children(operations[0])[-1]))
    return original["_lower_binary"](node, left)


def lower_mv_expand_target(node: Any) -> Any:
    """Names an unnamed expression as Kusto does elsewhere: `Props.tags` gives `Props_tags`, else it is `Column1`."""
    try:
        return original["_lower_mv_expand_target"](node)
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


def declare_let_function(declaration: Any, scalars: Any) -> None:
    """Lets a function give rows: `let f = (x:long) { T | where a > x }`."""
    declare_function(declaration, scalars, original["_declare_let_function"])


def lower_source(node: Any) -> Any:
    """Reads a table that a parameter names."""
    return table_of_parameter(original["_lower_source"](node))


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


def lower_path(node: Any) -> Any:
    """Reads the older `value.[0]` as `value[0]`."""
    for child in lower._rule_children(node):
        if lower._cls(lower._collapse(child)) == "LegacyFunctionCallOrPathElementOperation":
            break
    else:
        return original["_lower_path"](node)
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


def typed_literal(node: Any, kind: str, convert: Any) -> Any:
    """`decimal(0.1)` keeps its digits; a text that is no time is refused instead of becoming null."""
    if lower._cls(node) == "DecimalLiteralExpression":
        return original["_typed_literal"](node, "decimal", literals.decimal_text)
    literal = original["_typed_literal"](node, kind, convert)
    if kind != "datetime" or literal.value is None:
        return literal
    literal = dataclasses.replace(literal, value=literals.datetime_text(str(literal.value)))
    if not literals.is_datetime_text(literal.value):
        raise KqlUnsupportedError("literal:datetime", span=lower._span(node), hint=f"'{literal.value}' is no time")
    return literal


def lower_function_call(node: Any) -> Any:
    """Refuses `f(b = 1, a = 2)`: the library would drop the names and take the values in order."""
    for argument in lower._rule_children(node):
        named = lower._collapse(argument)
        if lower._cls(named) in ("ArgumentExpression", "NamedExpression"):
            children = lower._rule_children(named)
            if len(children) == 2 and lower._cls(children[0]) == "NamedExpressionNameClause":
                raise KqlUnsupportedError("named-argument", span=lower._span(named), hint="give arguments in order")
    return original["_lower_function_call"](node)


def lower_named(node: Any) -> Any:
    """Lets `(a, b) = ...` name several columns."""
    return several_columns.named_tuple(node, original["_lower_named"](node))


def lower_expr(node: Any) -> Any:
    """Reads `typeof(long)`, the last argument of `extract`, as a literal, and `pack_dictionary` as what it is now."""
    try:
        lowered = original["_lower_expr"](node)
        if isinstance(lowered, FunctionCall) and lowered.name == "pack_dictionary":
            return dataclasses.replace(lowered, name="bag_pack")
        return lowered
    except KqlUnsupportedError as error:
        inner = lower._collapse(node)
        if lower._cls(inner) == "StringStarOperatorExpression":
            return lower_binary(inner)
        if "TypeLiteralExpression" not in error.construct or lower._cls(inner) != "TypeLiteralExpression":
            raise
        return literals.TypeName(inner.getText().partition("(")[2].rstrip(")").strip().lower())
