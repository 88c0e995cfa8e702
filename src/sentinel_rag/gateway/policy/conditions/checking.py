"""From an author's text to a checked tree: everything is refused unless this module knows it and its types fit.

The limits below keep Python's parser itself out of danger.
"""

from __future__ import annotations

import ast
import difflib
import math
import warnings
from collections.abc import Collection, Mapping

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.tree import (
    BOOLEAN,
    INTEGER,
    NULL,
    NUMBER,
    STRING,
    BadPattern,
    TypeName,
    ValueType,
    comparable,
    compile_pattern,
    ordered,
)

MAX_LENGTH = 2_000


class ConditionError(ValueError):
    """Why a text is not a condition; `column` counts from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


def read_expression(text: str) -> ast.expr:
    """The expression that `text` is. Raises ConditionError."""
    text = text.strip()
    if not text:
        raise ConditionError("the condition is empty; write true to match every call")
    if len(text) > MAX_LENGTH:
        raise ConditionError(f"the condition has {len(text)} characters; at most {MAX_LENGTH} are allowed")
    if any(character < " " for character in text):
        raise ConditionError("the condition must be one line without control characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an invalid escape, or `is` with a literal
            body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ConditionError(f"syntax: {error.msg}", error.offset or 1) from None
    except (ValueError, RecursionError, MemoryError, Warning) as error:
        raise ConditionError(f"syntax: {error}") from None
    _refuse_foreign_letters(text, body)
    return body


def _refuse_foreign_letters(text: str, body: ast.expr) -> None:
    """Refuse non-ASCII outside strings: Python folds identifiers by NFKC, so a look-alike would name a parameter."""
    strings = [
        (node.col_offset, node.end_col_offset or node.col_offset)
        for node in ast.walk(body)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    position = 0
    for index, character in enumerate(text):
        if ord(character) > 127 and not any(start <= position < end for start, end in strings):
            raise ConditionError(f"the letter {character!r} is allowed inside quotes only", index + 1)
        position += len(character.encode("utf-8", "surrogatepass"))


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
                if isinstance(expression, tree.Constant) and found.numeric:
                    return found, tree.Constant(-expression.value)  # type: ignore[operator]  # numeric by its type
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
            return (NULL, tree.Constant(False)) if value is None else (BOOLEAN, tree.Constant(value))
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
        return BOOLEAN, tree.Compare(first, tuple(rest))

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
        literals = [part.value for _, part in found if isinstance(part, tree.Constant)]
        kinds = {kind for kind, _ in found}
        if not found or len(literals) != len(found) or len(kinds) != 1 or NULL in kinds:
            raise _refused(node, "a list must hold literals of one type, at least one")
        return ValueType(TypeName.ARRAY, found[0][0].kind), tree.Choices(tuple(literals))

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
        if found.kind not in (TypeName.STRING, TypeName.ARRAY, TypeName.OBJECT):
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
            fits = kind.items is TypeName.STRING
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
            return BOOLEAN, tree.Constant(value)
        case None:
            return NULL, tree.Constant(False)
        case str() if node.kind is None and len(value) <= MAX_LITERAL and value.isprintable():
            return STRING, tree.Constant(value)
        case str():
            raise _refused(node, f"a text must be printable, without prefix and of at most {MAX_LITERAL} characters")
        case int() if abs(value) <= MAX_INTEGER:
            return INTEGER, tree.Constant(value)
        case float() if math.isfinite(value):
            return NUMBER, tree.Constant(value)
        case int() | float():
            raise _refused(node, "the number is out of range")
        case _:
            raise _refused(node, f"{type(value).__name__} is not part of the condition language")


def _may_compare(left: ValueType, operator: str, right: ValueType) -> bool:
    if operator in ("in", "not in"):
        if right.kind is TypeName.ARRAY:
            scalar = left.kind not in (TypeName.ARRAY, TypeName.OBJECT, TypeName.NULL)
            return scalar and (right.items is None or comparable(left, ValueType(right.items)))
        return left == STRING and right.kind in (TypeName.STRING, TypeName.OBJECT)
    if TypeName.ARRAY in (left.kind, right.kind) or TypeName.OBJECT in (left.kind, right.kind):
        return False
    return comparable(left, right) if operator in ("==", "!=") else ordered(left, right)


def _is_null(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.Name) and node.id == "null")


def _a(found: ValueType) -> str:
    return f"{'an' if str(found)[0] in 'aio' else 'a'} {found}"


def _refused(node: ast.expr, message: str) -> ConditionError:
    return ConditionError(message, node.col_offset + 1)
