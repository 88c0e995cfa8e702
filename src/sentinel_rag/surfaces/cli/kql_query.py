"""`sentinel kql query`: KQL of one's own, checked by the guard that the agent's queries pass, then run.

It is the person's act on their own workspace: no policy applies, no record is written, the window is their business,
and `--unguarded` sends the text as it is. The check is for their sake: places, nearest names, nothing that writes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.freeform_query import bounded
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._moments import window_of
from sentinel_rag.surfaces.cli.ask import not_utf8, read_text
from sentinel_rag.surfaces.cli.kql import KqlAccess, kql_access, print_rows, why_empty
from sentinel_rag.surfaces.rendering.visible import safe

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import GuardReport

LONGEST_FILE = 1_000_000
MOST_ROWS = 10_000
_QUERY_FILE = re.compile(r"[^\s|]+\.(?:kql|csl|kusto|txt)", re.IGNORECASE)


def run(
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
            raise _as_error(failure.error) from None
        from sentinel_rag.sentinel.freeform_query import holds_nothing
        from sentinel_rag.sentinel.templates.template_queries import json_rows, rows_counted

        rows, total = json_rows(answer, limit), rows_counted(answer)
        notes = [*_notes(report), *([answer.partial_reason] if answer.partial else [])]
        if holds_nothing(answer):
            notes += why_empty(access, sorted(report.tables) if report else (), window, filtered=True)
    if as_json:
        found = {
            "workspace": access.name,
            "window": window.to_dict(),
            "guard": None if report is None else report.parser,
            "tables": None if report is None else sorted(report.tables),
            "rows_returned": len(rows),
            "rows_total": total,
            "partial": answer.partial,
            "notes": notes,
            "columns": [{"name": column.name, "type": column.type} for column in answer.columns],
            "rows": rows,
            "query": answer.query,
        }
        print(json.dumps(found))
    else:
        print_rows(answer.names, rows, total, {}, notes)
        print(safe(f"Workspace: {access.name}"))
    return 0 if answer.rows else 3


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
    report = anyio.run(_check, kql, schema)
    if report.allowed:
        return report
    from sentinel_rag.sentinel.freeform_query import refusal

    columns = next((each.next_step for each in report.errors if each.code == "unknown_column"), "")
    as_it_is = "To run it as it is: sentinel kql query --unguarded"
    raise _as_error(refusal(report, schema), advice=f" {columns} {as_it_is}" if columns else f" {as_it_is}")


async def _check(kql: str, schema: Mapping[str, Mapping[str, str]]) -> GuardReport:
    from sentinel_rag.sentinel.kql_guard import KqlGuard
    from sentinel_rag.sentinel.kql_guard.official_parser import installed_parser

    guard = KqlGuard(installed_parser())
    try:
        return await guard.check(kql, schema, time_bounded=True, row_cap=MOST_ROWS)
    finally:
        await guard.close()


def _as_error(error: QueryError, *, advice: str = "") -> UsageError | UnavailableError:
    if error.code not in (QueryErrorCode.QUERY_REJECTED, QueryErrorCode.INVALID_ARGUMENT):
        return UnavailableError(error.message, next_step=error.next_step, code=error.code.value)
    lines = [error.message]
    for problem in error.problems[1:]:
        near = f" Nearest: {', '.join(problem.nearest)}." if problem.nearest else ""
        lines.append(f"Line {problem.line}, column {problem.column}: {problem.message}{near}")
    return UsageError(
        "\n".join(lines), next_step=f"{error.next_step.partition(';')[0].rstrip('.')}.{advice}", code=error.code.value
    )


def _notes(report: GuardReport | None) -> list[str]:
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
