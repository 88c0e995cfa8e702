"""Arguments as a model or a program gives them, made ready for the wire.

Models put `null` where they mean to leave an argument out; programs pass dates, enums and models of pydantic. Each has
one JSON form here. The gateway checks types and values; this does not.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from sentinel_rag.contracts.handles import as_handles


class BadArguments(ValueError):
    """The arguments have no JSON form. The message says which value, by its type, and never repeats it."""


def wire_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` as plain JSON values, with placeholders of hidden values turned back into handles.

    A null is left out where `schema` (a JSON Schema of type object) does not require the parameter: the gateway takes
    none, and a model means nothing by it. Raises BadArguments.
    """
    required = schema.get("required", ())
    kept = {name: value for name, value in arguments.items() if value is not None or name in required}
    try:
        plain = json.loads(json.dumps(kept, default=_plain, allow_nan=False))
        json.dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadArguments("A text holds half of a surrogate pair.") from None
    except (TypeError, ValueError, RecursionError) as fault:
        if isinstance(fault, BadArguments):
            raise
        raise BadArguments("The arguments have no JSON form (a cycle, NaN, or a key that is no text).") from None
    found: dict[str, Any] = as_handles(plain)
    return found


def arguments_of_text(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """One text in place of arguments: a JSON object, or the value of the only parameter, or of the only required one.
    Raises BadArguments."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        return document
    properties = _object(schema.get("properties"))
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    names = required if len(required) == 1 else list(properties)
    if len(names) != 1:
        raise BadArguments("This tool takes named arguments; give them as an object.")
    return {names[0]: text}


def _plain(value: Any) -> Any:
    """What `json` cannot write by itself."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadArguments("A time without a time zone is not sent: give it one, such as timezone.utc.")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | PurePath | Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)  # pydantic, without importing it
    if callable(dump):
        return dump(mode="json")
    raise BadArguments(f"A value of type {type(value).__name__} has no JSON form.")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
