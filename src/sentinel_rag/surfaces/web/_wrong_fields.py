"""What is wrong with a request's fields, in a sentence each: which field, and what it takes; never what stood in it.

The routes' models say what is allowed and find the faults; `_app` makes the answer of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SENTENCES = {
    "missing": "{field} is missing",
    "extra_forbidden": "{field} is no field of this request",
    "string_too_short": "{field} is too short: it takes at least {min_length} characters",
    "string_too_long": "{field} is too long: it takes at most {max_length} characters",
    "string_pattern_mismatch": "{field} is not written as it must be ({pattern})",
    "string_type": "{field} must be a text",
    "string_unicode": "{field} holds characters that are no text",
    "int_type": "{field} must be a whole number",
    "int_parsing": "{field} must be a whole number",
    "bool_type": "{field} must be true or false",
    "bool_parsing": "{field} must be true or false",
    "greater_than_equal": "{field} must be {ge} or more",
    "less_than_equal": "{field} must be {le} or less",
    "dict_type": "{field} must be an object",
    "model_attributes_type": "{field} must be an object",
    "list_type": "{field} must be a list",
    "enum": "{field} must be {expected}",
    "literal_error": "{field} must be {expected}",
}


def wrong_field(fault: Mapping[str, Any]) -> tuple[str, str]:
    """The field (`timezone`; `body` for the whole of it) and a sentence without its full stop, of pydantic's error."""
    kind, place = str(fault["type"]), tuple(map(str, fault["loc"]))
    if kind == "json_invalid":
        return "body", "The body is not JSON"
    field = ".".join(place[1:]) or "body"
    named = "The body" if field == "body" else field
    given: Mapping[str, Any] = fault.get("ctx") or {}
    if kind == "value_error":
        return field, f"{named}: {given.get('error', 'it is not allowed')}"
    if kind == "string_too_short" and given.get("min_length") == 1:
        return field, f"{named} is empty"
    form = _SENTENCES.get(kind)
    return field, f"{named}: {fault['msg']}" if form is None else form.format_map({**given, "field": named})
