"""The registry of KQL templates: data files in `templates/` and in a folder of people's own, all or nothing.

A template is KQL with `{slots}`: one for each declared parameter, and `{window}` for the time window. A slot is only
ever replaced by a typed literal. A file that names an unknown key, an undeclared slot or a default outside its own
bounds refuses the whole registry, with every fault told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.near_names import MOST_READ, holding
from sentinel_rag.sentinel.template_checks import SLOT, WINDOW_SLOT, faults_of
from sentinel_rag.sentinel.template_files import TemplateFault, read_template_file
from sentinel_rag.sentinel.template_parameters import TemplateParameter, bind
from sentinel_rag.sentinel.time_windows import within

_SAMPLE_WINDOW = TimeWindow(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
TEMPLATE_FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class KqlTemplate:
    """A checked template. `window_on` is the column of the query that `{window}` bounds (`time_column` by default);
    `totals` are columns of counts that can be added up over all rows."""

    name: str
    description: str
    tables: tuple[str, ...]
    time_column: str
    window_on: str
    parameters: tuple[TemplateParameter, ...]
    questions: tuple[str, ...]
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    totals: tuple[str, ...]
    kql: str

    def render(self, values: Mapping[str, Any], window: TimeWindow) -> str:
        """The query with every slot filled. Raises QueryFailedError INVALID_ARGUMENT for a wrong value."""
        literals = bind(self.parameters, values, self.name)
        literals[WINDOW_SLOT] = within(self.window_on, window)
        return SLOT.sub(lambda slot: literals[slot[1]], self.kql)

    def sample_query(self) -> str:
        """A query of this template's shape, to see whether it runs: sample values and a window."""
        literals = {parameter.name: parameter.sample_literal() for parameter in self.parameters}
        literals[WINDOW_SLOT] = within(self.window_on, _SAMPLE_WINDOW)
        return SLOT.sub(lambda slot: literals[slot[1]], self.kql)

    def names_query(self, parameter: TemplateParameter, given: str) -> str:
        """The names like `given` that the tables hold in the place of a parameter's, the commonest first."""
        parts = ",\n".join(f"({table}\n| project Name = {expression})" for table, expression in parameter.names)
        return (
            f"union isfuzzy=true\n{parts}\n| where {holding('Name', given)}\n"
            f"| summarize Rows = count() by Name\n| order by Rows desc, Name asc\n| take {MOST_READ}"
        )

    def to_row(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows one of few."""
        return {
            "name": self.name,
            "description": self.description,
            "tables": list(self.tables),
            "parameters": [parameter.to_dict() for parameter in self.parameters],
            "questions": list(self.questions),
            "tactics": list(self.tactics),
            "techniques": list(self.techniques),
        }

    def to_brief_row(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows one of many: the first sentence of its description, and what it takes."""
        purpose, stop, _ = self.description.partition(". ")
        return {
            "name": self.name,
            "description": purpose + stop.strip(),
            "parameters": [parameter.brief() for parameter in self.parameters],
        }


def load_templates(folder: Path = TEMPLATE_FOLDER, *, own: Path | None = None) -> dict[str, KqlTemplate]:
    """All templates of `folder`, and those of people's `own` folder, by name, in the order of their names.

    Raises ConfigurationError whose `problems` name file, line and fault, if any file of a folder is not right, or if
    one of the own templates has the name of one in `folder`.
    """
    templates = dict(_shipped_templates()) if folder == TEMPLATE_FOLDER else _templates_of(folder, taken={})
    if own is not None:
        templates |= _templates_of(own, taken=templates)
    return dict(sorted(templates.items()))


@cache
def _shipped_templates() -> Mapping[str, KqlTemplate]:
    """Read once a process: they are part of the program, and fifty files of YAML are a tenth of a second."""
    return _templates_of(TEMPLATE_FOLDER, taken={})


def _templates_of(folder: Path, *, taken: Mapping[str, KqlTemplate]) -> dict[str, KqlTemplate]:
    templates: dict[str, KqlTemplate] = {}
    problems = misnamed_files(folder)
    for path in template_paths(folder):
        read = read_template(path, taken=taken)
        if isinstance(read, KqlTemplate):
            templates[read.name] = read
        else:
            problems += read
    if not templates and not problems and not taken:
        problems.append(f"no template lies in {folder.name}/")
    if problems:
        raise ConfigurationError(
            f"The KQL templates in {folder} have {len(problems)} fault{'s' if len(problems) != 1 else ''}; none was "
            f"loaded. First: {problems[0]}",
            problems=tuple(problems),
            next_step="Correct the named files; sentinel kql lint checks them again.",
        )
    return templates


def template_paths(folder: Path) -> list[Path]:
    """The template files of a folder, not of folders in it."""
    return sorted(folder.glob("*.yaml"))


def misnamed_files(folder: Path) -> list[str]:
    """Files that look like templates and would be passed over."""
    return [f"{path.name}:1: would be passed over; name it {path.stem}.yaml" for path in sorted(folder.glob("*.yml"))]


def read_template(path: Path, *, taken: Collection[str] = ()) -> KqlTemplate | list[str]:
    """The template of one file, or its problems, each as `file:line: sentence`. `taken` are names it must not have."""
    file = read_template_file(path)
    if isinstance(file, list):
        return file
    faults = faults_of(file.document, path.stem)
    if path.stem in taken:
        faults.append(TemplateFault(f"{path.stem!r} is the name of a shipped template; choose another", ("name",)))
    if faults:
        return [f"{path.name}:{file.line_of(fault)}: {fault.text}" for fault in faults]
    return _template(file.document)


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
        totals=tuple(document.get("totals") or ()),
        kql=document["kql"].strip(),
    )
