"""One question to every workspace at once: lists put together in their order, totals for each and for all.

A workspace that gives no answer in time, or an error, makes the result partial and stops no other; only when none
answers is there no result. Which tools can be asked so, `contracts.tool_schemas` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import (
    Column,
    QueryError,
    QueryErrorCode,
    QueryResult,
    parse_time,
)
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.workspace_view import WorkspaceView

Handler = Callable[[WorkspaceView, Mapping[str, Any]], Awaitable[QueryResult]]
LONGEST_WAIT_S = 40.0
"""How long one workspace may keep the others waiting; less than a gateway waits for the whole call."""

_OLDEST = datetime(1, 1, 1, tzinfo=UTC)
_RANK = {severity.casefold(): rank for rank, severity in enumerate(SEVERITIES)}
_TIMES = {"updated": ("updated_time",)}
_EVENT_TIMES = ("created_time", "start_time", "time")
"""Of an incident, or of an alert: the first that its row has."""


async def ask_every_workspace(
    handler: Handler, views: Sequence[WorkspaceView], arguments: Mapping[str, Any], *, longest_wait_s: float
) -> QueryResult:
    """The handler's answers of all workspaces as one. Raises QueryFailedError if none of them answers, or if the
    arguments are wrong."""
    offset = arguments.get("offset", 0)
    wanted = dict(arguments)
    if "limit" in wanted:  # what stands on this page may come from any of them
        wanted |= {"limit": arguments["limit"] + offset, "offset": 0}
    answers: dict[str, QueryResult] = {}
    errors: dict[str, QueryError] = {}

    async def ask(view: WorkspaceView) -> None:
        name = view.logs.name
        try:
            with anyio.fail_after(longest_wait_s):
                answers[name] = await handler(view, wanted)
        except QueryFailedError as failure:
            errors[name] = failure.error
        except TimeoutError:
            errors[name] = QueryError(
                code=QueryErrorCode.TIMEOUT, message=f"It did not answer within {longest_wait_s:.0f} seconds."
            )

    async with anyio.create_task_group() as group:
        for view in views:
            group.start_soon(ask, view)
    order = [view.logs.name for view in views]
    if not answers:
        raise QueryFailedError(_no_answer({name: errors[name] for name in order}))
    return _put_together(
        {name: answers[name] for name in order if name in answers},
        {name: errors[name] for name in order if name in errors},
        arguments,
    )


def _no_answer(errors: Mapping[str, QueryError]) -> QueryError:
    first = next(iter(errors.values()))
    if all(error.code is QueryErrorCode.INVALID_ARGUMENT for error in errors.values()):
        return first
    told = " ".join(f"{name}: {error.message}" for name, error in errors.items())
    return replace(first, message=f"No workspace answered. {told}")


def _put_together(
    answers: Mapping[str, QueryResult], errors: Mapping[str, QueryError], arguments: Mapping[str, Any]
) -> QueryResult:
    first = next(iter(answers.values()))
    coverages = [answer.coverage for answer in answers.values()]
    rows: list[dict[str, JsonValue]] = [
        {**row, "workspace": name} for name, answer in answers.items() for row in answer.rows
    ]
    _sort(rows, arguments.get("order"))
    offset, limit = arguments.get("offset", 0), arguments.get("limit", len(rows))
    rows = rows[offset : offset + limit]
    totals = [coverage.rows_total for coverage in coverages]
    whole = not errors and None not in totals
    reasons = [f"{name}: {error.message}" for name, error in errors.items()]
    cut = {name: answer.coverage for name, answer in answers.items() if answer.coverage.partial}
    reasons += [f"{name}: {coverage.partial_reason}" for name, coverage in cut.items()]
    by_workspace: dict[str, JsonValue] = {
        **{name: {"rows_total": answer.coverage.rows_total, "error": None} for name, answer in answers.items()},
        **{name: {"rows_total": None, "error": error.message} for name, error in errors.items()},
    }
    notes = [f"{name}: {note}" for name, answer in answers.items() for note in answer.notes]
    return QueryResult(
        columns=(*first.columns, Column("workspace", "string")),
        rows=tuple(rows),
        summary={**_summed(list(answers.values())), "by_workspace": by_workspace, **_names_read(answers)},
        notes=tuple(dict.fromkeys(notes)),
        coverage=replace(
            first.coverage,
            workspace=", ".join(answers),
            tables=tuple(dict.fromkeys(table for coverage in coverages for table in coverage.tables)),
            rows_returned=len(rows),
            rows_total=sum(total for total in totals if total is not None) if whole else None,
            duration_ms=max(coverage.duration_ms for coverage in coverages),
            partial=bool(reasons),
            partial_reason=" ".join(reasons),
            table_rows=_over(sum, [coverage.table_rows for coverage in coverages]),
            table_oldest=_over(min, [coverage.table_oldest for coverage in coverages]),
            table_newest=_over(max, [coverage.table_newest for coverage in coverages]),
        ),
    )


def _over(measure: Callable[[list[Any]], Any], values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return measure(known) if known else None


def _sort(rows: list[dict[str, JsonValue]], order: Any) -> None:
    """In place and stable, so that rows of one moment stay in the order of the workspaces."""
    if order is None:  # tables: the largest first
        rows.sort(key=lambda row: -int(str(row["rows"])))
        return
    names = _TIMES.get(order, _EVENT_TIMES)

    def moment(row: Mapping[str, JsonValue]) -> datetime:
        told = (value for name in names if isinstance(value := row.get(name), str))
        return next(map(parse_time, told), _OLDEST)

    rows.sort(key=moment, reverse=order != "oldest")
    if order == "severity":
        rows.sort(key=lambda row: (-_RANK.get(str(row["severity"]).casefold(), -1), _closed_incident(row)))


def _closed_incident(row: Mapping[str, JsonValue]) -> bool:
    return "created_time" in row and row.get("status") == "Closed"


def _summed(answers: Sequence[QueryResult]) -> dict[str, JsonValue]:
    """Counts added up. Names are left out where one workspace told its commonest alone: their sum would be too low."""
    summary: dict[str, JsonValue] = {}
    for key, value in answers[0].summary.items():
        values = [answer.summary.get(key) for answer in answers]
        if key == "names":
            continue
        if isinstance(value, Mapping):
            if key == "by_name" and not all(map(_names_all, answers)):
                continue
            counts: Counter[str] = Counter()
            for each in values:
                counts.update(each if isinstance(each, Mapping) else {})
            summary[key] = dict(counts)
        elif isinstance(value, int):
            summary[key] = sum(each for each in values if isinstance(each, int))
    return summary


def _names_read(answers: Mapping[str, QueryResult]) -> dict[str, JsonValue]:
    """What each workspace read a name as; nothing where none had to look one up."""
    told: dict[str, JsonValue] = {}
    for name, answer in answers.items():
        read = answer.summary.get("names")
        told |= {f"{name}: {what}": each for what, each in read.items()} if isinstance(read, Mapping) else {}
    return {"names": told} if told else {}


def _names_all(answer: QueryResult) -> bool:
    names, severities = answer.summary.get("by_name"), answer.summary.get("by_severity")
    if not isinstance(names, Mapping) or not isinstance(severities, Mapping):
        return False
    return sum(map(_count, names.values())) == sum(map(_count, severities.values()))


def _count(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
