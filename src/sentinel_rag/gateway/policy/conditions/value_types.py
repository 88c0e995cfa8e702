"""The types of the condition language. They are those of JSON Schema, with the element type of a list where known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
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

    kind: Kind
    items: Kind | None = None

    def __str__(self) -> str:
        return f"array of {self.items.value}" if self.items else self.kind.value

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.NUMBER)


STRING = ValueType(Kind.STRING)
INTEGER = ValueType(Kind.INTEGER)
NUMBER = ValueType(Kind.NUMBER)
BOOLEAN = ValueType(Kind.BOOLEAN)
NULL = ValueType(Kind.NULL)


def comparable(left: ValueType, right: ValueType) -> bool:
    """Whether `==` between the two can ever be true, so that asking makes sense."""
    return left == right or (left.numeric and right.numeric)


def ordered(left: ValueType, right: ValueType) -> bool:
    """Whether `<` between the two has a meaning."""
    return (left.numeric and right.numeric) or (left == right == STRING)
