"""What this workspace adds to duckdb-kql: KQL that its parser accepts and its translator refuses or misreads.

duckdb-kql has no extension points, so the additions replace functions of the one release that is pinned; `install`
refuses any other. Operators that need the columns at their place become nodes of our own, which `columns_at_place`
resolves before SQL is made. Each addition is listed in `install`, with its reason at its function.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from typing import Any

from duckdb_kql import lower, stored_functions, translate  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.ir import (  # noqa: TID253
    BinaryOp,
    ColumnRef,
    Extend,
    FunctionCall,
    Literal,
    MvExpandTarget,
    NamedExpr,
    Operator,
    Query,
    TableRef,
    Take,
    Union,
)
from duckdb_kql.lower_graph import make_graph_index  # noqa: TID253
from duckdb_kql.translate import functions, naming, sharing  # noqa: TID253

from sentinel_rag.workspace.kql import added_functions, literals, several_columns, time_arithmetic
from sentinel_rag.workspace.kql.dynamic_functions import sorts_several
from sentinel_rag.workspace.kql.make_series import lower_make_series
from sentinel_rag.workspace.kql.streamed_range import streamed_range

PINNED = "1.1.2"

_text_columns: ContextVar[frozenset[str]] = ContextVar("text_columns", default=frozenset())
_as_names: ContextVar[set[str] | None] = ContextVar("as_names", default=None)
_INT_FUNCTIONS = frozenset(
    ["hourofday", "dayofmonth", "dayofyear", "getyear", "getmonth", "monthofyear", "weekofyear", "week_of_year"]
)
_lock = threading.Lock()
_installed = False


@dataclasses.dataclass(frozen=True)
class ColumnChoice(Operator):
    """An operator that needs its input's columns: `project-reorder`, `project-keep`, `distinct *` or `search`.

    A choice is a name or a pattern with `*`, and for a pattern `asc`, `desc` or nothing; for `search` it is the term.
    """

    kind: str
    choices: tuple[tuple[str, str], ...]


@contextmanager
def statement(text_columns: frozenset[str]) -> Iterator[None]:
    """State of one translation: the columns that are surely not dynamic."""
    token = _text_columns.set(text_columns)
    try:
        yield
    finally:
        _text_columns.reset(token)


@contextmanager
def collecting_as_names() -> Iterator[set[str]]:
    """The names that `| as X` gave during one lowering."""
    names: set[str] = set()
    token = _as_names.set(names)
    try:
        yield names
    finally:
        _as_names.reset(token)


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
        _replace(translate, "_render_aggregate_call", _render_aggregate_call)
        _replace(translate, "_is_timespan_expr", time_arithmetic.is_timespan)
        _replace(translate, "_is_datetime_expr", time_arithmetic.is_datetime)
        _replace(translate, "term_match_sql", _term_match_sql)
        _replace(translate, "render_range", streamed_range)
        added_functions.register()
        _installed = True


_original: dict[str, Any] = {}


def _replace(module: Any, name: str, replacement: Any) -> None:
    _original[name] = getattr(module, name)
    setattr(module, name, replacement)


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
        names = _as_names.get()
        if names is not None and children:
            names.update(lower._find_names(children[-1]))
        return None
    if kind == "ProjectReorderOperator":
        return ColumnChoice("project-reorder", tuple(_reorder_choice(child) for child in children))
    if kind == "ProjectKeepOperator":
        return ColumnChoice("project-keep", tuple((_reference_text(child), "") for child in children))
    if kind == "DistinctOperator" and any(lower._cls(child) == "DistinctOperatorStarTarget" for child in children):
        return ColumnChoice("distinct *", ())
    if kind == "SerializeOperator" and not children:
        return []
    if kind == "MakeSeriesOperator":
        return lower_make_series(inner)
    if kind == "SampleOperator" and len(children) == 1:
        count = lower._lower_named(children[0]).expr
        if isinstance(count, Literal) and isinstance(count.value, int):
            return Take(count.value)
    return several_columns.expanded(_original["_lower_operator"](node))


def _reorder_choice(node: Any) -> tuple[str, str]:
    reference = lower._rule_children(node)[0]
    order = node.getText()[len(reference.getText()) :]
    if order not in ("", "asc", "desc"):
        raise KqlUnsupportedError(f"project-reorder {order}", span=lower._span(node))
    return _reference_text(reference), order


def _reference_text(node: Any) -> str:
    names = lower._find_names(node)
    text: str = node.getText()
    return text if "*" in text or not names else names[0]


def _lower_head(head: Any, rest: list[Any]) -> Any:
    """Lets a query begin with `search` or with brackets: `(union A, B) | where ...` continues what they hold."""
    collapsed = lower._collapse(head)
    if lower._cls(collapsed) == "SearchOperator":
        return _lower_search(collapsed, rest)
    if lower._cls(collapsed) != "ParenthesizedExpression" or make_graph_index(rest) is not None:
        return _original["_lower_head"](head, rest)
    inner = lower._lower_query_node(collapsed)
    return Query(inner.source, [*inner.operators, *lower._lower_operators(rest)], list(inner.lets))


def _lower_search(node: Any, rest: list[Any]) -> Any:
    """`search in (A, B) "term"`: the rows of the named tables in which a text has the term, with their table.

    Refused without tables, for a pattern, and for a term without a letter, which Kusto may find in numbers too.
    """
    clauses = [child for child in lower._rule_children(node) if lower._cls(child) == "SearchOperatorInClause"]
    terms = [child for child in lower._rule_children(node) if lower._cls(child) != "SearchOperatorInClause"]
    term = lower._lower_expr(terms[0]) if len(terms) == 1 and len(clauses) == 1 else None
    if not isinstance(term, Literal) or term.kind != "string" or "*" in str(term.value):
        raise KqlUnsupportedError("search", span=lower._span(node), hint='only search in (Table, ...) "term" is run')
    if not any(char.isalpha() for char in str(term.value)):
        raise KqlUnsupportedError("search", span=lower._span(node), hint="a term needs a letter")
    searching = ColumnChoice("search", ((str(term.value), ""),))
    branches = []
    for source in lower._rule_children(clauses[0]):
        name = lower._find_names(source)[0]
        labelled = Extend((NamedExpr(Literal(name, "string"), "$table"),))
        branches.append(Query(TableRef(name), [searching, labelled]))
    first, *others = branches
    union = [Union(tuple(others))] if others else []
    label_first = ColumnChoice("project-reorder", (("$table", ""),))
    return Query(first.source, [*first.operators, *union, label_first, *lower._lower_operators(rest)])


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
    """Makes `let f = (x:long) { T | where a > x };` callable, expanded as the library expands stored ones."""
    try:
        _original["_declare_let_function"](declaration, scalars)
        return
    except KqlUnsupportedError as error:
        scope = lower._FN_STATE.get()
        if "tabular" not in str(error.hint) or scope is None or scope.functions is None:
            raise
    children = lower._rule_children(declaration)
    names = lower._find_names(children[0])
    name = names[0] if names else children[0].getText()
    scope.functions.setdefault(None, {})[name] = stored_functions.StoredFunction(
        name=name, database=None, parameters="", body="", folder="", docstring="", command="", declaration=declaration
    )


def _may_be_dynamic(node: Any) -> bool:
    """A column that the workspace knows to be text needs no check of its type for each row."""
    return isinstance(node, ColumnRef) and node.name not in _text_columns.get()


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


def _lower_named(node: Any) -> Any:
    return several_columns.named_tuple(node, _original["_lower_named"](node))


def _lower_expr(node: Any) -> Any:
    """Reads `typeof(long)`, the last argument of `extract`, as a literal."""
    try:
        return _original["_lower_expr"](node)
    except KqlUnsupportedError as error:
        inner = lower._collapse(node)
        if "TypeLiteralExpression" not in error.construct or lower._cls(inner) != "TypeLiteralExpression":
            raise
        return literals.TypeName(inner.getText().partition("(")[2].rstrip(")").strip().lower())


def _is_int_expr(node: Any) -> Any:
    """Parts of a date are of type int too, and arithmetic over them is of type long."""
    if isinstance(node, FunctionCall) and node.name.lower() in _INT_FUNCTIONS:
        return True
    if isinstance(node, ColumnRef):
        return getattr(node, "kind", "") == "int"
    return _original["_is_int_expr"](node)


def _render_aggregate_call(call: Any) -> Any:
    return time_arithmetic.time_aggregate(call, translate.render_expr) or _original["_render_aggregate_call"](call)


def _render_path(node: Any) -> Any:
    """A JSON null that a path leads to is null, as in Kusto, so that `isnull` and `coalesce` see it."""
    base = node.base
    if isinstance(base, FunctionCall) and base.name in ("array_sort_asc", "array_sort_desc") and sorts_several(base):
        node = dataclasses.replace(node, base=dataclasses.replace(base, name=f"{base.name}_together"))
    return f"nullif({_original['render_path'](node)}, CAST('null' AS JSON))"


def _render_bin(node: Any, name: str = "bin") -> Any:
    return time_arithmetic.time_bin(node, translate.render_expr) or _original["render_bin"](node, name)


def _render_expr(node: Any) -> Any:
    if isinstance(node, BinaryOp) and sharing.slot_for(node) is None:
        spans = time_arithmetic.span_arithmetic(node, translate.render_expr)
        if spans is not None:
            return spans
    return _original["render_expr"](node)


def _term_match_sql(haystack: str, needle: str, **options: Any) -> str:
    """`has` with a constant ASCII needle looks for the substring first, which costs a quarter of the expression.

    ILIKE without an escape matches at least what contains the needle (`_` and `%` only widen it), so no row is lost.
    """
    matched: str = _original["term_match_sql"](haystack, needle, **options)
    text = options.get("needle_text")
    if not text or not text.isascii() or options.get("case_sensitive"):
        return matched
    pattern = "'%" + text.replace("'", "''") + "%'"
    return f"(CASE WHEN {haystack} ILIKE {pattern} THEN {matched} ELSE {haystack} ILIKE {pattern} END)"
