"""`sentinel kql check`: people's own rule collections read by Microsoft's parser, every fault at its place in the file.

What queries a file holds and what is wrong with one, `sentinel.kql_guard.rule_collections` knows; this gathers the
schema, goes through the files and prints. `sentinel kql install` brings the parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.rendering.visible import safe_cell

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard.analysis import KqlProblem
    from sentinel_rag.sentinel.kql_guard.rule_collection_checks import QueryCheck
    from sentinel_rag.sentinel.kql_guard.rule_collections import RuleFile


Schema = dict[str, dict[str, str]]
_TYPES = ("string", "long", "int", "real", "decimal", "bool", "datetime", "timespan", "guid", "dynamic")
_SCHEMA_STEP = 'Write it as {"MyTable_CL": {"TimeGenerated": "datetime", "Name_s": "string"}}.'
_NO_PARSER = "A simpler parser checked syntax, tables and columns, and not all of them"


def check(
    paths: Sequence[str], *, schema: str | None, workspace: str | None, guard: bool, strict: bool, as_json: bool
) -> int:
    """Check every query of `paths`; 2 if one is not right or a file could not be read, 3 if there is no query."""
    from sentinel_rag.sentinel.kql_guard.fallback_process import FallbackParser
    from sentinel_rag.sentinel.kql_guard.official_parser import installed_parser, parser_state
    from sentinel_rag.sentinel.kql_guard.rule_collection_checks import RuleChecker
    from sentinel_rag.sentinel.kql_guard.rule_collections import read_rule_file

    files = list(_files(paths))
    official = installed_parser(timeout_s=20)
    parser = official or FallbackParser()
    complete = schema is not None or workspace is not None
    checker = RuleChecker(parser, _schema(schema, workspace), complete=complete, freeform=guard)
    counts = _Counts()
    told: list[dict[str, JsonValue]] = []
    try:
        for path, named in files:
            file = read_rule_file(path, named=named)
            checks = [each for query in file.queries for each in checker.check(query)]
            problems = list(_placed(file, checks))
            counts.add(file, checks, strict=strict)
            if as_json:
                told.append(_as_json(file, checks, problems))
            else:
                _print(file, problems)
    finally:
        parser.close_now()
    missing = parser_state() if official is None else None
    remark = "" if missing is None else f"{_NO_PARSER}: {missing.missing} {missing.next_step}"
    if as_json:
        name = "fallback" if official is None else "microsoft"
        print_json({"parser": name, "remark": remark, **counts.to_dict(), "files": told})
    else:
        if remark:
            print(safe_cell(remark))
        print(counts.sentence())
    if counts.faulty or counts.unreadable:
        return 2
    return 0 if counts.queries else 3


@dataclass(slots=True)
class _Counts:
    files: int = 0
    without_query: int = 0
    unreadable: int = 0
    queries: int = 0
    faulty: int = 0
    with_warnings: int = 0

    def add(self, file: RuleFile, checks: list[QueryCheck], *, strict: bool) -> None:
        self.files += 1
        self.unreadable += bool(file.fault)
        self.without_query += not file.fault and not checks
        self.queries += len(checks)
        for each in checks:
            faulty = not each.sound or (strict and bool(each.problems))
            self.faulty += faulty
            self.with_warnings += not faulty and bool(each.problems)

    def to_dict(self) -> dict[str, int]:
        return {
            "files_read": self.files - self.unreadable,
            "files_without_query": self.without_query,
            "files_unreadable": self.unreadable,
            "queries": self.queries,
            "queries_sound": self.queries - self.faulty,
            "queries_with_warnings": self.with_warnings,
            "queries_faulty": self.faulty,
        }

    def sentence(self) -> str:
        def counted(number: int, noun: str) -> str:
            return f"{number:,} {noun}{'' if number == 1 else 's'}"

        queries = "1 query" if self.queries == 1 else f"{self.queries:,} queries"
        parts = [f"{queries} in {counted(self.files, 'file')}: {self.queries - self.faulty:,} sound"]
        if self.with_warnings:
            parts.append(f"{self.with_warnings:,} of them with warnings")
        parts.append(f"{self.faulty:,} with faults")
        if self.without_query:
            parts.append(f"{counted(self.without_query, 'file')} without a query")
        if self.unreadable:
            parts.append(f"{counted(self.unreadable, 'file')} could not be read")
        return "; ".join(parts) + "."


def _files(paths: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    from sentinel_rag.sentinel.kql_guard.rule_collections import SUFFIXES, rule_paths

    seen: set[Path] = set()
    for text in paths:
        given = Path(text)
        if given.is_dir():
            found = [(path, False) for path in rule_paths(given)]
        elif not given.exists():
            raise UsageError(f"There is no file or folder {text}.", next_step="Name rule files or a folder of them.")
        elif given.suffix.lower() not in SUFFIXES:
            known = ", ".join(sorted(SUFFIXES))
            raise UsageError(f"{text} is no rule file by its ending.", next_step=f"Files that are read: {known}.")
        else:
            found = [(given, True)]
        for path, named in found:
            if path not in seen:
                seen.add(path)
                yield path, named


def _schema(schema_file: str | None, workspace: str | None) -> Schema:
    from sentinel_rag.workspace.table_schemas import reference_tables

    schema = {table: dict(columns) for table, columns in reference_tables().items()}
    if workspace is not None:
        schema |= _workspace_schema(workspace)
    if schema_file is not None:
        schema |= _schema_of_file(Path(schema_file))
    return schema


def _workspace_schema(name: str) -> Schema:
    from sentinel_rag.settings import load_settings
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    found: Schema = {}
    with workspace_access(load_settings(), name, writes=False) as access:
        for table in access.tables():
            quoted = str(table["table"]).replace("\\", "\\\\").replace("'", "\\'")
            answer = access.query(f"['{quoted}'] | getschema", None)
            names = [column["name"] for column in answer["columns"]]
            rows = [dict(zip(names, row, strict=True)) for row in answer["rows"]]
            found[str(table["table"])] = {row["ColumnName"]: row["ColumnType"] for row in rows}
    return found


def _schema_of_file(path: Path) -> Schema:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.", next_step=_SCHEMA_STEP) from None
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}.", next_step=_SCHEMA_STEP) from None
    if not isinstance(document, Mapping):
        raise UsageError(f"{path} is no object of tables.", next_step=_SCHEMA_STEP)
    for table, columns in document.items():
        if not isinstance(columns, Mapping):
            raise UsageError(f"{path}: {table} is no object of columns.", next_step=_SCHEMA_STEP)
        for column, kind in columns.items():
            if kind not in _TYPES:
                raise UsageError(
                    f"{path}: {table}.{column} has the type {kind!r}.", next_step=f"Types are {', '.join(_TYPES)}."
                )
    return {str(table): dict(columns) for table, columns in document.items()}


def _placed(file: RuleFile, checks: list[QueryCheck]) -> Iterator[KqlProblem]:
    """The problems of a file's queries at their places in the file."""
    from sentinel_rag.sentinel.kql_guard.analysis import KqlProblem

    if file.fault:
        yield KqlProblem("unreadable", "error", file.fault, file.fault_line or 1, 1, 0)
    for each in checks:
        for problem in each.problems:
            line, column = file.places.locate(each.query, problem.line, problem.column)
            yield replace(problem, line=line, column=column)


