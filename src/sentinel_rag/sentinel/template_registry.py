"""The registry of KQL templates: data files in `templates/`, checked when they are loaded, all or nothing.

A template is KQL with `{slots}`: one for each declared parameter, and `{window}` for the time window. A slot is only
ever replaced by a typed literal. A file that names an unknown key, an undeclared slot or a default outside its own
bounds refuses the whole registry, with every fault told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.template_checks import SLOT, WINDOW_SLOT, faults_of
from sentinel_rag.sentinel.template_parameters import TemplateParameter, bind
from sentinel_rag.sentinel.time_windows import within

TEMPLATE_FOLDER = Path(__file__).parent / "templates"


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
        return SLOT.sub(lambda slot: literals[slot[1]], self.kql)

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
        faults = faults_of(document, path.stem)
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
        parameters=tuple(TemplateParameter.declared(name, declared) for name, declared in parameters.items()),
        questions=tuple(document["questions"]),
        tactics=tuple(document.get("tactics") or ()),
        techniques=tuple(document.get("techniques") or ()),
        kql=document["kql"].strip(),
    )
