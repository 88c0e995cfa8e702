"""Why a freeform query did not run, as an error from which its writer can put it right.

Pure functions from the guard's report, or from the service's own error, to a `QueryError` with every place, the nearest
names, and the names that there are. `freeform_query` raises them; `sentinel kql query` prints them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryProblem
from sentinel_rag.sentinel.kql_guard import GuardReport, KqlProblem
from sentinel_rag.sentinel.kql_guard.names import nearest_names
from sentinel_rag.sentinel.workspace_schema import Schema

MOST_PROBLEMS = 10
MOST_NAMES = 300
_ABOUT_TABLES = frozenset({"unknown_table", "table_not_allowed"})
_ABOUT_COLUMNS = frozenset({"unknown_column"})
_NAMED = re.compile(r"named '([^'\n]{1,200})'")


def about_names(report: GuardReport) -> bool:
    """Whether another schema could change the verdict."""
    return any(problem.code in _ABOUT_TABLES | _ABOUT_COLUMNS for problem in report.errors)


def refusal(report: GuardReport, schema: Schema, allowed_tables: frozenset[str] | None = None) -> QueryError:
    """Why the guard did not let a query run: the first error in the sentence, all of them as problems."""
    errors = report.errors
    first = errors[0]
    more = f" ({len(errors) - 1} more problem{'s' if len(errors) > 2 else ''})" if len(errors) > 1 else ""
    near = f" Nearest: {', '.join(first.nearest)}." if first.nearest and first.nearest[0] not in first.message else ""
    return QueryError(
        code=QueryErrorCode.QUERY_REJECTED,
        message=f"The query was not run. Line {first.line}, column {first.column}: {first.message}{near}{more}",
        next_step=_next_step(first, report),
        field="kql",
        allowed=_names_for(first, report, schema, allowed_tables),
        line=first.line,
        position=first.column - 1,
        problems=tuple(_as_query_problem(problem) for problem in errors[:MOST_PROBLEMS]),
    )


def _next_step(problem: KqlProblem, report: GuardReport) -> str:
    """What the guard says, but for columns: all of them are `allowed`, and need not be told twice."""
    if problem.code in _ABOUT_COLUMNS:
        of = ", ".join(sorted(report.tables)) or "the table"
        start = f"Use {problem.nearest[0]}, or another column" if problem.nearest else "Use a column"
        return f"{start} of {of}; describe_table tells what each holds."
    return problem.next_step or "Correct the query and run it again."


def _as_query_problem(problem: KqlProblem) -> QueryProblem:
    return QueryProblem(
        code=problem.code,
        message=problem.message,
        line=problem.line,
        column=problem.column,
        length=problem.length,
        nearest=problem.nearest,
    )


def _names_for(
    problem: KqlProblem, report: GuardReport, schema: Schema, allowed_tables: frozenset[str] | None
) -> tuple[str, ...]:
    """The names that could stand where a wrong one stands: columns of the tables that are read, or tables."""
    if problem.code in _ABOUT_TABLES:
        return tuple(sorted(allowed_tables)) if allowed_tables is not None else problem.nearest
    return _columns_of(report, schema) if problem.code in _ABOUT_COLUMNS else ()


def _columns_of(report: GuardReport, schema: Schema) -> tuple[str, ...]:
    columns = dict.fromkeys(column for table in sorted(report.tables) for column in schema.get(table, ()))
    return tuple(columns)[:MOST_NAMES]


def with_names(error: QueryError, report: GuardReport, schema: Schema) -> QueryError:
    """What only the service noticed, with the names of the tables that the query reads."""
    columns = _columns_of(report, schema)
    named = _NAMED.search(error.message)
    near = nearest_names(named[1], columns) if named else ()
    return replace(
        error,
        field="kql",
        allowed=columns if named else (),
        problems=tuple(replace(problem, nearest=near) for problem in error.problems),
    )
