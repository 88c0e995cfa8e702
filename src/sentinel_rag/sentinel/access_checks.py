"""Whether an identity can do what the tools do, found out by reading: one check for each right, nothing is changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.query_results import QueryFailedError, format_time
from sentinel_rag.sentinel.incidents.incidents import INCIDENT_TABLE
from sentinel_rag.sentinel.logs.log_analytics import LogsWorkspace
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.rest.incident_client import UPDATE_INCIDENTS, WRITE_COMMENTS


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """One right by name. `next_step` is what to do; empty where nothing is wrong."""

    name: str
    ok: bool
    detail: str
    next_step: str = ""


async def check_access(logs: LogsWorkspace, rest: SentinelRest | None) -> tuple[AccessCheck, ...]:
    """Every check of one workspace, in the order in which a person would mend things. Never raises."""
    checks = [
        await _checked("query logs", lambda: _queries(logs)),
        await _checked("incidents in the log", lambda: _incident_table(logs)),
    ]
    if rest is None:
        checks.append(
            AccessCheck(
                "change incidents",
                False,
                "SENTINEL_WORKSPACE_RESOURCE_ID is not set for this workspace: it is read only.",
                "Set it to the Resource ID of the workspace's properties page, if incidents are to be changed.",
            )
        )
        return tuple(checks)
    checks.append(await _checked("read incidents", lambda: _incidents(rest)))
    checks.append(await _checked("change incidents", lambda: _changes(rest)))
    return tuple(checks)


async def _checked(name: str, check: Callable[[], Awaitable[AccessCheck]]) -> AccessCheck:
    try:
        return await check()
    except QueryFailedError as failure:
        return AccessCheck(name, False, failure.error.message, failure.error.next_step)


async def _queries(logs: LogsWorkspace) -> AccessCheck:
    await logs.query("print Ready = 1")
    return AccessCheck("query logs", True, f"workspace {logs.workspace_id} answers queries")


async def _incident_table(logs: LogsWorkspace) -> AccessCheck:
    answer = await logs.query(f"{INCIDENT_TABLE} | summarize Rows = count(), Newest = max(TimeGenerated)")
    row: Mapping[str, Any] = next(answer.records(), {"Rows": 0, "Newest": None})
    if not row["Rows"]:
        step = "If there should be incidents, check that Microsoft Sentinel is enabled on this workspace."
        return AccessCheck("incidents in the log", True, f"{INCIDENT_TABLE} holds no rows", step)
    newest = "unknown time" if row["Newest"] is None else format_time(row["Newest"].replace(microsecond=0))
    return AccessCheck("incidents in the log", True, f"{row['Rows']} rows, the newest of {newest}")


async def _incidents(rest: SentinelRest) -> AccessCheck:
    found = await rest.list_incidents(limit=1)
    detail = "Sentinel's REST API answers" if found else "Sentinel's REST API answers; it has no incidents"
    return AccessCheck("read incidents", True, detail)


async def _changes(rest: SentinelRest) -> AccessCheck:
    permissions = await rest.permissions()
    missing = [action for action in (UPDATE_INCIDENTS, WRITE_COMMENTS) if not permissions.allows(action)]
    if not missing:
        return AccessCheck("change incidents", True, "allowed, each call after approval")
    return AccessCheck(
        "change incidents",
        False,
        f"not allowed: {', '.join(missing)}",
        "Give the identity the role Microsoft Sentinel Responder, if incidents are to be changed.",
    )
