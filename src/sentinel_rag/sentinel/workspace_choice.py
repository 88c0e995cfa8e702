"""Which workspace a call is for, by its name; and the tool list_workspaces, which tells the names.

Names are compared exactly: a policy's rule has judged the text as it stands, so no other spelling may mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, QueryResult
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES, ALL_WORKSPACES_TOOLS, WRITING_TOOLS
from sentinel_rag.sentinel.arguments import nearest_hint
from sentinel_rag.sentinel.failures import invalid_argument
from sentinel_rag.sentinel.results import told_result
from sentinel_rag.sentinel.workspace_view import WorkspaceView

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
        if tool in WRITING_TOOLS and len(known) > 1:
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
