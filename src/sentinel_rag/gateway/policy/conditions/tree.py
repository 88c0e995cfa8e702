"""The checked form of a condition: frozen nodes, made only by `checking` and well typed by construction.

Every node is a function of the arguments alone; none of them makes a value larger than its parts, apart from Unicode
case mapping, which is bounded by three times the length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sentinel_rag.gateway.policy.conditions.patterns import Regex

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Literal:
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
class Comparison:
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
    Literal
    | Choices
    | Argument
    | Present
    | Not
    | Every
    | Some
    | Comparison
    | StringTest
    | Matches
    | CaseMapping
    | Length
)


def children(node: Expression) -> tuple[Expression, ...]:
    """The parts of a node, in the order in which they are written."""
    match node:
        case Literal() | Choices() | Argument() | Present():
            return ()
        case Not(operand):
            return (operand,)
        case Every(operands) | Some(operands):
            return operands
        case Comparison(first, rest):
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
