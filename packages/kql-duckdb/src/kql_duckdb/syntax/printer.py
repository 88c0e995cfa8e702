"""A tree as text of KQL: `parse(print_tree(tree)) == tree` for every tree that the parser makes.

Brackets stand where the tree needs them, names in `['...']` where they are no plain word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kql_duckdb.syntax import ast
from kql_duckdb.syntax.expression_parser import OTHER_PLACES, timespan_text
from kql_duckdb.syntax.lexer import HYPHENATED

_PLAIN = re.compile(r"\$?[^\W\d]\w*", re.ASCII)
_WORDS = frozenset((*HYPHENATED, "true", "false", "True", "False", "in", "and", "or", "by", "on", "with", "from", "to",
    "step", "kind", "hint", "limit", "default", "of", "asc", "desc", "nulls", "union", "search", "find", "evaluate",
    "print", "range", "dynamic", "typeof", "between", "has", "id", "as", "where", "bin", "others"))  # fmt: skip
"""Words that would be read as something else in one place or another."""

_OR, _AND, _EQUALITY, _RELATION, _SUM, _PRODUCT, _TEXT, _UNARY, _POSTFIX = range(9)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT,
           "==": _EQUALITY, "!=": _EQUALITY, "<": _RELATION, ">": _RELATION, "<=": _RELATION,
           ">=": _RELATION}  # fmt: skip


def print_tree(node: ast.Node) -> str:
    """The text of a whole script, a statement, an operator or an expression."""
    if isinstance(node, ast.Script):
        return ";\n".join(_statement(one) for one in node.statements)
    if isinstance(node, ast.Statement):
        return _statement(node)
    return _free(node)


def print_name(name: str) -> str:
    """`name`, in brackets if it is no plain word."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else f"[{_text(name)}]"


def _statement(node: ast.Statement) -> str:
    if isinstance(node, ast.Let):
        return f"let {print_name(node.name)} = {_free(node.value)}"
    if isinstance(node, ast.Set):
        return f"set {node.name}" + (f" = {_free(node.value)}" if node.value is not None else "")
    if isinstance(node, ast.Declare):
        return f"declare query_parameters{_function_parameters(node.parameters)}"
    if isinstance(node, ast.UnreadStatement):
        return f"{node.keyword} {node.text}"
    assert isinstance(node, ast.Query)
    return _free(node.expression)


def _free(node: ast.Node) -> str:
    """An expression where a query may stand without brackets."""
    if isinstance(node, ast.Pipeline):
        source = _free(node.source)
        if isinstance(node.source, ast.Pipeline):
            source = f"({source})"
        return "\n| ".join((source, *(_operator(one) for one in node.operators)))
    if isinstance(node, ast.Operator):
        return _operator(node)
    if isinstance(node, ast.Function):
        parts = [_statement(one) for one in node.statements]
        parts += [_free(node.body)] if node.body is not None else []
        inner = "; ".join(parts) + (";" if node.body is None and parts else "")
        return f"{'view ' if node.view else ''}{_function_parameters(node.parameters)} {{ {inner} }}"
    writer = _SOURCES.get(type(node))
    return writer(node) if writer is not None else _expression(node, _OR)


def _function_parameters(parameters: Iterable[ast.FunctionParameter]) -> str:
    return f"({', '.join(_function_parameter(one) for one in parameters)})"


def _function_parameter(one: ast.FunctionParameter) -> str:
    kind = _schema(one.schema) if one.schema is not None else one.type
    default = f" = {_expression(one.default, _OR)}" if one.default is not None else ""
    return f"{print_name(one.name)}: {kind}{default}"


# --------------------------------------------------------------------------------------------- expressions


def _expression(node: ast.Node, level: int) -> str:
    """An expression, in brackets if it binds less tightly than `level`."""
    own, text = _levelled(node)
    return f"({text})" if own < level else text


def _levelled(node: ast.Node) -> tuple[int, str]:
    if isinstance(node, ast.Logical):
        own = _OR if node.operator == "or" else _AND
        return own, f" {node.operator} ".join(_expression(one, own + 1) for one in node.operands)
    if isinstance(node, ast.Binary):
        own = _LEVELS.get(node.operator, _TEXT)
        left = own + 1 if own in (_EQUALITY, _RELATION) else own
        return own, f"{_expression(node.left, left)} {node.operator} {_expression(node.right, own + 1)}"
    if isinstance(node, ast.InList):
        items = ", ".join(_free(one) for one in node.items)
        return _EQUALITY, f"{_expression(node.left, _RELATION)} {node.operator} ({items})"
    if isinstance(node, ast.Between):
        bounds = f"{_expression(node.low, _OR)} .. {_expression(node.high, _OR)}"
        return _EQUALITY, f"{_expression(node.value, _RELATION)} {node.operator} ({bounds})"
    if isinstance(node, ast.Unary):
        return _UNARY, f"{node.operator}{_expression(node.value, _UNARY)}"
    return _POSTFIX, _postfix(node)


