"""The tools that read and change Sentinel, one async function each, over named workspaces.

`SentinelService` checks the arguments and hands them to the module of the tool; what goes wrong comes out as a
`QueryError` value, never as an exception. Above lies the tool server, which puts results on MCP.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import (
    Column,
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    QueryResult,
    internal_error,
    invalid_argument,
    parse_time,
)
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import (
    ALL_WORKSPACES,
    ALL_WORKSPACES_TOOLS,
    OPT_IN_TOOLS,
    PREVIEW_TOOL,
    PREVIEW_TOOLS,
    SENTINEL_TOOLS,
    SEVERITIES,
    WRITING_TOOLS,
    canonical_tool_name,
)
from sentinel_rag.language.notes import in_workspace
from sentinel_rag.sentinel.alert_events import AlertEvents
from sentinel_rag.sentinel.alert_list import query_alerts
from sentinel_rag.sentinel.alerts.alert_trend import get_alert_trend
from sentinel_rag.sentinel.arguments import checked_arguments, nearest_hint
from sentinel_rag.sentinel.incidents.incident_detail import get_incident_detail
from sentinel_rag.sentinel.incidents.incident_list import query_incidents
from sentinel_rag.sentinel.incidents.incident_update import (
    add_incident_comment,
    preview_incident_change,
    update_incident,
)
from sentinel_rag.sentinel.logs.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.templates.template_queries import TemplateTools
from sentinel_rag.sentinel.templates.template_registry import KqlTemplate, load_templates
from sentinel_rag.sentinel.threat_summary import get_threat_summary, get_top_entities
from sentinel_rag.sentinel.workspace_tables import describe_table, list_tables, search_logs
from sentinel_rag.sentinel.workspace_view import TableStatisticsReader, WorkspaceSchema, WorkspaceView, told_result

if TYPE_CHECKING:
    from sentinel_rag.sentinel.freeform_query import FreeformQueries


# A workspace that gives no answer in time, or an error, makes the result partial and stops no other; only when none
# answers is there no result. Which tools can be asked so, `contracts.tool_schemas` says.
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
                answers[name] = await _answered(handler, view, wanted)
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


async def _answered(handler: Handler, view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """The handler's answer, with the workspace that it is of and the milliseconds that it took."""
    began = time.perf_counter()
    result = await handler(view, arguments)
    spent = round((time.perf_counter() - began) * 1000, 3)
    return replace(result, coverage=replace(result.coverage, workspace=view.logs.name, duration_ms=spent))


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
    notes = [in_workspace(each, name) for name, answer in answers.items() for each in answer.notes]
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


_LOG = logging.getLogger(__name__)
_SERVED = (*SENTINEL_TOOLS, *PREVIEW_TOOLS)


