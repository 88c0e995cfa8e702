"""A tree as text of KQL: `parse(print_tree(tree)) == tree` for every tree that the parser makes.

Brackets stand where the tree needs them, names in `['...']` where they are no plain word.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kql_duckdb.syntax import ast
from kql_duckdb.syntax.grammar import HYPHENATED, OPERATORS, OTHERS, Part
from kql_duckdb.syntax.parser import LIST_OPERATORS, OTHER_PLACES
from kql_duckdb.time_texts import timespan_text

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
    return _statement(node)


def print_name(name: str) -> str:
    """`name`, in brackets if it is no plain word."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else f"[{_text(name)}]"


def _statement(node: ast.Node) -> str:
    return _free(node.expression if isinstance(node, ast.Query) else node)


def _free(node: ast.Node) -> str:
    """An expression where a query may stand without brackets."""
    if isinstance(node, ast.Pipeline):
        source = f"({_free(node.source)})" if isinstance(node.source, ast.Pipeline) else _free(node.source)
        return "\n| ".join((source, *(map(_free, node.operators))))
    if isinstance(node, ast.Construct):
        known = node.word in OPERATORS or node.word in OTHERS
        return _constructed(node) if known else f"{node.word} {node.text}".rstrip()
    if isinstance(node, ast.Function):
        parts = [_statement(one) for one in node.statements]
        parts += [_free(node.body)] if node.body is not None else []
        inner = "; ".join(parts) + (";" if node.body is None and parts else "")
        parameters = ", ".join(map(_function_parameter, node.parameters))
        return f"{'view ' if node.view else ''}({parameters}) {{ {inner} }}"
    return _expression(node, _OR)


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
    if isinstance(node, ast.Binary):
        own = _LEVELS.get(node.operator, _TEXT)
        left = own + 1 if own in (_EQUALITY, _RELATION) else own
        return own, f"{_expression(node.left, left)} {node.operator} {_expression(node.right, own + 1)}"
    if isinstance(node, ast.Operation):
        return _operation(node)
    return _POSTFIX, _postfix(node)


def _operation(node: ast.Operation) -> tuple[int, str]:
    if node.operator in ("and", "or"):
        own = _OR if node.operator == "or" else _AND
        return own, f" {node.operator} ".join(_expression(one, own + 1) for one in node.operands)
    first, *others = node.operands
    if node.operator.startswith("unary"):
        return _UNARY, f"{node.operator.removeprefix('unary')}{_expression(first, _UNARY)}"
    listed = (
        ", ".join(map(_free, others))
        if node.operator in LIST_OPERATORS
        else " .. ".join(_expression(one, _OR) for one in others)
    )
    return _EQUALITY, f"{_expression(first, _RELATION)} {node.operator} ({listed})"


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
    if node.kind == "string":
        return _text(value)
    if node.kind == "dynamic":
        return f"dynamic({json.dumps(value)})"
    if node.kind == "decimal":
        return f"decimal({value:f})"
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


# ---------------------------------------------------------------------------------------------- constructs


def _constructed(node: ast.Construct) -> str:
    """A node by its row of the grammar."""
    pieces = _pieces(node, (OPERATORS.get(node.word) or OTHERS[node.word]).parts, set())
    if node.word in OPERATORS:
        pieces[1:1] = [f"{one.name} = {_parameter_value(one.value)}" for one in node.parameters]
    return " ".join(pieces)


def _pieces(node: ast.Construct, parts: Sequence[Part], done: set[str]) -> list[str]:
    found: list[str] = []
    for part in parts:
        value: Any = getattr(node, part.field) if part.field else None
        if part.parts:
            if _is_written(node, part.parts, done):
                found += _pieces(node, part.parts, done)
        elif part.words:
            found.append(node.word if node.word in part.words else part.words[0])
        elif part.kind != "parameters":
            found.append(", ".join(_part(part.kind, one) for one in value) if part.several else _part(part.kind, value))
        done.add(part.field)
    return found


def _is_written(node: ast.Construct, parts: Sequence[Part], done: set[str]) -> bool:
    kept = [one.field for one in parts if one.field]
    if any(name in done for name in kept):
        return False
    flags = [one.field for one in parts if one.words and one.field]
    return not kept or any(getattr(node, name) not in (None, "", (), False) for name in flags or kept)


def _part(kind: str, value: Any) -> str:
    writer = _WRITERS.get(kind)
    return writer(value) if writer is not None else _constructed(value)


def _named(one: ast.Named) -> str:
    text = _expression(one.expression, _OR)
    if one.several:
        return f"({', '.join(map(print_name, one.names))}) = {text}"
    return f"{print_name(one.names[0])} = {text}" if one.names else text


def _ordered(one: ast.Named) -> str:
    direction = f" {one.direction}" if one.direction else ""
    return f"{_named(one)}{direction}{f' nulls {one.nulls}' if one.nulls else ''}"


def _schema(node: ast.Schema) -> str:
    return f"({', '.join([*(['*'] if node.open else []), *map(_column, node.columns)])})"


def _parameter_value(value: ast.Expression) -> str:
    return print_name(value.name) if isinstance(value, ast.Name) else _expression(value, _UNARY)


def _options(options: Iterable[ast.Argument]) -> str:
    return ", ".join(
        f"{one.name} = {_expression(one.value, _SUM)}" if one.name else _expression(one.value, _SUM) for one in options
    )


def _column(one: ast.Column, star: str = "*") -> str:
    return star if one.name == "*" else f"{print_name(one.name)}{f': {one.type}' if one.type else ''}"


def _pattern(parts: Iterable[ast.Literal | ast.Column]) -> str:
    return " ".join(_literal(one) if isinstance(one, ast.Literal) else _column(one) for one in parts)


_WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("expression", "search_predicate", "key_path"), lambda node: _expression(node, _OR)),
    **dict.fromkeys(("input", "postfix", "name_or_pattern", "plugin_call"), _postfix),
    **dict.fromkeys(("pipe_expression", "let_value", "option_value"), _free),
    **dict.fromkeys(("named", "axis"), _named),
    **dict.fromkeys(("ordered", "choice"), _ordered),
    "name": print_name,
    "column_type": _column,
    "type_name": str,
    "schema": _schema,
    "operators": lambda operators: " | ".join(map(_free, operators)),
    "options": _options,
    "find_column": lambda one: _column(one, "pack(*)"),
    "parse_pattern": _pattern,
    "function_parameter": _function_parameter,
}
"""Kind of a field -> what writes it; any other is a row of the grammar."""
