"""Whether a KQL template runs: each is tried once, with sample values, on an embedded workspace without rows.

The engine binds every name to the tables of Azure Monitor, so a misspelt table or column is found before an analyst
meets it. Form faults are found before that, by `sentinel.templates.template_registry`; custom tables are told as not
tried.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import SentinelError

if TYPE_CHECKING:
    from sentinel_rag.sentinel.templates.template_registry import KqlTemplate
    from sentinel_rag.workspace.queries import KqlError
    from sentinel_rag.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TrialReport:
    """Sound templates by name; problems and warnings as `path:line: sentence`."""

    templates: tuple[str, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def try_templates(paths: Sequence[Path], *, taken: Collection[str]) -> TrialReport:
    """Check the form of each file and run its query. `taken` are names that none of them may have."""
    from sentinel_rag.sentinel.templates.template_registry import read_template
    from sentinel_rag.workspace.workspace import Workspace

    names: list[str] = []
    problems: list[str] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sentinel-lint-") as folder:
        workspace = Workspace.open(Path(folder) / "empty")
        try:
            for path in paths:
                read = read_template(path, taken=taken)
                if isinstance(read, list):
                    problems += (f"{path.parent / problem}" for problem in read)
                    continue
                wrong, untried = _tried(read, path, workspace)
                problems += wrong
                warnings += untried
                if not wrong:
                    names.append(read.name)
        finally:
            workspace.close()
    return TrialReport(tuple(names), tuple(problems), tuple(warnings))


def _tried(template: KqlTemplate, path: Path, workspace: Workspace) -> tuple[list[str], list[str]]:
    from sentinel_rag.sentinel.arguments import nearest_hint
    from sentinel_rag.sentinel.templates.template_registry import TemplateFault, TemplateFile, read_template_file
    from sentinel_rag.sentinel.workspace_tables import KNOWN_TABLES
    from sentinel_rag.workspace.queries import KqlError

    file = read_template_file(path)
    assert isinstance(file, TemplateFile)

    def said(text: str, *keys: str) -> str:
        return f"{path}:{file.line_of(TemplateFault(text, keys))}: {text}"

    if template.tables[0].startswith("{"):  # whoever asks names the table
        return [], []
    schema = workspace.schema()
    unknown = [table for table in template.tables if table not in schema]
    misspelt = [table for table in unknown if not table.endswith("_CL") and table not in KNOWN_TABLES]
    if misspelt:
        known = tuple(dict.fromkeys((*schema, *KNOWN_TABLES)))
        return [
            said(f"there is no table {table!r}; a custom one ends in _CL.{nearest_hint(table, known)}", "tables")
            for table in misspelt
        ], []
    if unknown:
        return [], [said(f"not tried: {', '.join(unknown)} is not in the embedded workspace", "tables")]
    if template.time_column not in schema[template.tables[0]]:
        columns = tuple(schema[template.tables[0]])
        hint = nearest_hint(template.time_column, columns)
        return [said(f"{template.tables[0]} has no column {template.time_column!r}.{hint}", "time_column")], []
    try:
        answer = workspace.query(template.sample_query())
    except KqlError as error:
        place = _line_in(template.kql, error)
        line = file.line_of(TemplateFault("", ("kql",))) if place is None else file.line_of_query(place)
        return [f"{path}:{line}: the query does not run: {error}"], []
    except SentinelError as error:
        return [said(f"the query does not run: {error}", "kql")], []
    columns = tuple(column.name for column in answer.columns)
    for parameter in template.parameters:
        try:
            if parameter.names:
                workspace.query(template.names_query(parameter, "x"))
        except SentinelError as error:
            return [said(f"its names cannot be read: {error}", "parameters", parameter.name, "names")], []
    return [
        said(f"totals: the result has no column {name!r}.{nearest_hint(name, columns)}", "totals")
        for name in template.totals
        if name not in columns
    ], []


def _line_in(kql: str, error: KqlError) -> int | None:
    """The line (from 1) of the query that the error is about: as told, or where the name it quotes first stands."""
    if error.line is not None:
        return error.line
    for name in (error.token, *re.findall(r"'([^']+)'", str(error))):
        if name:
            for number, line in enumerate(kql.splitlines(), start=1):
                if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line):
                    return number
    return None
