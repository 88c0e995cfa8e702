"""What can be wrong with a template; every fault is found, not the first only.

Pure functions over parsed YAML; `template_files` knows the lines, and whether the query runs is only known to a
workspace (`sentinel kql lint` tries it on an empty one).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sentinel_rag.sentinel.arguments import nearest_hint
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.template_files import Keys, TemplateFault
from sentinel_rag.sentinel.template_parameters import PARAMETER_TYPES, TemplateParameter

WINDOW_SLOT = "window"
SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TECHNIQUE = re.compile(r"T[0-9]{4}(?:\.[0-9]{3})?")
_QUOTED_TEXT = r"""@"[^"\n]*"|@'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
_QUOTED = re.compile(_QUOTED_TEXT)
_COMMENT_OR_QUOTED = re.compile(rf"{_QUOTED_TEXT}|//[^\n]*")
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
    "totals",
    "kql",
)
_PARAMETER_KEYS = ("type", "description", "required", "default", "min", "max", "pattern", "allowed", "names")


def faults_of(document: Any, stem: str) -> list[TemplateFault]:
    """Everything that is wrong with one file; empty for a sound one."""
    if not isinstance(document, Mapping):
        return [TemplateFault("not a mapping of keys")]
    faults = _unknown_keys(document, _TEMPLATE_KEYS, ())
    for key in ("name", "description", "time_column", "kql"):
        if not isinstance(document.get(key), str) or not document[key].strip():
            faults.append(TemplateFault(f"{key} must be text", (key,)))
    for key, least in (("tables", 1), ("questions", 1), ("tactics", 0), ("techniques", 0), ("totals", 0)):
        value = document.get(key, [])
        if not isinstance(value, list) or len(value) < least or not all(isinstance(item, str) for item in value):
            faults.append(
                TemplateFault(f"{key} must be a list of texts" + (" with at least one" if least else ""), (key,))
            )
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        faults.append(TemplateFault("parameters must be a mapping of declarations", ("parameters",)))
    if faults:
        return faults
    if document["name"] != stem or _NAME.fullmatch(stem) is None:
        faults.append(
            TemplateFault(
                f"name {document['name']!r} must be the file's name, in lower case with underscores", ("name",)
            )
        )
    faults += [
        TemplateFault(f"{key} {document[key]!r} is not a column name", (key,))
        for key in ("time_column", "window_on")
        if key in document and _COLUMN.fullmatch(str(document[key])) is None
    ]
    faults += [
        TemplateFault(f"tables: {table!r} is not a table name", ("tables",))
        for table in document["tables"]
        if _COLUMN.fullmatch(table) is None
    ]
    faults += [
        TemplateFault(f"technique {technique!r} is not of the form T1078 or T1078.004", ("techniques",))
        for technique in document.get("techniques", ())
        if _TECHNIQUE.fullmatch(technique) is None
    ]
    for name, declared in parameters.items():
        faults += _parameter_faults(str(name), declared, document["tables"])
    return faults + _slot_faults(document["kql"], tuple(map(str, parameters))) + _total_faults(document)


def _parameter_faults(name: str, declared: Any, tables: Sequence[str]) -> list[TemplateFault]:
    keys = ("parameters", name)
    if not isinstance(declared, Mapping):
        return [TemplateFault(f"parameter {name!r}: must be a mapping", keys)]
    faults = _unknown_keys(declared, _PARAMETER_KEYS, keys)

    def wrong(text: str, key: str | None = None) -> None:
        faults.append(TemplateFault(f"parameter {name!r}: {text}", keys if key is None else (*keys, key)))

    if _NAME.fullmatch(name) is None or name == WINDOW_SLOT:
        wrong("the name must be lower case with underscores, and not 'window'")
    if declared.get("type") not in PARAMETER_TYPES:
        wrong(f"type must be one of {', '.join(PARAMETER_TYPES)}", "type")
    if not isinstance(declared.get("description"), str):
        wrong("description must be text", "description")
    allowed = declared.get("allowed")
    if (declared.get("type") == "enum") != bool(allowed):
        wrong("an enum, and only an enum, has allowed values", "allowed")
    elif allowed and not (isinstance(allowed, list) and all(isinstance(value, str) for value in allowed)):
        wrong("allowed must be a list of texts", "allowed")
    names = declared.get("names") or {}
    if not isinstance(names, Mapping) or not all(isinstance(each, str) for pair in names.items() for each in pair):
        wrong("names must tell an expression for each table", "names")
    elif names and declared.get("type") != "string":
        wrong("only a string is one of names", "names")
    else:
        for table in names:
            if table not in tables:
                wrong(f"names: {table!r} is not among the tables", "names")
    if bool(declared.get("required", False)) == ("default" in declared):
        wrong("a parameter is either required or has a default")
    for bound in ("min", "max"):
        value = declared.get(bound)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            wrong(f"{bound} must be a number", bound)
    try:
        re.compile(str(declared.get("pattern") or ""))
    except re.error as error:
        wrong(f"pattern is no regular expression: {error}", "pattern")
    if not faults and "default" in declared:
        try:
            TemplateParameter.declared(name, declared).literal(declared["default"])
        except QueryFailedError as failure:
            wrong(f"its own default is refused: {failure}", "default")
    return faults


def _unknown_keys(mapping: Mapping[Any, Any], known: tuple[str, ...], above: Keys) -> list[TemplateFault]:
    of = f"parameter {above[-1]!r}: " if above else ""
    return [
        TemplateFault(f"{of}unknown key {key!r}.{nearest_hint(str(key), known)}", (*above, str(key)))
        for key in mapping
        if key not in known
    ]


def _slot_faults(query: str, declared: tuple[str, ...]) -> list[TemplateFault]:
    kql = _COMMENT_OR_QUOTED.sub(lambda part: "" if part[0].startswith("//") else part[0], query)
    used = set(SLOT.findall(kql))
    faults = [
        TemplateFault(f"slot {{{slot}}} is not a declared parameter.{nearest_hint(slot, declared)}", ("kql",), slot)
        for slot in sorted(used - set(declared) - {WINDOW_SLOT})
    ]
    faults += [
        TemplateFault(f"parameter {name!r} is never used", ("parameters", name))
        for name in declared
        if name not in used
    ]
    if WINDOW_SLOT not in used:
        faults.append(TemplateFault("the query has no {window} slot, so the time window would not hold", ("kql",)))
    quoted = sorted({slot for literal in _QUOTED.findall(kql) for slot in SLOT.findall(literal)})
    return faults + [
        TemplateFault(
            f"slot {{{slot}}} stands inside quotes; a slot becomes a whole literal, so leave them out", ("kql",), slot
        )
        for slot in quoted
    ]


def _total_faults(document: Mapping[str, Any]) -> list[TemplateFault]:
    columns = set(_COLUMN.findall(SLOT.sub("", document["kql"])))
    return [
        TemplateFault(f"totals: the query has no column {name!r}.{nearest_hint(name, tuple(columns))}", ("totals",))
        for name in document.get("totals", ())
        if name not in columns
    ]