class SentinelService:
    """Answers the tools of `contracts.SENTINEL_TOOLS` from the workspace that a call names, else from the default one
    of `workspaces` (the first unless `default` names it). `longest_wait_s` bounds each one's part in a call to all.

    `rest` is the way to change a workspace, by the same names; a workspace that is not in it is read only. `templates`
    are the shipped ones unless given; without `freeform` no KQL of a caller's own is run; `alert_events` runs the
    queries that alerts hold. Raises ConfigurationError if there is no workspace, `default` is none of them, or a
    template file is faulty.
    """

    def __init__(
        self,
        workspaces: Mapping[str, LogsWorkspace],
        *,
        default: str | None = None,
        rest: Mapping[str, SentinelRest] | None = None,
        clock: Clock = utc_now,
        templates: Mapping[str, KqlTemplate] | None = None,
        longest_wait_s: float = LONGEST_WAIT_S,
        freeform: FreeformQueries | None = None,
        alert_events: AlertEvents | None = None,
    ) -> None:
        if not workspaces:
            raise ConfigurationError(
                "No workspace is configured.", next_step="Name at least one Log Analytics workspace."
            )
        chosen = next(iter(workspaces)) if default is None else default
        if chosen not in workspaces:
            raise ConfigurationError(
                f"The default workspace {chosen!r} is not configured.",
                next_step=f"Use one of: {', '.join(workspaces)}.",
            )
        self._views = {
            name: WorkspaceView(
                workspace,
                TableStatisticsReader(workspace),
                WorkspaceSchema(workspace),
                clock,
                (rest or {}).get(name),
            )
            for name, workspace in sorted(workspaces.items(), key=lambda item: item[0] != chosen)
        }
        self._longest_wait_s = longest_wait_s
        self._freeform = freeform
        template_tools = TemplateTools(load_templates() if templates is None else templates)
        self._alert_events = alert_events or AlertEvents()
        self._handlers: dict[str, Handler] = {
            "query_incidents": query_incidents,
            "get_incident_detail": get_incident_detail,
            "query_alerts": query_alerts,
            "get_alert_events": self._alert_events.get_alert_events,
            "get_alert_trend": get_alert_trend,
            "get_top_entities": get_top_entities,
            "get_threat_summary": get_threat_summary,
            "run_kql_query": template_tools.run_kql_query,
            "list_kql_templates": template_tools.list_kql_templates,
            "list_tables": list_tables,
            "search_logs": search_logs,
            "list_workspaces": self._list_workspaces,
            "describe_table": describe_table,
            **({} if freeform is None else {"run_freeform_kql": freeform.run_freeform_kql}),
            "add_incident_comment": add_incident_comment,
            "update_incident": update_incident,
            PREVIEW_TOOL: preview_incident_change,
        }

    @property
    def tools(self) -> tuple[ToolSchema, ...]:
        """The tools that can be called here."""
        return tuple(tool for tool in _SERVED if tool.name in self._handlers)

    async def close(self) -> None:
        """Close the connections of the workspaces; those to Log Analytics last, for they own the credential."""
        if self._freeform is not None:
            await self._freeform.close()
        await self._alert_events.close()
        for connection_to_rest in {view.rest.connection for view in self._views.values() if view.rest is not None}:
            await connection_to_rest.close()
        for connection in {view.logs.connection for view in self._views.values()}:
            await connection.close()

    async def call(self, tool_name: str, arguments: Mapping[str, Any]) -> QueryResult | QueryError:
        """Run a tool by its name or an alias of it. Never raises for a bad argument or a failing workspace."""
        name = canonical_tool_name(tool_name)
        handler = self._handlers.get(name)
        if handler is None:
            return _no_tool(tool_name, tuple(known for known in self._handlers if known != PREVIEW_TOOL))
        views: Sequence[WorkspaceView] = ()
        try:
            checked = self._checked(name, arguments)
            views = chosen_views(self._views, name, checked.pop("workspace", None))
            if handler == self._list_workspaces:
                return await handler(views[0], checked)
            if len(views) == 1:
                return await _answered(handler, views[0], checked)
            return await ask_every_workspace(handler, views, checked, longest_wait_s=self._longest_wait_s)
        except QueryFailedError as failure:
            return self._placed(failure.error, views)
        except Exception:  # one tool's fault must not end the server or reach the caller as a traceback
            return internal_error(name, _LOG)

    def _checked(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        workspace = arguments.get("workspace")
        if isinstance(workspace, str) and workspace != workspace.strip():
            raise invalid_argument("workspace", "workspace has blanks around it.", allowed=tuple(self._views))
        return checked_arguments(next(tool for tool in _SERVED if tool.name == name), arguments)

    def _placed(self, error: QueryError, views: Sequence[WorkspaceView]) -> QueryError:
        """The error with the workspace that it is of, where there is more than one."""
        if len(self._views) == 1 or len(views) != 1 or error.code is QueryErrorCode.INVALID_ARGUMENT:
            return error
        return replace(error, message=f"Workspace {views[0].logs.name}: {error.message}")

    async def _list_workspaces(self, _: WorkspaceView, __: Mapping[str, Any]) -> QueryResult:
        return list_workspaces(self._views)


def _no_tool(name: str, known: tuple[str, ...]) -> QueryError:
    if name in OPT_IN_TOOLS:
        message = f"{name} is switched off here: only named templates run."
        next_step = "Use run_kql_query, or have the operator opt in (SENTINEL_FREEFORM_KQL=on)."
    else:
        message, next_step = f"There is no tool {name!r}.", f"Use one of: {', '.join(known)}."
    return QueryError(
        code=QueryErrorCode.INVALID_ARGUMENT, message=message, next_step=next_step, field="tool_name", allowed=known
    )


# Which workspace a call is for, by its name; and the tool list_workspaces, which tells the names.
#
# Names are compared exactly: a policy's rule has judged the text as it stands, so no other spelling may mean the same.


Views = Mapping[str, WorkspaceView]
"""Every workspace by name, the default one first."""

_COLUMNS = (Column("name", "string"), Column("default", "bool"), Column("changes", "bool"))


def chosen_views(views: Views, tool: str, given: Any) -> tuple[WorkspaceView, ...]:
    """The workspaces that `tool` is to ask: one, or all of them where `given` says so.

    Raises QueryFailedError INVALID_ARGUMENT: an unknown name, `all` for a tool that asks one, or a change without a
    name where there are several workspaces, whose incident numbers repeat.
    """
    known = tuple(views)
    if given in (None, ""):
        if tool in (*WRITING_TOOLS, PREVIEW_TOOL) and len(known) > 1:
            raise invalid_argument(
                "workspace",
                f"{tool} needs workspace: there are several, and incident numbers repeat between them.",
                allowed=known,
            )
        return (views[known[0]],)
    if given in views:
        return (views[given],)
    if given != ALL_WORKSPACES:
        raise invalid_argument(
            "workspace", f"There is no workspace {given!r}.{nearest_hint(str(given), known)}", allowed=known
        )
    if tool not in ALL_WORKSPACES_TOOLS:
        raise invalid_argument("workspace", f"{tool} asks one workspace at a time.", allowed=known)
    return tuple(views.values())


def list_workspaces(views: Views) -> QueryResult:
    """One row for each workspace; none of them is asked."""
    rows: list[dict[str, JsonValue]] = [
        {"name": name, "default": place == 0, "changes": view.rest is not None}
        for place, (name, view) in enumerate(views.items())
    ]
    return told_result(_COLUMNS, rows, summary={"workspaces": len(rows), "default": next(iter(views))})
