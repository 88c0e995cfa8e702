"""The tool run_freeform_kql: a query of the caller's own, checked by the guard before this workspace sees it.

Whoever wrote the text may have been talked into it by a log row, so nothing here trusts it: the guard lets reading
operators over bound names pass, the service is given the window and a deadline, and rows are capped. A refusal says
where, and which names there are, so that its writer can put it right once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import anyio
import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.query_results import (
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    QueryProblem,
    QueryResult,
    TimeWindow,
)
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.arguments import window_from
from sentinel_rag.sentinel.kql_guard import COMPUTED_TIME, GuardReport, KqlGuard, KqlProblem
from sentinel_rag.sentinel.kql_guard.analysis import nearest_names
from sentinel_rag.sentinel.logs.log_analytics import LogsTable
from sentinel_rag.sentinel.response_bodies import together
from sentinel_rag.sentinel.templates.template_queries import json_rows
from sentinel_rag.sentinel.workspace_view import Schema, TableStatistics, WorkspaceView, build_result

# Works on text and knows just enough of KQL to tell code from comments and quoted text. It decides nothing about
# safety: what it cuts off is checked again.
_NOT_CODE = re.compile(
    r"""
    //[^\n]*
    | ```.*?(?:```|\Z) | ~~~.*?(?:~~~|\Z)
    | @"(?:[^"]|"")*(?:"|\Z) | @'(?:[^']|'')*(?:'|\Z)
    | "(?:[^"\\\n]|\\.)*(?:"|$) | '(?:[^'\\\n]|\\.)*(?:'|$)
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_BLANKS = " \t\r\n"
_RENDER = re.compile(r"\|\s*render\b[^|]*\Z")


def _kept_place(match: re.Match[str]) -> str:
    """A comment as blanks, which may be cut off; a quoted text as dots, which end a query as any value does."""
    return re.sub(r"[^\n]", " " if match[0].startswith("//") else ".", match[0])


def bounded(kql: str, most_rows: int) -> str:
    """The query with one row more than `most_rows` as its cap, behind what may stand before one."""
    return f"{without_chart(kql)}\n| take {most_rows + 1}"


def without_chart(kql: str) -> str:
    """The query without a `render` at its end, which draws nothing here, and without semicolons: nothing may follow
    them."""
    code = _NOT_CODE.sub(_kept_place, kql).rstrip(_BLANKS)
    end = len(code.rstrip(f";{_BLANKS}"))
    render = _RENDER.search(code[:end])
    if render is not None:
        end = len(code[: render.start()].rstrip(_BLANKS))
    return kql if end == len(code) else kql[:end]


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
        problems=msgspec.convert(errors[:MOST_PROBLEMS], tuple[QueryProblem, ...], from_attributes=True),
    )


def _next_step(problem: KqlProblem, report: GuardReport) -> str:
    """What the guard says, but for columns: all of them are `allowed`, and need not be told twice."""
    if problem.code in _ABOUT_COLUMNS:
        of = ", ".join(sorted(report.tables)) or "the table"
        start = f"Use {problem.nearest[0]}, or another column" if problem.nearest else "Use a column"
        return f"{start} of {of}; describe_table tells what each holds."
    return problem.next_step or "Correct the query and run it again."


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


MOST_ROWS = 1_000
"""Rows that a query may bring; how many match beyond is not told."""
LONGEST_WINDOW = timedelta(days=366)
"""A wider window of the arguments bounds nothing, so the query needs a filter of its own; where that is computed, this
much is read."""
WAIT_S = 50
"""Seconds after which the service stops a query: less than the gateway waits, so that the reason arrives."""
MOST_AT_ONCE = 2
"""Queries that run at a time, of the five that a connection may have: slow ones must not hold up the other tools."""
LONGEST_QUEUE_S = 5
"""Seconds that a query waits for its turn; then its caller is told to try again, instead of a queue without end."""
MOST_TABLES_EXPLAINED = 5
_TIME_COLUMN = "TimeGenerated"


