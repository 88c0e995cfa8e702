"""Running a stored query: the guard first, then the workspace, in the alert's window, with a cap and a deadline.

The query is text of a row, which an attacker may have written, so it passes the KQL guard like anybody's, and what is
checked is what runs: the query with our cap behind it. The clock before it (`set query_now`) is ours alone, written
from a time. An outcome is a value; above is `alert_events`, which tells it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.sentinel.concurrency import together
from sentinel_rag.sentinel.event_counts import late_rows
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.kql_literals import datetime_literal
from sentinel_rag.sentinel.log_tables import LogsTable
from sentinel_rag.sentinel.stored_query import StoredQuery, taken_apart
from sentinel_rag.sentinel.table_statistics import TableStatistics
from sentinel_rag.sentinel.workspace_view import WorkspaceView

if TYPE_CHECKING:
    from sentinel_rag.sentinel.kql_guard import GuardReport, KqlGuard, KqlProblem

WAIT_S = 45
"""Seconds for a whole run, its waiting for a slot and all its queries: less than the gateway waits, so that the reason
arrives."""
GRACE_S = 5
"""Seconds beyond that in which the service's own reason may arrive."""
MOST_AT_ONCE = 2
"""Stored queries that run at a time, of the five that a connection may have: slow ones must not hold up other tools."""
_SLOW_STEP = "Read it in `query`; whoever knows the rule can run it in the portal."
_ENDED_BY_THE_QUERY = frozenset({QueryErrorCode.QUERY_REJECTED, QueryErrorCode.TIMEOUT})


@dataclass(frozen=True, slots=True)
class QueryRan:
    """Rows, and how many there are in all (None if that was not told). `whole_rule` is True where the rule's query for
    all its alerts stood in for the alert's own."""

    rows: LogsTable
    total: int | None
    tables: tuple[str, ...]
    parser: str
    statistics: TableStatistics
    late: int | None
    whole_rule: bool


@dataclass(frozen=True, slots=True)
class QueryNotRun:
    """`why` is refused (by the guard, with `problems`) or failed (in the workspace); `sentence` is for the reader.
    `slow` if it ran out of time."""

    why: str
    sentence: str
    problems: tuple[KqlProblem, ...] = ()
    tables: tuple[str, ...] = ()
    slow: bool = False


class StoredQueryRunner:
    """Runs stored queries behind a guard that `make_guard` gives when the first of them comes, and that is closed here.

    Without `make_guard` it is one with whichever parser is installed. `allowed_tables` None means every table of the
    workspace; `wait_s` is the time that a whole run may take.
    """

    def __init__(
        self,
        make_guard: Callable[[], KqlGuard] | None = None,
        *,
        allowed_tables: frozenset[str] | None = None,
        wait_s: int = WAIT_S,
    ) -> None:
        self._make_guard = make_guard or _installed_guard
        self._guard: KqlGuard | None = None
        self._starting = anyio.Lock()
        self._slots = anyio.Semaphore(MOST_AT_ONCE)
        self._allowed_tables = allowed_tables
        self._wait_s = wait_s

    async def close(self) -> None:
        """End the parser, if it was started."""
        if self._guard is not None:
            await self._guard.close()

    async def run(self, view: WorkspaceView, stored: StoredQuery, limit: int) -> QueryRan | QueryNotRun:
        """The first form of the query that may run and does; the first one's fault if none does. A form that took too
        long is the last: the others are the same query, read otherwise.

        Raises QueryFailedError for what is no fault of the query (throttled, no access, no answer)."""
        first: QueryNotRun | None = None
        forms = [(kql, False) for kql in stored.candidates]
        if stored.rule_query:
            forms.append((taken_apart(stored.rule_query)[1], True))
        ends = anyio.current_time() + self._wait_s
        # The service ends a query at `ends` and tells why; only an answer that then is still away is not waited for.
        with anyio.move_on_after(self._wait_s + GRACE_S):
            async with self._slots:
                for kql, whole_rule in forms:
                    outcome = await self._run_form(view, stored, kql, limit, ends, whole_rule=whole_rule)
                    if isinstance(outcome, QueryRan) or outcome.slow:
                        return outcome
                    first = first or outcome
        return first or QueryNotRun("failed", f"The query did not end within {self._wait_s} seconds. {_SLOW_STEP}")

    async def _run_form(
        self, view: WorkspaceView, stored: StoredQuery, kql: str, limit: int, ends: float, *, whole_rule: bool
    ) -> QueryRan | QueryNotRun:
        report = await self._report(view, kql)
        tables = tuple(sorted(report.tables))
        if not report.allowed:
            return QueryNotRun("refused", _refusal(report), report.errors, tables)
        at = f"set query_now = {datetime_literal(stored.query_now)};\n"
        first = tables[0] if tables else ""
        try:
            (rows, total), statistics, late = await together(
                lambda: self._rows(view, stored, at + kql, limit, ends),
                lambda: _statistics(view, first),
                lambda: late_rows(view, first, stored.window, stored.query_now),
            )
        except QueryFailedError as failure:
            if failure.error.code not in _ENDED_BY_THE_QUERY:
                raise
            slow = failure.error.code is QueryErrorCode.TIMEOUT
            return QueryNotRun("failed", f"{failure.error.message} {failure.error.next_step}".strip(), (), tables, slow)
        return QueryRan(replace(rows, query=kql), total, tables, report.parser, statistics, late, whole_rule)

    async def _rows(
        self, view: WorkspaceView, stored: StoredQuery, kql: str, limit: int, ends: float
    ) -> tuple[LogsTable, int | None]:
        """The first rows and how many there are; counted only if there are more than came."""
        rows = await view.logs.query(f"{kql}\n| take {limit}", stored.window, wait_s=_seconds_until(ends))
        if len(rows.rows) < limit and not rows.partial:
            return rows, len(rows.rows)
        counted = await view.logs.query(f"{kql}\n| count", stored.window, wait_s=_seconds_until(ends))
        return rows, None if counted.partial or not counted.rows else int(counted.rows[0][0])

    async def _report(self, view: WorkspaceView, kql: str) -> GuardReport:
        schema = await view.schema.read()
        async with self._starting:
            if self._guard is None:
                self._guard = await anyio.to_thread.run_sync(self._make_guard)
        try:
            return await self._guard.check(
                f"{kql}\n| take 1", schema, time_bounded=True, row_cap=1, allowed_tables=self._allowed_tables
            )
        except UnavailableError as error:
            raise QueryFailedError(
                QueryError(code=QueryErrorCode.UNAVAILABLE, message=str(error), next_step=error.next_step)
            ) from None


def _seconds_until(ends: float) -> int:
    return max(1, math.ceil(ends - anyio.current_time()))


def _installed_guard() -> KqlGuard:
    from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser

    return KqlGuard(installed_parser())


def _refusal(report: GuardReport) -> str:
    first = report.errors[0].message.rstrip(".")
    more = f" ({len(report.errors) - 1} more)" if len(report.errors) > 1 else ""
    return (
        f"The query that the alert holds was not run: {first}{more}. Read it in `query`; whoever knows the rule can "
        "run it in the portal."
    )


async def _statistics(view: WorkspaceView, table: str) -> TableStatistics:
    return await view.statistics.read(table) if table else TableStatistics()