def _print(file: RuleFile, problems: list[KqlProblem]) -> None:
    for each in problems:
        warning = " (warning)" if each.severity == "warning" else ""
        print(safe_cell(f"{file.path}:{each.line}:{each.column}: {each.message}{warning} [{each.code}]"))


def _as_json(file: RuleFile, checks: list[QueryCheck], problems: list[KqlProblem]) -> dict[str, JsonValue]:
    return {
        "file": str(file.path),
        "queries": len(checks),
        "faulty": sum(not each.sound for each in checks),
        "problems": [each.to_dict() for each in problems],
    }


def install(*, as_json: bool) -> int:
    """Install the pinned parser unless it is there."""
    from sentinel_rag.sentinel.kql_guard.official_parser import install_parser, parser_state, quicken

    before = parser_state()
    state = before if not before.missing else install_parser()
    quicken(state)
    if state.missing or state.node is None:
        raise UnavailableError(state.missing, next_step=state.next_step)
    node = ".".join(str(part) for part in state.node.version)
    if as_json:
        found = {"version": state.version, "folder": str(state.folder), "node": node, "installed": bool(before.missing)}
        print_json(found)
    else:
        done = "is installed now" if before.missing else "was there already"
        print(f"Microsoft's KQL parser {state.version} {done}, in {state.folder}; it runs on node {node}.")
    return 0