class FreeformQueries:
    """Runs queries that `guard`, which it owns, lets pass. `allowed_tables` None means every table of the workspace."""

    def __init__(self, guard: KqlGuard, *, allowed_tables: frozenset[str] | None = None, wait_s: int = WAIT_S) -> None:
        self.guard = guard
        self._allowed_tables = allowed_tables
        self._wait_s = wait_s
        self._slots = anyio.Semaphore(MOST_AT_ONCE)

    async def close(self) -> None:
        """End the parser."""
        await self.guard.close()

    async def run_freeform_kql(self, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
        """The first rows in the columns of the query, with how many there are of up to `MOST_ROWS`."""
        kql: str = arguments["kql"]
        now = view.clock()
        chosen = window_from(arguments, now)
        report, schema = await self.checked(view, kql, bounds_time(chosen.window, now))
        window = read_window(chosen.window, report, now)
        tables = in_order_of_text(report.tables, kql)
        answer, statistics = await together(
            lambda: self._answer(view, kql, window, now, report, schema),
            lambda: _statistics(view, tables, schema),
        )
        total = None if len(answer.rows) > MOST_ROWS or answer.partial else len(answer.rows)
        rows = json_rows(answer, arguments["limit"])
        return build_result(
            answer.columns,
            rows,
            tables=tables,
            window=window,
            time_column=_TIME_COLUMN,
            rows_total=total,
            answers=(answer,),
            statistics=statistics,
            summary={"tables_read": list(tables), "parser": report.parser, "guard": added_by_us(window)},
            notes=(*chosen.notes, *_notes(report, total, window), *await _why_empty(view, answer, tables, schema)),
        )

    async def checked(self, view: WorkspaceView, kql: str, time_bounded: bool) -> tuple[GuardReport, Schema]:
        """The guard's report on a query that may run, with the schema it was bound to. Raises QueryFailedError.

        A name that is not in a remembered schema is looked for once more in the schema as it is now."""
        schema: Schema = {}
        report: GuardReport | None = None
        for anew in (False, True):
            schema, before = await view.schema.read(anew=anew), schema
            if report is None or schema != before:
                report = await self._check(kql, schema, time_bounded)
            if report.allowed:
                return report, schema
            if not about_names(report):
                break
        assert report is not None
        raise QueryFailedError(refusal(report, schema, self._allowed_tables))

    async def _check(self, kql: str, schema: Schema, time_bounded: bool) -> GuardReport:
        try:
            return await self.guard.check(
                kql, schema, time_bounded=time_bounded, row_cap=MOST_ROWS, allowed_tables=self._allowed_tables
            )
        except UnavailableError as error:  # the parser died of this query, or cannot be started
            raise QueryFailedError(
                QueryError(code=QueryErrorCode.UNAVAILABLE, message=str(error), next_step=error.next_step, field="kql")
            ) from None

    async def _answer(
        self, view: WorkspaceView, kql: str, window: TimeWindow, now: datetime, report: GuardReport, schema: Schema
    ) -> LogsTable:
        sent = bounded(kql, MOST_ROWS)
        if not sent.startswith(kql):  # something was cut off: what is sent is what was checked
            cut = await self._check(sent, schema, bounds_time(window, now))
            if not cut.allowed:
                raise QueryFailedError(refusal(cut, schema, self._allowed_tables))
        span = TimeWindow(window.start, window.end or now + timedelta(days=1))
        await self._turn()
        try:
            return await view.logs.query(sent, span, wait_s=self._wait_s)
        except QueryFailedError as failure:
            if failure.error.code is not QueryErrorCode.QUERY_REJECTED:
                raise
            raise QueryFailedError(with_names(failure.error, report, schema)) from None
        finally:
            self._slots.release()

    async def _turn(self) -> None:
        """Wait for one of the slots. Raises QueryFailedError THROTTLED if none is free for long."""
        try:
            with anyio.fail_after(LONGEST_QUEUE_S):
                await self._slots.acquire()
        except TimeoutError:
            raise QueryFailedError(
                QueryError(
                    code=QueryErrorCode.THROTTLED,
                    message=f"{MOST_AT_ONCE} freeform queries are running already, and no more run at once.",
                    next_step="Wait for them, or run a named template, which does not wait.",
                    retry_after_s=LONGEST_QUEUE_S,
                )
            ) from None


def holds_nothing(answer: LogsTable) -> bool:
    """No row; or one that only counts, and counted none."""
    counted = all(column.type in ("long", "int", "real", "decimal") for column in answer.columns)
    return not answer.rows or (len(answer.rows) == 1 and counted and not any(answer.rows[0]))


def bounds_time(window: TimeWindow, now: datetime) -> bool:
    """Whether the window of the arguments keeps a query that has no filter of its own from reading everything."""
    return window.start is not None and (window.end or now) - window.start <= LONGEST_WINDOW


def read_window(window: TimeWindow, report: GuardReport, now: datetime) -> TimeWindow:
    """The window that is sent: that of the call, or one of ours where nobody knows the reach of the query's filter."""
    if bounds_time(window, now) or all(problem.code != COMPUTED_TIME for problem in report.problems):
        return window
    return TimeWindow((window.end or now) - LONGEST_WINDOW, window.end)


def added_by_us(window: TimeWindow) -> str:
    """What holds for the query beside its own text, for people."""
    which = "the window of the call" if window.start is not None else "the query's own time filter"
    return f"time: {which}; at most {MOST_ROWS} rows; stopped after its deadline"


def in_order_of_text(tables: frozenset[str], kql: str) -> tuple[str, ...]:
    """The tables in the order in which the query names them."""
    return tuple(sorted(tables, key=lambda name: (kql.find(name) % (len(kql) + 1), name)))


async def _statistics(view: WorkspaceView, tables: tuple[str, ...], schema: Schema) -> TableStatistics:
    """Of the table that the query names first."""
    if not tables or _TIME_COLUMN not in schema.get(tables[0], {}):
        return TableStatistics()
    return await view.statistics.read(tables[0])


def _notes(report: GuardReport, total: int | None, window: TimeWindow) -> list[CodedNote]:
    notes = []
    if report.parser == "fallback":
        notes.append(note("checked_by_fallback"))
    notes += [
        note("query_warning", line=problem.line, column=problem.column, problem=problem.message)
        for problem in report.problems
        if problem.severity == "warning"
    ]
    if window.start is not None and any(problem.code == COMPUTED_TIME for problem in report.problems):
        notes.append(note("read_since", start=window.start))
    if total is None:
        notes.append(note("more_rows_match", count=MOST_ROWS))
    return notes


async def _why_empty(
    view: WorkspaceView, answer: LogsTable, tables: tuple[str, ...], schema: Schema
) -> list[CodedNote]:
    """For a result that holds nothing: what each table holds at all, so that none is not taken for nothing there."""
    if not holds_nothing(answer):
        return []
    notes = []
    for table in tables[:MOST_TABLES_EXPLAINED]:
        held = await _statistics(view, (table,), schema)
        if held.rows == 0:
            notes.append(note("nothing_in_table", table=table))
        elif held.newest is not None:
            notes.append(note("nothing_in_window", table=table, rows=held.rows, newest=held.newest))
    return notes
