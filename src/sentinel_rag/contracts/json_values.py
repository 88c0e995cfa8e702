"""The JSON data model as a type, the JSON form of dataclasses, and the one canonical byte form used for hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, Self, TypeAlias

import msgspec

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]


def format_time(moment: datetime) -> str:
    """`2024-07-02T09:45:00Z`; fractions only where there are any. Raises ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be compared: give it one")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class JsonForm:
    """A dataclass whose JSON object holds its fields, in the order in which they are declared."""

    __slots__ = ()

    def to_dict(self) -> dict[str, JsonValue]:
        kind: Any = type(self)
        return {name: json_form(getattr(self, name)) for name in field_names(kind)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse; what an older version did not write has its default. Raises ValueError for another form."""
        return msgspec.convert(data, cls)


@cache
def field_names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass, in their order."""
    return tuple(each.name for each in fields(kind))


def json_form(value: Any) -> Any:
    """A field's value as JSON has it: times, codes, and what has a form of its own."""
    if isinstance(value, tuple):
        return [json_form(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return format_time(value)
    return value.to_dict() if hasattr(value, "to_dict") else value


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_FAST = msgspec.json.Encoder(order="sorted")
"""A sixth of the time for the same bytes, of values that are `_plain`."""


def canonical_json(value: JsonValue) -> bytes:
    """The UTF-8 bytes that stand for `value` in hashes: sorted keys, no white space, no NaN.

    This is the profile of RFC 8785 for the values we hash (integers and strings keep their exact spelling); floats use
    Python's shortest round-trip form. Raises ValueError for NaN, infinities and lone surrogates.
    """
    try:
        return _FAST.encode(value) if _plain(value) else _ENCODER.encode(value).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a string holds a lone surrogate, which has no UTF-8 form") from error


def _plain(value: object) -> bool:
    """Whether both encoders surely write `value` alike: no float that has an exponent or is no number, no integer
    beyond 64 bits, and nothing but the plain types of JSON."""
    kind = type(value)
    if kind is dict:
        for key, part in value.items():  # type: ignore[attr-defined]  # it is a dict
            if type(key) is not str:
                return False
            if type(part) is not str and part is not None and not _plain(part):
                return False
        return True
    if kind is list:
        return all(map(_plain, value))  # type: ignore[call-overload]  # it is a list
    if kind is int:
        return -(2**63) <= value < 2**63  # type: ignore[operator]  # it is an int
    if kind is float:
        return 1e-4 <= value < 1e15  # type: ignore[operator]  # it is a float
    return kind is str or kind is bool or value is None
