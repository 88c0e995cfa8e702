"""The checked form of a condition: frozen nodes, made only by `checking` and well typed by construction.

Every node is a function of the arguments alone; none of them makes a value larger than its parts, apart from Unicode
case mapping, which is bounded by three times the length. Types are those of JSON Schema. Patterns are RE2's: the time
of a search is linear in the text, and what cannot be linear (backreferences, look-around) does not compile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class TypeName(StrEnum):
    """The names that a policy file uses in `type`, and NULL for the literal."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class ValueType:
    """`items` is the element kind of an ARRAY, None where elements may be anything."""

    kind: TypeName
    items: TypeName | None = None

    def __str__(self) -> str:
        return f"array of {self.items.value}" if self.items else self.kind.value

    @property
    def numeric(self) -> bool:
        return self.kind in (TypeName.INTEGER, TypeName.NUMBER)


STRING = ValueType(TypeName.STRING)
INTEGER = ValueType(TypeName.INTEGER)
NUMBER = ValueType(TypeName.NUMBER)
BOOLEAN = ValueType(TypeName.BOOLEAN)
NULL = ValueType(TypeName.NULL)


def comparable(left: ValueType, right: ValueType) -> bool:
    """Whether `==` between the two can ever be true, so that asking makes sense."""
    return left == right or (left.numeric and right.numeric)


def ordered(left: ValueType, right: ValueType) -> bool:
    """Whether `<` between the two has a meaning."""
    return (left.numeric and right.numeric) or (left == right == STRING)


MAX_PATTERN = 512
MAX_MEMORY = 2**18
"""Bytes that one compiled pattern may take, its cache included."""

MAX_JOINED_MEMORY = 2**21


class Regex(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> Any: ...


class BadPattern(ValueError):
    """RE2 does not take the pattern; the message says which part."""


def compile_pattern(pattern: str) -> Regex:
    """Raises BadPattern."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"the regular expression has more than {MAX_PATTERN} characters")
    if not pattern:
        raise BadPattern("the regular expression is empty and would match every text")
    return _compiled(pattern, MAX_MEMORY)


def join_patterns(patterns: Iterable[str]) -> Regex | None:
    """One pattern that is found where any of `patterns` is; None if together they are too large."""
    try:
        return _compiled("|".join(f"(?:{pattern})" for pattern in patterns), MAX_JOINED_MEMORY)
    except BadPattern:
        return None


def found(regex: Regex, text: str) -> bool:
    return regex.search(text) is not None


def escaped(text: str) -> str:
    """The pattern of exactly `text`."""
    import re2

    return str(re2.escape(text))


def _compiled(pattern: str, memory: int) -> Regex:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.never_capture = True
    try:
        compiled: Regex = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(f"not a regular expression: {text}") from None
    return compiled


Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as it is written."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Choices:
    """A written list of literals of one kind: what stands right of `in`, or the prefixes of `startswith`."""

    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """The value of a parameter; unknown where the call leaves it out."""

    name: str


@dataclass(frozen=True, slots=True)
class Present:
    """`has(x)`: whether the call gives the parameter. Never unknown."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """`not`; unknown where its operand is."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Every:
    """`and`: all of them hold."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """`or`: one of them holds."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain as Python has it: `a < b <= c`. One operator more than none; each operand is evaluated once."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class StringTest:
    """`startswith`, `endswith` (operand: a string or Choices) or `contains` on a string."""

    method: str
    subject: Expression
    operand: Expression


@dataclass(frozen=True, slots=True)
class Matches:
    """Whether `regex`, the compiled form of `pattern`, is found anywhere in a string (RE2, no anchors implied)."""

    subject: Expression
    pattern: str
    regex: Regex = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CaseMapping:
    """`lower`, `upper`, `casefold` or `strip` of a string."""

    method: str
    subject: Expression


@dataclass(frozen=True, slots=True)
class Length:
    """Characters of a string, elements of an array or members of an object."""

    subject: Expression


Expression = (
    Constant | Choices | Argument | Present | Not | Every | Some | Compare | StringTest | Matches | CaseMapping | Length
)


def children(node: Expression) -> tuple[Expression, ...]:
    """The parts of a node, in the order in which they are written."""
    match node:
        case Constant() | Choices() | Argument() | Present():
            return ()
        case Not(operand):
            return (operand,)
        case Every(operands) | Some(operands):
            return operands
        case Compare(first, rest):
            return (first, *(operand for _, operand in rest))
        case StringTest(_, subject, operand):
            return (subject, operand)
        case Matches(subject, _, _) | CaseMapping(_, subject) | Length(subject):
            return (subject,)


def reads(node: Expression) -> frozenset[str]:
    """The parameters that the condition speaks about."""

    def names(part: Expression) -> Iterator[str]:
        if isinstance(part, Argument | Present):
            yield part.name
        for child in children(part):
            yield from names(child)

    return frozenset(names(node))


def text_of(node: Expression) -> str:
    """The condition in Python's spelling; its check gives `node` back."""
    match node:
        case Constant(bool() as value):
            return "true" if value else "false"
        case Constant(value):
            return repr(value)
        case Choices(values):
            return f"[{', '.join(text_of(Constant(value)) for value in values)}]"
        case Argument(name):
            return name
        case Present(name):
            return f"has({name})"
        case Not(Present(name)):
            return f"{name} == null"
        case Not(operand):
            return f"not {_in_brackets(operand)}"
        case Every(operands):
            return " and ".join(map(_in_brackets, operands))
        case Some(operands):
            return " or ".join(map(_in_brackets, operands))
        case Compare(first, rest):
            steps = "".join(f" {operator} {_in_brackets(operand)}" for operator, operand in rest)
            return f"{_in_brackets(first)}{steps}"
        case StringTest(method, subject, operand):
            return f"{text_of(subject)}.{method}({text_of(operand)})"
        case Matches(subject, pattern, _):
            return f"{text_of(subject)}.matches({pattern!r})"
        case CaseMapping(method, subject):
            return f"{text_of(subject)}.{method}()"
        case Length(subject):
            return f"len({text_of(subject)})"


def _in_brackets(node: Expression) -> str:
    text = text_of(node)
    return f"({text})" if isinstance(node, Every | Some | Compare | Not) else text