def _postfix(node: ast.Node) -> str:
    if isinstance(node, ast.Literal):
        return _literal(node)
    if isinstance(node, ast.Name):
        return print_name(node.name)
    if isinstance(node, ast.Pattern):
        return node.pattern
    if isinstance(node, ast.TypeOf):
        return f"typeof({', '.join(node.types)})"
    if isinstance(node, ast.Call):
        return f"{node.name}({', '.join(_argument(one) for one in node.arguments)})"
    if isinstance(node, ast.Qualified):
        return f"{_expression(node.owner, _POSTFIX)}.{_expression(node.member, _POSTFIX)}"
    if isinstance(node, ast.Member):
        owner = _expression(node.value, _POSTFIX)
        return f"{owner}.{print_name(node.name)}" if not _is_place(node.value) else f"({owner}).{print_name(node.name)}"
    if isinstance(node, ast.Index):
        index = _expression(node.index, _OR)
        if isinstance(node.index, ast.Literal) and node.index.kind == "string" and isinstance(node.value, ast.Name):
            return f"{_postfix(node.value)}[{index}]"
        return f"{_expression(node.value, _POSTFIX)}[{index}]"
    return f"({_free(node)})"


def _is_place(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name in OTHER_PLACES


def _argument(one: ast.Argument) -> str:
    return f"{one.name} = {_free(one.value)}" if one.name is not None else _free(one.value)


def _literal(node: ast.Literal) -> str:
    value = node.value
    if value is None:
        return f"{node.kind}(null)"
    if isinstance(value, str) and node.kind == "string":
        return _text(value)
    if node.kind == "timespan" and isinstance(value, int):
        return f"timespan({timespan_text(value)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return f"real({'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'})"
        return repr(value) if value >= 0 and math.copysign(1, value) > 0 else f"real({value!r})"
    if node.kind == "long":
        return str(value) if int(value) >= 0 else f"long({value})"
    return f"{node.kind}({value})"


_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


def _text(value: str) -> str:
    return '"' + _UNSAFE.sub(lambda found: _escape(found[0]), value) + '"'


def _escape(character: str) -> str:
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"


# --------------------------------------------------------------------------------------------- sources


def _column_types(columns: Iterable[ast.ColumnType]) -> str:
    return f"({', '.join(f'{print_name(one.name)}: {one.type}' for one in columns)})"


def _schema(node: ast.Schema) -> str:
    stars = ["*"] if node.open else []
    return f"({', '.join([*stars, *(f'{print_name(one.name)}: {one.type}' for one in node.columns)])})"


def _datatable(node: ast.DataTable) -> str:
    return f"datatable{_column_types(node.columns)}[{', '.join(_expression(one, _OR) for one in node.values)}]"


def _externaldata(node: ast.ExternalData) -> str:
    places = ", ".join(_expression(one, _OR) for one in node.places)
    return f"externaldata{_column_types(node.columns)}[{places}]{_with(node.options)}"


def _range(node: ast.Range) -> str:
    bounds = (_expression(one, _OR) for one in (node.first, node.last, node.step))
    return "range {} from {} to {} step {}".format(print_name(node.name), *bounds)


_SOURCES: dict[type, Callable[[Any], str]] = {
    ast.DataTable: _datatable,
    ast.ExternalData: _externaldata,
    ast.Range: _range,
    ast.Print: lambda node: f"print {_named_list(node.columns)}",
}


# --------------------------------------------------------------------------------------------- operators


def _operator(node: ast.Operator) -> str:
    return _OPERATORS[type(node)](node)


def _named(one: ast.Named) -> str:
    text = _expression(one.expression, _OR)
    if one.several:
        return f"({', '.join(map(print_name, one.names))}) = {text}"
    return f"{print_name(one.names[0])} = {text}" if one.names else text


def _named_list(columns: Iterable[ast.Named]) -> str:
    return ", ".join(map(_named, columns))


def _ordered(one: ast.OrderedBy) -> str:
    direction = f" {one.direction}" if one.direction else ""
    return f"{_named(one.expression)}{direction}{f' nulls {one.nulls}' if one.nulls else ''}"


def _ordered_list(keys: Iterable[ast.OrderedBy]) -> str:
    return ", ".join(map(_ordered, keys))


def _parameters(parameters: Iterable[ast.Parameter]) -> str:
    return "".join(f"{one.name} = {_parameter_value(one.value)} " for one in parameters)


def _parameter_value(value: ast.Expression) -> str:
    return print_name(value.name) if isinstance(value, ast.Name) else _expression(value, _UNARY)


def _options(options: Iterable[ast.Argument]) -> str:
    return ", ".join(
        f"{one.name} = {_expression(one.value, _SUM)}" if one.name else _expression(one.value, _SUM) for one in options
    )


def _with(options: Sequence[ast.Argument]) -> str:
    return f" with ({_options(options)})" if options else ""


def _piped(operators: Iterable[ast.Operator]) -> str:
    return f"({' | '.join(_operator(one) for one in operators)})"


def _summarize(node: ast.Summarize) -> str:
    keys = f" by {_named_list(node.keys)}" if node.keys else ""
    size = f" bin = {_expression(node.bin, _OR)}" if node.bin is not None else ""
    return f"summarize {_parameters(node.parameters)}{_named_list(node.aggregates)}{keys}{size}"


def _join(node: ast.Join) -> str:
    on = f" on {', '.join(_expression(one, _OR) for one in node.conditions)}" if node.conditions else ""
    return f"{node.keyword} {_parameters(node.parameters)}{_postfix(node.right)}{on}"


def _inputs(tables: Iterable[ast.Expression]) -> str:
    return ", ".join(_postfix(one) for one in tables)


def _in_tables(tables: Sequence[ast.Expression]) -> str:
    return f"in ({_inputs(tables)}) " if tables else ""


def _find(node: ast.Find) -> str:
    columns = ", ".join(
        "pack(*)" if one.name == "*" else f"{print_name(one.name)}{f': {one.type}' if one.type else ''}"
        for one in node.columns
    )
    chosen = f" project {columns}" if columns else " project-smart" if node.smart else ""
    away = f" project-away {', '.join(_postfix(one) for one in node.away)}" if node.away else ""
    predicate = _expression(node.predicate, _OR)
    return f"find {_parameters(node.parameters)}{_in_tables(node.tables)}where {predicate}{chosen}{away}"


def _expansions(columns: Iterable[ast.Expansion]) -> str:
    return ", ".join(f"{_named(one.column)}{f' to typeof({one.type})' if one.type else ''}" for one in columns)


def _limit(limit: ast.Expression | None) -> str:
    return f" limit {_expression(limit, _OR)}" if limit is not None else ""


def _mv_apply(node: ast.MvApply) -> str:
    marker = f" id {_expression(node.id, _OR)}" if node.id is not None else ""
    head = f"mv-apply {_parameters(node.parameters)}{_expansions(node.columns)}{_limit(node.limit)}"
    return f"{head}{marker} on {_piped(node.body)}"


def _parse(node: ast.Parse) -> str:
    parts = (
        _literal(one) if isinstance(one, ast.Literal) else "*" if one.name == "*" else _parse_column(one)
        for one in node.pattern
    )
    return f"{node.keyword} {_parameters(node.parameters)}{_expression(node.expression, _OR)} with {' '.join(parts)}"


def _parse_column(one: ast.ParseColumn) -> str:
    return f"{print_name(one.name)}{f': {one.type}' if one.type else ''}"


def _make_series(node: ast.MakeSeries) -> str:
    aggregates = ", ".join(
        _named(one.column) + (f" default = {_expression(one.default, _OR)}" if one.default is not None else "")
        for one in node.aggregates
    )
    axis = _named(ast.Named(node.axis.expression, node.axis.names, node.axis.several))
    if node.in_range and node.first is not None and node.last is not None:
        bounds = ", ".join(_expression(one, _OR) for one in (node.first, node.last, node.step))
        limits = f" in range({bounds})"
    else:
        limits = "".join(
            f" {word} {_expression(one, _OR)}"
            for word, one in (("from", node.first), ("to", node.last), ("step", node.step))
            if one is not None
        )
    keys = f" by {_named_list(node.keys)}" if node.keys else ""
    return f"make-series {_parameters(node.parameters)}{aggregates} on {axis}{limits}{keys}"


def _level(level: ast.NestedLevel) -> str:
    count = f" {_expression(level.count, _OR)}" if level.count is not None else ""
    others = f" with others = {_expression(level.others, _OR)}" if level.others is not None else ""
    return f"top-nested{count} of {_named(level.key)}{others} by {_ordered(level.order)}"


def _scan(node: ast.Scan) -> str:
    order = f"order by {_ordered_list(node.order)} " if node.order else ""
    partition = f"partition by {_named_list(node.partition)} " if node.partition else ""
    columns = ", ".join(
        f"{print_name(one.name)}: {one.type}"
        + (f" = {_expression(one.default, _OR)}" if one.default is not None else "")
        for one in node.columns
    )
    declare = f"declare ({columns}) " if columns else ""
    steps = " ".join(map(_scan_step, node.steps))
    return f"scan {_parameters(node.parameters)}{order}{partition}{declare}with ({steps})"


def _scan_step(step: ast.ScanStep) -> str:
    optional = " optional" if step.optional else ""
    output = f" output = {step.output}" if step.output else ""
    made = f" => {_named_list(step.assignments)}" if step.assignments else ""
    return f"step {print_name(step.name)}{optional}{output}: {_expression(step.condition, _OR)}{made};"


def _partition(node: ast.Partition) -> str:
    body = f"{{ {_free(node.query)} }}" if node.query is not None else _piped(node.body)
    return f"partition {_parameters(node.parameters)}by {_expression(node.key, _OR)} {body}"


def _evaluate(node: ast.Evaluate) -> str:
    schema = f" : {_schema(node.schema)}" if node.schema is not None else ""
    return f"evaluate {_parameters(node.parameters)}{_postfix(node.call)}{schema}"


def _facet(node: ast.Facet) -> str:
    inner = f" with {_piped(node.operators)}" if node.operators else ""
    return f"facet by {', '.join(_expression(one, _OR) for one in node.columns)}{inner}"


def _branch(branch: ast.Branch) -> str:
    return f"{print_name(branch.name)} = {_piped(branch.operators)}" if branch.name else _piped(branch.operators)


_OPERATORS: dict[type, Callable[[Any], str]] = {
    ast.Where: lambda node: f"where {_expression(node.predicate, _OR)}",
    ast.Extend: lambda node: f"extend {_named_list(node.columns)}",
    ast.Project: lambda node: f"{node.keyword} {_named_list(node.columns)}".rstrip(),
    ast.Choose: lambda node: f"{node.keyword} {_ordered_list(node.columns)}",
    ast.Sort: lambda node: f"sort by {_ordered_list(node.keys)}",
    ast.Top: lambda node: f"top {_expression(node.count, _OR)} by {_ordered_list(node.keys)}",
    ast.Take: lambda node: f"take {_expression(node.count, _OR)}",
    ast.Count: lambda node: "count" + (f" as {print_name(node.name)}" if node.name else ""),
    ast.Distinct: lambda node: f"distinct {_named_list(node.columns)}",
    ast.Summarize: _summarize,
    ast.Join: _join,
    ast.Union: lambda node: f"union {_parameters(node.parameters)}{_inputs(node.inputs)}",
    ast.Search: lambda node: (
        f"search {_parameters(node.parameters)}{_in_tables(node.tables)}{_expression(node.predicate, _OR)}"
    ),
    ast.Find: _find,
    ast.MvExpand: lambda node: (
        f"mv-expand {_parameters(node.parameters)}{_expansions(node.columns)}{_limit(node.limit)}"
    ),
    ast.MvApply: _mv_apply,
    ast.Parse: _parse,
    ast.ParseKv: lambda node: (
        f"parse-kv {_expression(node.expression, _OR)} as {_column_types(node.columns)}{_with(node.options)}"
    ),
    ast.MakeSeries: _make_series,
    ast.Evaluate: _evaluate,
    ast.Invoke: lambda node: f"invoke {_postfix(node.call)}",
    ast.Partition: _partition,
    ast.Fork: lambda node: "fork " + " ".join(map(_branch, node.branches)),
    ast.Facet: _facet,
    ast.TopNested: lambda node: ", ".join(map(_level, node.levels)),
    ast.TopHitters: lambda node: (
        f"top-hitters {_expression(node.count, _OR)} of {_named(node.key)}"
        + (f" by {_expression(node.weight, _OR)}" if node.weight is not None else "")
    ),
    ast.Sample: lambda node: (
        f"sample {_expression(node.count, _OR)}"
        if node.key is None
        else f"sample-distinct {_expression(node.count, _OR)} of {_named(node.key)}"
    ),
    ast.Serialize: lambda node: f"serialize {_named_list(node.columns)}".rstrip(),
    ast.As: lambda node: f"as {_parameters(node.parameters)}{print_name(node.name)}",
    ast.GetSchema: lambda node: "getschema",
    ast.Consume: lambda node: f"consume {_parameters(node.parameters)}".rstrip(),
    ast.Reduce: lambda node: (
        f"reduce by {_expression(node.expression, _OR)}" + (f" with {_options(node.options)}" if node.options else "")
    ),
    ast.Render: lambda node: f"render {node.kind}{_with(node.options)}",
    ast.Scan: _scan,
    ast.Unread: lambda node: f"{node.keyword} {node.text}".rstrip(),
}
