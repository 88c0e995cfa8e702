"""From Python's syntax tree to a checked tree: everything is refused unless this module knows it, its types fit, and it
stays within the limits below."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Collection, Mapping

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.patterns import BadPattern, compile_pattern
from sentinel_rag.gateway.policy.conditions.reading import ConditionError, read_expression
from sentinel_rag.gateway.policy.conditions.value_types import (
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    STRING,
    Kind,
    ValueType,
    comparable,
    ordered,
)

MAX_NODES = 200
MAX_DEPTH = 25
MAX_LITERAL = 512
MAX_INTEGER = 2**53 - 1

CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
"""The spellings of JSON and CEL beside Python's own True, False and None."""

STRING_TESTS = {
    "startswith": "startswith",
    "startsWith": "startswith",
    "endswith": "endswith",
    "endsWith": "endswith",
    "contains": "contains",
}
PATTERN_TESTS = ("matches",)
CASE_MAPPINGS = {
    "lower": "lower",
    "lowerAscii": "lower",
    "upper": "upper",
    "upperAscii": "upper",
    "strip": "strip",
    "trim": "strip",
    "casefold": "casefold",
}
FUNCTIONS = ("len", "size", "has", "named")
OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
RESERVED = frozenset({*CONSTANTS, *FUNCTIONS, "True", "False", "None"})
"""Names that mean something else in a condition, so that no parameter may have them."""

Typed = tuple[ValueType, tree.Expression]


def named_argument(name: str) -> str:
    """Under which name a call tells whether the user's words name the value of a parameter: what `named(x)` reads."""
    return f"named({name})"


def check(text: str, parameters: Mapping[str, ValueType], attested: Collection[str] = frozenset()) -> tree.Expression:
    """The condition that `text` states about `parameters`; `named` may be asked of those that are `attested`. Raises
    ConditionError."""
    body = read_expression(text)
    checker = _Checker(parameters, attested)
    found, expression = checker.visit(body, 0)
    if found != BOOLEAN:
        raise ConditionError(f"the condition is {_a(found)}, not true or false")
    return expression


def closest(name: str, known: Collection[str]) -> str:
    """The end of a sentence that helps with a misspelt name."""
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {', '.join(sorted(known))}" if known else "; there are none"


