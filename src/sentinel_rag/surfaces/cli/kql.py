"""`sentinel kql`: templates, running one, KQL of one's own, and how each reaches the logs and prints their rows.

A run by hand is the person's own act on their own workspace, so no policy applies and no record is written; the agent
runs the same templates through the gateway. What a template is, `sentinel.template_registry` says. A query of one's own
is checked by the guard that the agent's queries pass, for the person's sake: places, nearest names, nothing that
writes; its window is their business, and `--unguarded` sends the text as it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, TimeWindow, format_time
from sentinel_rag.sentinel.arguments import nearest_hint
from sentinel_rag.sentinel.freeform_query import bounded
from sentinel_rag.sentinel.templates.template_registry import (
    TEMPLATE_FOLDER,
    KqlTemplate,
    load_templates,
    misnamed_files,
    template_paths,
)
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._moments import window_of
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli.ask import not_utf8, read_text
from sentinel_rag.surfaces.rendering.visible import plain_cell, safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import GuardReport
    from sentinel_rag.sentinel.logs.log_analytics import LogsTable


@dataclass(frozen=True, slots=True)
class KqlAccess:
    """One workspace by name. Both functions raise SentinelError."""

    name: str
    schema: Callable[[], Mapping[str, Mapping[str, str]]]
    """Table -> column -> KQL type."""
    answer: Callable[[str, TimeWindow], LogsTable]
    """The rows of a query over a span of TimeGenerated."""


@contextmanager
def kql_access(settings: Settings, requested: str | None) -> Iterator[KqlAccess]:
    """Access to the chosen workspace. Raises UsageError for a name that means none."""
    from sentinel_rag.surfaces.cli._zones import choose_workspace

    chosen = settings.named(choose_workspace(settings, requested)) if settings.workspaces else None
    if chosen is not None and not chosen.embedded:
        from sentinel_rag.app.azure import azure_schema, query_azure

        yield KqlAccess(chosen.name, partial(azure_schema, chosen), partial(query_azure, chosen))
        return
    from sentinel_rag.sentinel.logs.log_analytics import decode_table, timespan_text
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access
    from sentinel_rag.workspace.table_schemas import reference_tables

    with workspace_access(settings, requested if chosen is None else chosen.name, writes=False) as access:

        def answer(kql: str, span: TimeWindow) -> LogsTable:
            found = access.query(kql, timespan_text(span))
            return decode_table(found, kql, partial_reason=found["partial"])

        yield KqlAccess(access.name, lambda: {**reference_tables(), **access.schema()}, answer)


MOST_TABLES_EXPLAINED = 5
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _print_answer(
    answer: LogsTable,
    about: Mapping[str, Any],
    *,
    limit: int,
    totals: Mapping[str, JsonValue],
    notes: Sequence[str],
    as_json: bool,
) -> int:
    """The first `limit` rows, their number, the totals over all of them, and what else there is to know; 3 if there is
    none. `about` is what JSON tells beside them, its `workspace` people too."""
    from sentinel_rag.sentinel.templates.template_queries import json_rows, rows_counted

    rows, total, names = json_rows(answer, limit), rows_counted(answer), answer.names
    if as_json:
        found = {
            **about,
            "rows_returned": len(rows),
            "rows_total": total,
            "partial": answer.partial,
            "notes": notes,
            "columns": [{"name": column.name, "type": column.type} for column in answer.columns],
            "rows": rows,
        }
        print(json.dumps(found))
        return 0 if rows else 3
    if rows:
        cells = [tuple(plain_cell(row.get(name)) for name in dict.fromkeys(names)) for row in rows]
        print_table(tuple(dict.fromkeys(names)), cells)
        print()
    if total is None:
        print(f"First {len(rows):,} rows; more match.")
    elif len(rows) < total:
        print(f"First {len(rows):,} of {total:,} rows.")
    else:
        print("No row matches." if not rows else f"{total:,} row{'s' if total != 1 else ''}.")
    if totals and rows:
        print(
            safe_cell("Sums over the rows: " + ", ".join(f"{name} {value:,}" for name, value in totals.items()) + ".")
        )
    for note in (*notes, f"Workspace: {about['workspace']}"):
        print(safe(note))
    return 0 if rows else 3


def why_empty(access: KqlAccess, tables: Iterable[str], window: TimeWindow, *, filtered: bool) -> list[str]:
    """For a query without rows: the window that was asked, what each table holds at all, and what to try.

    `filtered` tells that the query chooses among the rows of its window."""
    notes = [f"The window was {_said(window)}." + (" The query's own filters hold as well." if filtered else "")]
    for table in list(tables)[:MOST_TABLES_EXPLAINED]:
        notes += _held(access, table, window)
    return notes


def _held(access: KqlAccess, table: str, window: TimeWindow) -> list[str]:
    if not _PLAIN_NAME.fullmatch(table):
        return []
    kql = f"{table}\n| summarize Rows = count(), Oldest = min(TimeGenerated), Newest = max(TimeGenerated)"
    try:
        row = next(access.answer(kql, TimeWindow()).records(), None)
    except SentinelError:  # it only explains
        return []
    if row is None or not row["Rows"]:
        return [f"{table} holds no rows at all: nothing was collected or imported yet."]
    if row["Oldest"] is None:
        return [f"{table} holds {row['Rows']:,} rows, none with a TimeGenerated."]
    oldest, newest = row["Oldest"], row["Newest"]
    said = (
        f"{table} holds {row['Rows']:,} rows, the oldest of {format_time(oldest)}, the newest of {format_time(newest)}."
    )
    if (window.start is not None and newest < window.start) or (window.end is not None and oldest >= window.end):
        return [f"{said} All of them lie outside the window: try --since {format_time(oldest)}"]
    return [said]


def _said(window: TimeWindow) -> str:
    window = TimeWindow(*(each and each.replace(microsecond=0) for each in (window.start, window.end)))
    if window.start is None and window.end is None:
        return "everything that is retained"
    if window.start is None:
        assert window.end is not None
        return f"everything before {format_time(window.end)}"
    if window.end is None:
        return f"everything since {format_time(window.start)}"
    return f"from {format_time(window.start)} to before {format_time(window.end)}"


def templates(name: str | None, *, as_json: bool) -> int:
    """List all templates, or show one with its parameters and its query."""
    settings = load_settings()
    known = load_templates(own=settings.templates)
    shown = list(known.values()) if name is None else [_named(known, name)]
    if as_json:
        print_json([_as_json(template, settings) for template in shown])
        return 0
    if name is None:
        rows = [
            (
                template.name,
                ", ".join(p.name + ("" if p.required else "?") for p in template.parameters) or "-",
                ", ".join(template.tables),
                template.description,
            )
            for template in shown
        ]
        print_table(("template", "parameters", "tables", "what it shows"), rows)
        print(f"\n{len(rows)} templates; a parameter with ? may be left out. One of them: sentinel kql templates NAME")
    else:
        _print_template(shown[0], settings)
    return 0


def run(
    name: str,
    arguments: Sequence[str],
    *,
    since: str | None,
    until: str | None,
    limit: int,
    workspace: str | None,
    as_json: bool,
) -> int:
    """Run a template and print its first `limit` rows; 3 if none matches."""
    from sentinel_rag.sentinel.templates import template_queries

    settings = load_settings()
    template = _named(load_templates(own=settings.templates), name)
    window = window_of(since, until)
    try:
        values = _values(template, arguments)
        kql, span = template.render(values, window), template_queries.api_span(template, window)
        with kql_access(settings, workspace) as access:
            answer = access.answer(template_queries.bounded(kql), span)
            names = []
            for parameter, query in template_queries.names_asked(template, {} if answer.rows else values):
                near = access.answer(query, template_queries.names_span(window))
                if (reading := template_queries.name_in(parameter, values, near)) is not None:
                    names.append(reading.note(" and ".join(template.tables)))
                    values[parameter.name] = reading.used or values[parameter.name]
            if names:
                kql = template.render(values, window)
                answer = access.answer(template_queries.bounded(kql), span)
            empty = [] if answer.rows else why_empty(access, template.tables[:1], window, filtered=bool(arguments))
            answered = access.name
    except QueryFailedError as failure:
        raise _as_error(failure, template) from None
    totals = template_queries.totals_of(template, answer)
    notes: list[str] = (
        [] if template_queries.rows_counted(answer) is not None else [template_queries.not_counted(answer)]
    )
    notes += [*([answer.partial_reason] if answer.partial else []), *names, *empty]
    about = {
        "template": template.name,
        "workspace": answered,
        "window": window.to_dict(),
        "totals": totals,
        "query": kql,
    }
    return _print_answer(answer, about, limit=limit, totals=totals, notes=notes, as_json=as_json)


def lint(path: str | None, *, as_json: bool) -> int:
    """Check templates and try each on an empty workspace; 2 if one is not right."""
    from sentinel_rag.app.template_trial import try_templates

    folders = _lint_folders(path)
    templates: list[str] = []
    problems: list[str] = []
    warnings: list[str] = []
    for folder, paths in folders:
        shipped = folder.resolve() == TEMPLATE_FOLDER.resolve()
        taken = () if shipped else tuple(each.stem for each in template_paths(TEMPLATE_FOLDER))
        report = try_templates(paths, taken=taken)
        templates += report.templates
        problems += [*(str(folder / problem) for problem in misnamed_files(folder) if path is None or len(paths) != 1)]
        problems += report.problems
        warnings += report.warnings
    if as_json:
        print_json({"sound": templates, "problems": problems, "warnings": warnings})
    else:
        for problem in problems:
            print(safe_cell(problem))
        for warning in warnings:
            print(safe_cell(f"{warning} (warning)"))
        found = "no problem" if not problems else f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        print(f"{len(templates)} templates are sound; {found}.")
    return 2 if problems else 0


def _lint_folders(path: str | None) -> list[tuple[Path, list[Path]]]:
    if path is None:
        own = load_settings().templates
        folders = [TEMPLATE_FOLDER, *(() if own is None else (own,))]
        return [(folder, template_paths(folder)) for folder in folders]
    given = Path(path)
    if given.is_dir():
        paths = template_paths(given)
        if not paths and not misnamed_files(given):
            raise UsageError(
                f"There is no template in {path}.",
                next_step="A template is a file NAME.yaml; see docs/kql-templates.md.",
            )
        return [(given, paths)]
    if not given.is_file():
        raise UsageError(f"There is no file or folder {path}.", next_step="Name a template file or a folder of them.")
    return [(given.parent, [given])]


def _named(known: dict[str, KqlTemplate], name: str) -> KqlTemplate:
    found = known.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise UsageError(
            f"There is no template {name!r}.{nearest_hint(name, tuple(known))}",
            next_step="List them: sentinel kql templates",
        )
    return found


def _values(template: KqlTemplate, arguments: Sequence[str]) -> dict[str, Any]:
    declared = {parameter.name: parameter for parameter in template.parameters}
    values: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name:
            raise UsageError(
                f"{argument!r} is not NAME=VALUE.",
                next_step=f"See what it takes: sentinel kql templates {template.name}",
            )
        if name in values:
            raise UsageError(f"The parameter {name} is given twice.", next_step="Give it once.")
        values[name] = declared[name].from_text(text) if name in declared else text
    return values


def _as_error(failure: QueryFailedError, template: KqlTemplate) -> SentinelError:
    error = failure.error
    if error.code is not QueryErrorCode.INVALID_ARGUMENT:
        return UnavailableError(error.message, next_step=error.next_step, code=error.code.value)
    declared = {f"parameters.{parameter.name}" for parameter in template.parameters}
    allowed = f" Allowed: {', '.join(error.allowed)}." if error.allowed and error.field in declared else ""
    return UsageError(
        f"{error.message}{allowed}", next_step=f"See what it takes: sentinel kql templates {template.name}"
    )


def _as_json(template: KqlTemplate, settings: Settings) -> dict[str, JsonValue]:
    return {
        **template.to_row(),
        "totals": list(template.totals),
        "file": str(_file_of(template, settings)),
        "query": template.kql,
    }


def _file_of(template: KqlTemplate, settings: Settings) -> Path:
    shipped = TEMPLATE_FOLDER / f"{template.name}.yaml"
    return shipped if settings.templates is None or shipped.exists() else settings.templates / shipped.name


def _print_template(template: KqlTemplate, settings: Settings) -> None:
    print(safe(f"{template.name}: {template.description}"))
    print(safe(f"Tables: {', '.join(template.tables)}. File: {_file_of(template, settings)}"))
    if template.tactics or template.techniques:
        print(safe(f"ATT&CK: {', '.join((*template.tactics, *template.techniques))}"))
    rows = [
        (
            parameter.name,
            parameter.type,
            "required" if parameter.required else f"default {json.dumps(parameter.default)}",
            parameter.description + (f" One of {', '.join(parameter.allowed)}." if parameter.allowed else ""),
        )
        for parameter in template.parameters
    ]
    if rows:
        print()
        print_table(("parameter", "type", "needed", "meaning"), rows)
    print(safe("\nQuestions that it answers:\n" + "\n".join(f"  {question}" for question in template.questions)))
    print(safe(f"\n{template.kql}"))


LONGEST_FILE = 1_000_000
MOST_ROWS = 10_000
_QUERY_FILE = re.compile(r"[^\s|]+\.(?:kql|csl|kusto|txt)", re.IGNORECASE)


def query(
    kql: list[str],
    *,
    since: str | None,
    until: str | None,
    limit: int,
    workspace: str | None,
    unguarded: bool,
    as_json: bool,
) -> int:
    """Run the query and print its first `limit` rows; 3 if it has none."""
    window, text = window_of(since, until), _text(kql)
    settings = load_settings()
    with kql_access(settings, workspace) as access:
        report = None if unguarded else _checked(access, text)
        try:
            answer = access.answer(text if unguarded else bounded(text, MOST_ROWS), window)
        except QueryFailedError as failure:
            raise _query_error(failure.error) from None
        from sentinel_rag.sentinel.freeform_query import holds_nothing

        notes = [*_guard_notes(report), *([answer.partial_reason] if answer.partial else [])]
        if holds_nothing(answer):
            notes += why_empty(access, sorted(report.tables) if report else (), window, filtered=True)
    about = {
        "workspace": access.name,
        "window": window.to_dict(),
        "guard": None if report is None else report.parser,
        "tables": None if report is None else sorted(report.tables),
        "query": answer.query,
    }
    return _print_answer(answer, about, limit=limit, totals={}, notes=notes, as_json=as_json)


def _text(words: list[str]) -> str:
    """The query: of a file if there is one of that name, else the words themselves, else standard input."""
    if len(words) != 1 or "|" in words[0] or "\n" in words[0] or not _is_file(words[0]):
        if len(words) == 1 and _QUERY_FILE.fullmatch(words[0]):
            raise UsageError(f"There is no file {words[0]}.", next_step="Name a file with a query, or write the query.")
        return read_text([] if words == ["-"] else words, what="query")
    path = Path(words[0])
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise UsageError(
                f"{path} is larger than {LONGEST_FILE:,} bytes, so it is no query.",
                next_step="Name a file with one query.",
            )
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise not_utf8(f"file {path}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step="Name a readable file.") from None
    if not text.strip():
        raise UsageError(f"There is no query in {path}.", next_step="Write one, or give it in quotes.")
    return text


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # too long or odd for a name: then it is the query
        return False


def _checked(access: KqlAccess, kql: str) -> GuardReport:
    """The guard's report on a query that may run. Raises UsageError with every problem."""
    import anyio

    schema = access.schema()
    report = anyio.run(_guard_check, kql, schema)
    if report.allowed:
        return report
    from sentinel_rag.sentinel.freeform_query import refusal

    columns = next((each.next_step for each in report.errors if each.code == "unknown_column"), "")
    as_it_is = "To run it as it is: sentinel kql query --unguarded"
    raise _query_error(refusal(report, schema), advice=f" {columns} {as_it_is}" if columns else f" {as_it_is}")


