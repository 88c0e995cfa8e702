"""The tools that read and change Sentinel, one async function each, over named workspaces.

`SentinelService` checks the arguments and hands them to the module of the tool; what goes wrong comes out as a
`QueryError` value, never as an exception. Above lies the tool server, which puts results on MCP.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import Column, QueryError, QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import (
    ALL_WORKSPACES,
    ALL_WORKSPACES_TOOLS,
    OPT_IN_TOOLS,
    PREVIEW_TOOL,
    PREVIEW_TOOLS,
    SENTINEL_TOOLS,
    WRITING_TOOLS,
    canonical_tool_name,
)
from sentinel_rag.sentinel.alert_events import AlertEvents
from sentinel_rag.sentinel.alert_list import query_alerts
from sentinel_rag.sentinel.alert_trend import get_alert_trend
from sentinel_rag.sentinel.all_workspaces import LONGEST_WAIT_S, ask_every_workspace
from sentinel_rag.sentinel.arguments import checked_arguments, nearest_hint
from sentinel_rag.sentinel.failures import QueryFailedError, invalid_argument
from sentinel_rag.sentinel.incident_comment import add_incident_comment
from sentinel_rag.sentinel.incident_detail import get_incident_detail
from sentinel_rag.sentinel.incident_list import query_incidents
from sentinel_rag.sentinel.incident_update import preview_incident_change, update_incident
from sentinel_rag.sentinel.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.log_search import search_logs
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.results import told_result
from sentinel_rag.sentinel.table_columns import describe_table
from sentinel_rag.sentinel.table_statistics import TableStatisticsReader
from sentinel_rag.sentinel.template_queries import TemplateTools
from sentinel_rag.sentinel.template_registry import KqlTemplate, load_templates
from sentinel_rag.sentinel.threat_summary import get_threat_summary
from sentinel_rag.sentinel.top_entities import get_top_entities
from sentinel_rag.sentinel.workspace_schema import WorkspaceSchema
from sentinel_rag.sentinel.workspace_tables import list_tables
from sentinel_rag.sentinel.workspace_view import WorkspaceView

if TYPE_CHECKING:
    from sentinel_rag.sentinel.freeform_query import FreeformQueries

_SERVED = (*SENTINEL_TOOLS, *PREVIEW_TOOLS)
_LOG = logging.getLogger(__name__)

ToolHandler = Callable[[WorkspaceView, Mapping[str, Any]], Awaitable[QueryResult]]


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
        self._handlers: dict[str, ToolHandler] = {
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
            if len(views) == 1:
                return await handler(views[0], checked)
            return await ask_every_workspace(handler, views, checked, longest_wait_s=self._longest_wait_s)
        except QueryFailedError as failure:
            return self._placed(failure.error, views)
        except Exception:  # one tool's fault must not end the server or reach the caller as a traceback
            return _internal_error(name)

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


def _internal_error(tool: str) -> QueryError:
    """A fault of ours: the trace goes to the log under an id, the caller gets the id and nothing of the data."""
    fault = uuid4().hex[:8]
    _LOG.exception("internal error %s in %s", fault, tool)
    return QueryError(
        code=QueryErrorCode.INTERNAL,
        message=f"{tool} failed for a reason that is our fault (error {fault}).",
        next_step=f"Report it with the line 'internal error {fault}' of the tool server's log.",
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
    return told_result(_COLUMNS, rows, workspace="", summary={"workspaces": len(rows), "default": next(iter(views))})
