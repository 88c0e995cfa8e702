"""What can be wrong with a template file; every fault is found, not the first only. Pure functions over parsed YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sentinel_rag.sentinel.arguments import nearest_hint
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.template_parameters import PARAMETER_TYPES, TemplateParameter

WINDOW_SLOT = "window"
SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPLATE_KEYS = (
    "name",
    "description",
    "tables",
    "time_column",
    "window_on",
    "parameters",
    "questions",
    "tactics",
    "techniques",
    "kql",
)
_PARAMETER_KEYS = ("type", "description", "required", "default", "min", "max", "pattern", "allowed")


def faults_of(document: Any, stem: str) -> list[str]:
    """Everything that is wrong with one file; empty for a sound one."""
    if not isinstance(document, Mapping):
        return ["not a mapping of keys"]
    faults = _unknown_keys(document, _TEMPLATE_KEYS)
    for key in ("name", "description", "time_column", "kql"):
        if not isinstance(document.get(key), str) or not document[key].strip():
            faults.append(f"{key} must be text")
    for key, least in (("tables", 1), ("questions", 1), ("tactics", 0), ("techniques", 0)):
        value = document.get(key, [])
        if not isinstance(value, list) or len(value) < least or not all(isinstance(item, str) for item in value):
            faults.append(f"{key} must be a list of texts" + (" with at least one" if least else ""))
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        faults.append("parameters must be a mapping of declarations")
    if faults:
        return faults
    if document["name"] != stem or _NAME.fullmatch(stem) is None:
        faults.append(f"name {document['name']!r} must be the file's name, in lower case with underscores")
    faults += [
        f"{key} {document[key]!r} is not a column name"
        for key in ("time_column", "window_on")
        if key in document and _COLUMN.fullmatch(str(document[key])) is None
    ]
    for name, declared in parameters.items():
        faults += [f"parameter {name!r}: {fault}" for fault in _parameter_faults(str(name), declared)]
    return faults + _slot_faults(document["kql"], tuple(parameters))


def _parameter_faults(name: str, declared: Any) -> list[str]:
    if not isinstance(declared, Mapping):
        return ["must be a mapping"]
    faults = _unknown_keys(declared, _PARAMETER_KEYS)
    if _NAME.fullmatch(name) is None or name == WINDOW_SLOT:
        faults.append("the name must be lower case with underscores, and not 'window'")
    if declared.get("type") not in PARAMETER_TYPES:
        faults.append(f"type must be one of {', '.join(PARAMETER_TYPES)}")
    if not isinstance(declared.get("description"), str):
        faults.append("description must be text")
    allowed = declared.get("allowed")
    if (declared.get("type") == "enum") != bool(allowed):
        faults.append("an enum, and only an enum, has allowed values")
    if bool(declared.get("required", False)) == ("default" in declared):
        faults.append("a parameter is either required or has a default")
    try:
        re.compile(str(declared.get("pattern") or ""))
    except re.error as error:
        faults.append(f"pattern is no regular expression: {error}")
    if not faults and "default" in declared:
        try:
            TemplateParameter.declared(name, declared).literal(declared["default"])
        except QueryFailedError as failure:
            faults.append(f"its own default is refused: {failure}")
    return faults


def _unknown_keys(mapping: Mapping[Any, Any], known: tuple[str, ...]) -> list[str]:
    return [f"unknown key {key!r}.{nearest_hint(str(key), known)}" for key in mapping if key not in known]


def _slot_faults(kql: str, declared: tuple[str, ...]) -> list[str]:
    used = set(SLOT.findall(kql))
    faults = [
        f"slot {{{slot}}} is not a declared parameter.{nearest_hint(slot, declared)}"
        for slot in sorted(used - set(declared) - {WINDOW_SLOT})
    ]
    faults += [f"parameter {name!r} is never used" for name in declared if name not in used]
    if WINDOW_SLOT not in used:
        faults.append("the query has no {window} slot, so the time window would not hold")
    return faults
