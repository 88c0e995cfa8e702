"""The registry of KQL templates: data files in `templates/`, checked when they are loaded, all or nothing.

A template is KQL with `{slots}`: one for each declared parameter, and `{window}` for the time window. A slot is only
ever replaced by a typed literal. A file that names an unknown key, an undeclared slot or a default outside its own
bounds refuses the whole registry, with every fault told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.arguments import nearest_hint
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.template_parameters import PARAMETER_TYPES, TemplateParameter, bind
from sentinel_rag.sentinel.time_windows import within

TEMPLATE_FOLDER = Path(__file__).parent / "templates"
WINDOW_SLOT = "window"
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KqlTemplate:
    """A checked template. `window_on` is the column of the query that `{window}` bounds (`time_column` by default)."""

    name: str
    description: str
    tables: tuple[str, ...]
    time_column: str
    window_on: str
    parameters: tuple[TemplateParameter, ...]
    questions: tuple[str, ...]
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    kql: str

    def render(self, values: Mapping[str, Any], window: TimeWindow) -> str:
        """The query with every slot filled. Raises QueryFailedError INVALID_ARGUMENT for a wrong value."""
        literals = bind(self.parameters, values, self.name)
        literals[WINDOW_SLOT] = within(self.window_on, window)
        return _SLOT.sub(lambda slot: literals[slot[1]], self.kql)

    def to_row(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows it."""
        return {
            "name": self.name,
            "description": self.description,
            "tables": list(self.tables),
            "parameters": [parameter.to_dict() for parameter in self.parameters],
            "questions": list(self.questions),
            "tactics": list(self.tactics),
            "techniques": list(self.techniques),
        }


def load_templates(folder: Path = TEMPLATE_FOLDER) -> dict[str, KqlTemplate]:
    """All templates of `folder` by name, in the order of their names.

    Raises ConfigurationError whose `problems` name file and fault, if any file is not right.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    templates: dict[str, KqlTemplate] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  # a safe loader in C
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            problems.append(f"{path.name}: not valid YAML: {' '.join(str(error).split())}")
            continue
        faults = _faults(document, path.stem)
        if faults:
            problems.extend(f"{path.name}: {fault}" for fault in faults)
        else:
            templates[path.stem] = _template(document)
    if not templates and not problems:
        problems.append(f"no template lies in {folder.name}/")
    if problems:
        raise ConfigurationError(
            f"The KQL templates have {len(problems)} fault{'s' if len(problems) != 1 else ''}; none was loaded. "
            f"First: {problems[0]}",
            problems=tuple(problems),
            next_step="Correct the named files.",
        )
    return templates


def _template(document: Mapping[str, Any]) -> KqlTemplate:
    parameters = document.get("parameters") or {}
    return KqlTemplate(
        name=document["name"],
        description=document["description"],
        tables=tuple(document["tables"]),
        time_column=document["time_column"],
        window_on=document.get("window_on") or document["time_column"],
        parameters=tuple(_parameter(name, declared) for name, declared in parameters.items()),
        questions=tuple(document["questions"]),
        tactics=tuple(document.get("tactics") or ()),
        techniques=tuple(document.get("techniques") or ()),
        kql=document["kql"].strip(),
    )


def _parameter(name: str, declared: Mapping[str, Any]) -> TemplateParameter:
    return TemplateParameter(
        name=name,
        type=declared["type"],
        description=declared["description"],
        required=declared.get("required", False),
        default=declared.get("default"),
        minimum=declared.get("min"),
        maximum=declared.get("max"),
        pattern=declared.get("pattern"),
        allowed=tuple(declared.get("allowed") or ()),
    )


def _faults(document: Any, stem: str) -> list[str]:
    """Everything that is wrong with one file; empty for a sound one."""
    if not isinstance(document, Mapping):
        return ["not a mapping of keys"]
    faults = [
        f"unknown key {key!r}.{nearest_hint(str(key), _TEMPLATE_KEYS)}" for key in document if key not in _TEMPLATE_KEYS
    ]
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
    faults = [
        f"unknown key {key!r}.{nearest_hint(str(key), _PARAMETER_KEYS)}"
        for key in declared
        if key not in _PARAMETER_KEYS
    ]
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
            _parameter(name, declared).literal(declared["default"])
        except QueryFailedError as failure:
            faults.append(f"its own default is refused: {failure}")
    return faults


def _unknown_keys(mapping: Mapping[Any, Any], known: tuple[str, ...]) -> list[str]:
    return [f"unknown key {key!r}.{nearest_hint(str(key), known)}" for key in mapping if key not in known]


def _slot_faults(kql: str, declared: tuple[str, ...]) -> list[str]:
    used = set(_SLOT.findall(kql))
    faults = [
        f"slot {{{slot}}} is not a declared parameter.{nearest_hint(slot, declared)}"
        for slot in sorted(used - set(declared) - {WINDOW_SLOT})
    ]
    faults += [f"parameter {name!r} is never used" for name in declared if name not in used]
    if WINDOW_SLOT not in used:
        faults.append("the query has no {window} slot, so the time window would not hold")
    return faults