async def _guard_check(kql: str, schema: Mapping[str, Mapping[str, str]]) -> GuardReport:
    from sentinel_rag.sentinel.kql_guard import KqlGuard
    from sentinel_rag.sentinel.kql_guard.official_parser import installed_parser

    guard = KqlGuard(installed_parser())
    try:
        return await guard.check(kql, schema, time_bounded=True, row_cap=MOST_ROWS)
    finally:
        await guard.close()


def _query_error(error: QueryError, *, advice: str = "") -> UsageError | UnavailableError:
    if error.code not in (QueryErrorCode.QUERY_REJECTED, QueryErrorCode.INVALID_ARGUMENT):
        return UnavailableError(error.message, next_step=error.next_step, code=error.code.value)
    lines = [error.message]
    for problem in error.problems[1:]:
        near = f" Nearest: {', '.join(problem.nearest)}." if problem.nearest else ""
        lines.append(f"Line {problem.line}, column {problem.column}: {problem.message}{near}")
    return UsageError(
        "\n".join(lines), next_step=f"{error.next_step.partition(';')[0].rstrip('.')}.{advice}", code=error.code.value
    )


def _guard_notes(report: GuardReport | None) -> list[str]:
    if report is None:
        return []
    notes = [
        f"Line {problem.line}, column {problem.column}: {problem.message}"
        for problem in report.problems
        if problem.severity == "warning"
    ]
    if report.parser == "fallback" and sys.stderr.isatty():
        notes.append("Checked by the stricter fallback parser; sentinel kql install brings Microsoft's.")
    return notes
