"""Values of the JSON bodies of the Sentinel API, checked as the service checks them; the refusal names the property."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


class BodyError(Exception):
    """The body is not one that the service takes; the text says what is wrong with which property."""


def properties_of(body: Any) -> Mapping[str, Any]:
    """The object `properties` of a request. Raises BodyError."""
    if not isinstance(body, Mapping) or not isinstance(body.get("properties"), Mapping):
        raise BodyError("The request body needs an object 'properties'.")
    found: Mapping[str, Any] = body["properties"]
    return found


def text_of(given: Mapping[str, Any], key: str, longest: int, *, required: bool = False) -> str:
    """A text of at most `longest` characters, empty if it is missing. Raises BodyError."""
    value = given.get(key)
    if value is None and not required:
        return ""
    if required and (value is None or (isinstance(value, str) and not value.strip())):
        raise BodyError(f"The property '{key}' is required.")
    if not isinstance(value, str):
        raise BodyError(f"The property '{key}' must be text.")
    if len(value) > longest:
        raise BodyError(f"The property '{key}' may be {longest} characters long, not {len(value)}.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BodyError(f"The property '{key}' holds half of a surrogate pair.")
    return value


def time_of(given: Mapping[str, Any], key: str) -> datetime | None:
    """A moment in UTC without its zone, as the tables hold it; None if it is missing. Raises BodyError."""
    text = text_of(given, key, 40)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise BodyError(f"The property '{key}' is not a time such as 2026-11-01T00:00:00Z.") from None


def choice_of(given: Mapping[str, Any], key: str, allowed: tuple[str, ...], *, required: bool = False) -> str:
    """One of `allowed`, in their spelling whatever its case, empty if it is missing. Raises BodyError."""
    value = given.get(key)
    if value is None or value == "":
        if required:
            raise BodyError(f"The property '{key}' is required.")
        return ""
    for known in allowed:
        if isinstance(value, str) and known.lower() == value.lower():
            return known
    raise BodyError(f"The property '{key}' must be one of {', '.join(allowed)}.")