class _Checker:
    def __init__(self, parameters: Mapping[str, ValueType], attested: Collection[str]) -> None:
        self._parameters = parameters
        self._attested = attested
        self._nodes = 0

    def visit(self, node: ast.expr, depth: int) -> Typed:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _refused(node, "the condition is too large; split it into two rules")
        deeper = depth + 1
        match node:
            case ast.Constant():
                return _literal(node)
            case ast.Name():
                return self._name(node)
            case ast.BoolOp():
                operands = tuple(self._condition(value, deeper) for value in node.values)
                return BOOLEAN, tree.Every(operands) if isinstance(node.op, ast.And) else tree.Some(operands)
            case ast.UnaryOp(op=ast.Not()):
                return BOOLEAN, tree.Not(self._condition(node.operand, deeper))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                found, expression = self.visit(node.operand, deeper)
                if isinstance(expression, tree.Literal) and found.numeric:
                    return found, tree.Literal(-expression.value)  # type: ignore[operator]  # numeric by its type
                raise _refused(node, "only a number can be negative")
            case ast.Compare():
                return self._comparison(node, deeper)
            case ast.Call():
                return self._call(node, deeper)
            case ast.List() | ast.Tuple() | ast.Set():
                raise _refused(node, "a list may only stand after in, or inside startswith and endswith")
            case _:
                raise _refused(node, f"{type(node).__name__} is not part of the condition language")

    def _name(self, node: ast.Name) -> Typed:
        if node.id in CONSTANTS:
            value = CONSTANTS[node.id]
            return (NULL, tree.Literal(False)) if value is None else (BOOLEAN, tree.Literal(value))
        if node.id in self._parameters:
            return self._parameters[node.id], tree.Argument(node.id)
        raise _refused(node, f"unknown parameter {node.id!r}{closest(node.id, self._parameters)}")

    def _condition(self, node: ast.expr, depth: int) -> tree.Expression:
        found, expression = self.visit(node, depth)
        if found != BOOLEAN:
            raise _refused(node, f"expected true or false, found {_a(found)}")
        return expression

    def _comparison(self, node: ast.Compare, depth: int) -> Typed:
        presence = self._presence(node)
        if presence is not None:
            return BOOLEAN, presence
        left, first = self.visit(node.left, depth)
        rest: list[tuple[str, tree.Expression]] = []
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            name = OPERATORS.get(type(operator))
            if name is None:
                raise _refused(node, "is may only be used with null")
            if len(node.ops) > 1 and name in ("in", "not in"):
                raise _refused(node, "in may not stand in a chain of comparisons; join two with and")
            if isinstance(operand, ast.List | ast.Tuple | ast.Set):
                right, expression = self._choices(operand, depth)
            else:
                right, expression = self.visit(operand, depth)
            if not _may_compare(left, name, right):
                raise _refused(node, f"{_a(left)} {name} {_a(right)} can never be decided")
            rest.append((name, expression))
            left = right
        return BOOLEAN, tree.Comparison(first, tuple(rest))

    def _presence(self, node: ast.Compare) -> tree.Expression | None:
        """`x == null`, `x is None` and their negations."""
        if not any(_is_null(part) for part in (node.left, *node.comparators)):
            return None
        operator = node.ops[0]
        if len(node.ops) > 1 or not isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
            raise _refused(node, "null may only be compared with ==, !=, is or is not")
        parts = [part for part in (node.left, node.comparators[0]) if not _is_null(part)]
        if len(parts) != 1 or not isinstance(parts[0], ast.Name):
            raise _refused(node, "null may only be compared with a parameter")
        found, expression = self._name(parts[0])
        if not isinstance(expression, tree.Argument):
            raise _refused(node, f"null may only be compared with a parameter, not with {_a(found)}")
        present = tree.Present(expression.name)
        return tree.Not(present) if isinstance(operator, ast.Eq | ast.Is) else present

    def _choices(self, node: ast.List | ast.Tuple | ast.Set, depth: int) -> Typed:
        found: list[Typed] = [self.visit(element, depth) for element in node.elts]
        literals = [part.value for _, part in found if isinstance(part, tree.Literal)]
        kinds = {kind for kind, _ in found}
        if not found or len(literals) != len(found) or len(kinds) != 1 or NULL in kinds:
            raise _refused(node, "a list must hold literals of one type, at least one")
        return ValueType(Kind.ARRAY, found[0][0].kind), tree.Choices(tuple(literals))

    def _call(self, node: ast.Call, depth: int) -> Typed:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise _refused(node, "keyword and starred arguments are not part of the condition language")
        if isinstance(node.func, ast.Name):
            return self._function(node, node.func.id, depth)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, depth)
        raise _refused(node, "only the listed functions and methods may be called")

    def _function(self, node: ast.Call, name: str, depth: int) -> Typed:
        if name not in FUNCTIONS:
            raise _refused(node, f"unknown function {name!r}{closest(name, FUNCTIONS)}")
        if len(node.args) != 1:
            raise _refused(node, f"{name} takes one argument")
        found, expression = self.visit(node.args[0], depth)
        if name == "has":
            if not isinstance(expression, tree.Argument):
                raise _refused(node, "has takes the name of a parameter")
            return BOOLEAN, tree.Present(expression.name)
        if name == "named":
            if not isinstance(expression, tree.Argument) or expression.name not in self._attested:
                raise _refused(node, "named takes the name of a parameter that has attest")
            return BOOLEAN, tree.Argument(named_argument(expression.name))
        if found.kind not in (Kind.STRING, Kind.ARRAY, Kind.OBJECT):
            raise _refused(node, f"{name} of {_a(found)}")
        return INTEGER, tree.Length(expression)

    def _method(self, node: ast.Call, function: ast.Attribute, depth: int) -> Typed:
        name = function.attr
        known = (*STRING_TESTS, *CASE_MAPPINGS, *PATTERN_TESTS)
        if name not in known:
            raise _refused(node, f"unknown method {name!r}{closest(name, known)}")
        found, subject = self.visit(function.value, depth)
        if found != STRING:
            raise _refused(node, f"{name} is a method of a string, not of {_a(found)}")
        if name in CASE_MAPPINGS:
            if node.args:
                raise _refused(node, f"{name} takes no argument")
            return STRING, tree.CaseMapping(CASE_MAPPINGS[name], subject)
        if len(node.args) != 1:
            raise _refused(node, f"{name} takes one argument")
        operand = node.args[0]
        if name in PATTERN_TESTS:
            return BOOLEAN, _pattern_test(subject, operand)
        if isinstance(operand, ast.Tuple | ast.List) and STRING_TESTS[name] != "contains":
            kind, expression = self._choices(operand, depth)
            fits = kind.items is Kind.STRING
        else:
            kind, expression = self.visit(operand, depth)
            fits = kind == STRING
        if not fits:
            raise _refused(operand, f"{name} takes a string, not {_a(kind)}")
        return BOOLEAN, tree.StringTest(STRING_TESTS[name], subject, expression)


def _pattern_test(subject: tree.Expression, operand: ast.expr) -> tree.Matches:
    if not isinstance(operand, ast.Constant) or not isinstance(operand.value, str):
        raise _refused(operand, "matches takes a regular expression written out as a text")
    _literal(operand)
    try:
        return tree.Matches(subject, operand.value, compile_pattern(operand.value))
    except BadPattern as error:
        raise _refused(operand, f"{error} (RE2 syntax, without look-around and backreferences)") from None


def _literal(node: ast.Constant) -> Typed:
    value = node.value
    match value:
        case bool():
            return BOOLEAN, tree.Literal(value)
        case None:
            return NULL, tree.Literal(False)
        case str() if node.kind is None and len(value) <= MAX_LITERAL and value.isprintable():
            return STRING, tree.Literal(value)
        case str():
            raise _refused(node, f"a text must be printable, without prefix and of at most {MAX_LITERAL} characters")
        case int() if abs(value) <= MAX_INTEGER:
            return INTEGER, tree.Literal(value)
        case float() if math.isfinite(value):
            return NUMBER, tree.Literal(value)
        case int() | float():
            raise _refused(node, "the number is out of range")
        case _:
            raise _refused(node, f"{type(value).__name__} is not part of the condition language")


def _may_compare(left: ValueType, operator: str, right: ValueType) -> bool:
    if operator in ("in", "not in"):
        if right.kind is Kind.ARRAY:
            scalar = left.kind not in (Kind.ARRAY, Kind.OBJECT, Kind.NULL)
            return scalar and (right.items is None or comparable(left, ValueType(right.items)))
        return left == STRING and right.kind in (Kind.STRING, Kind.OBJECT)
    if Kind.ARRAY in (left.kind, right.kind) or Kind.OBJECT in (left.kind, right.kind):
        return False
    return comparable(left, right) if operator in ("==", "!=") else ordered(left, right)


def _is_null(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.Name) and node.id == "null")


def _a(found: ValueType) -> str:
    return f"{'an' if str(found)[0] in 'aio' else 'a'} {found}"


def _refused(node: ast.expr, message: str) -> ConditionError:
    return ConditionError(message, node.col_offset + 1)
