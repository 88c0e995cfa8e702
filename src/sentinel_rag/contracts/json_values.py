"""The JSON data model as a type, and the one canonical byte form used for hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: JsonValue) -> bytes:
    """The UTF-8 bytes that stand for `value` in hashes: sorted keys, no white space, no NaN.

    This is the profile of RFC 8785 for the values we hash (integers and strings keep their exact spelling); floats use
    Python's shortest round-trip form. Raises ValueError for NaN, infinities and lone surrogates.
    """
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a string holds a lone surrogate, which has no UTF-8 form") from error
