"""A model's arguments in the types that a tool takes, where what is meant is certain.

Models write "5" for 5, 124 for "124", null for what they leave out, and a row's id where a tool wants its value. None
of that changes what is asked for. Whatever else is wrong stays as it is, so that the tool names it. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sentinel_rag.agent.answers.results import Results
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.tool_calls import ToolSchema

_ROW = re.compile(r"\[?(c\d{1,6}\.\d{1,6})\]?")
_COLUMNS = {"alert_id": ("alert_id",), "incident": ("number", "incident_number"), "entity": ("name",)}
"""Columns of a row that may stand for an argument of this name."""


def fitted(arguments: Mapping[str, JsonValue], schema: ToolSchema, results: Results) -> JsonObject:
    """The arguments as `schema` types them; options that are null or empty are left out."""
    properties = schema.parameter_schemas()
    required = schema.required()
    made: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        if name not in required and value in (None, "", [], {}):
            continue
        made[name] = _of_row(name, _typed(value, properties.get(name, {})), results)
    return made


def _of_row(name: str, value: JsonValue, results: Results) -> JsonValue:
    """The value of the row that `value` names, for an argument that asks for one."""
    found = _ROW.fullmatch(value.strip()) if isinstance(value, str) and name in _COLUMNS else None
    row = results.row(found[1]) if found else None
    if row is None:
        return value
    cell = next((row.cells[column] for column in _COLUMNS[name] if column in row.cells), None)
    return value if cell is None or isinstance(cell, tuple) else str(cell)


def _typed(value: JsonValue, schema: Mapping[str, Any]) -> JsonValue:
    declared = schema.get("type")
    types = declared if isinstance(declared, list | tuple) else [declared]
    if any(_is(value, each) for each in types):
        return _as_spelled(value, schema.get("enum"))
    for wanted in types:
        converted = _converted(value, wanted, schema)
        if converted is not None:
            return converted
    return value


def _as_spelled(value: JsonValue, allowed: Any) -> JsonValue:
    """A value of an enumeration in its own letters: High for high."""
    if isinstance(value, str) and isinstance(allowed, list | tuple) and value not in allowed:
        return next((each for each in allowed if str(each).casefold() == value.strip().casefold()), value)
    return value


def _is(value: JsonValue, wanted: Any) -> bool:
    match wanted:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return wanted is None


def _converted(value: JsonValue, wanted: Any, schema: Mapping[str, Any]) -> JsonValue:
    """`value` in the type that is wanted; None where that is not certain."""
    match wanted, value:
        case "string", bool():
            return None
        case "string", int() | float():
            whole = isinstance(value, float) and value.is_integer()
            return _as_spelled(str(int(value)) if whole else str(value), schema.get("enum"))
        case (("integer" | "number"), str()):
            number = _number(value)
            return number if number is not None and (wanted == "number" or isinstance(number, int)) else None
        case "integer", float():
            return int(value) if value.is_integer() else None
        case "boolean", str():
            return {"true": True, "false": False}.get(value.strip().casefold())
        case (("array" | "object"), str()):
            read: JsonValue = _json(value)
            if _is(read, wanted):
                return read
            return [value] if wanted == "array" else None
        case "array", int() | float():
            return [value]
        case _:
            return None


def _number(text: str) -> int | float | None:
    try:
        value = float(text.strip())
    except ValueError:
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
