"""Arguments of a tool, checked against its schema at the handler, so that a model can correct itself.

The check covers the part of JSON Schema that `contracts.tool_schemas` uses and answers in sentences: the field, what
is wrong with it, what would have been taken. Null and the empty string count as "left out", as models send both.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import invalid_argument
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import BOUNDS, CHOICES, LONGEST_TEXT, SEVERITIES
from sentinel_rag.sentinel.logs.time_windows import read_time_window

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "boolean": "true or false",
}
_AS_WRITTEN = frozenset({"kql"})
"""Texts whose blanks at the ends stay: places in errors count from the first character."""


def checked_arguments(tool: ToolSchema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments, left-out ones absent or at their default. Raises QueryFailedError INVALID_ARGUMENT."""
    schemas = tool.parameter_schemas()
    for name in arguments:
        if name not in schemas:
            raise _unknown_argument(tool.name, name, tuple(schemas))
    checked: dict[str, Any] = {}
    for name, schema in schemas.items():
        value = arguments.get(name)
        if isinstance(value, str) and (name not in _AS_WRITTEN or not value.strip()):
            value = value.strip()
        if value is None or value == "":
            if name in tool.required():
                raise invalid_argument(name, f"{tool.name} needs {name}: {_description(schema)}")
            if "default" in schema:
                checked[name] = schema["default"]
            continue
        checked[name] = _checked_value(name, schema, value)
    return checked


def _checked_value(name: str, schema: JsonObject, value: Any) -> Any:
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number
    if not _has_type(kind, value):
        raise invalid_argument(
            name,
            f"{name} must be {_TYPE_NAMES.get(str(kind), kind)}, not {_shown(value)}.",
            next_step="Correct the type.",
        )
    if isinstance(value, str) and _HALF_PAIR.search(value):
        raise invalid_argument(name, f"{name} holds half of a surrogate pair, which no query can carry.")
    allowed = schema.get("enum", CHOICES.get(name))
    if name == "time_window":
        return read_time_window(value)
    if isinstance(allowed, list | tuple) and value not in allowed:
        raise _not_allowed(name, value, tuple(str(item) for item in allowed))
    if isinstance(value, int) and not isinstance(value, bool):
        least, most = BOUNDS[name]
        most = int(str(schema.get("maximum", most)))
        if not least <= value <= most:
            word, bound = ("least", least) if value < least else ("most", most)
            raise invalid_argument(
                name, f"{name} must be at {word} {bound}, not {value}.", next_step=f"Use {least} to {most}."
            )
    longest = int(str(schema.get("maxLength", LONGEST_TEXT)))
    if isinstance(value, str) and len(value) > longest:
        raise invalid_argument(name, f"{name} may be {longest} characters long, not {len(value)}.")
    return value


def _has_type(kind: Any, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return True


def _not_allowed(name: str, value: str, allowed: tuple[str, ...]) -> Exception:
    return invalid_argument(
        name,
        f"{name} cannot be {_shown(value)}.{nearest_hint(value, allowed)}",
        allowed=allowed,
    )


def _unknown_argument(tool: str, name: str, known: tuple[str, ...]) -> Exception:
    takes = f"It takes: {', '.join(known)}." if known else "It takes no arguments."
    return invalid_argument(
        name,
        f"{tool} has no argument {name!r}. {takes}{nearest_hint(name, known)}",
        allowed=known,
        next_step="Use the names that the tool declares.",
    )


def nearest_hint(name: str, known: tuple[str, ...]) -> str:
    """` Did you mean 'limit'?`, or nothing when no known name is near."""
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def severities_from(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The severities that `severity` and `min_severity` leave, lowest first; all four when neither is given.

    Raises QueryFailedError INVALID_ARGUMENT if the exact severity lies below the threshold.
    """
    exact, threshold = arguments.get("severity"), arguments.get("min_severity")
    kept = SEVERITIES[SEVERITIES.index(threshold) :] if threshold else SEVERITIES
    if exact is None:
        return kept
    if exact not in kept:
        raise invalid_argument(
            "severity",
            f"severity {exact} and min_severity {threshold} exclude each other.",
            allowed=kept,
            next_step="Give one of the two.",
        )
    return (exact,)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _description(schema: JsonObject) -> str:
    text = str(schema.get("description", ""))
    return text[:1].lower() + text[1:]
