"""Results of the tools for the benchmark of grounding: scripted, from the embedded sample estate, and from real rows.

The last two come through the client that the product uses, from a workspace server on loopback.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio

from bench.workspace_process import IDENTITY_HEADER, WORKSPACE_ID, workspace_process
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.contracts.tool_calls import Failed, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.testing.lying_model import Estate
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.small_estate import small_estate
from sentinel_rag.workspace.estate.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

SIGN_INS = (
    ("m.keller", 42), ("ines.duarte@contoso.example", 17), ("svc-backup", 128), ("j.okafor@contoso.example", 5),
    ("adele.vance@contoso.example", 64),
)  # fmt: skip


def scripted(zone: str = "UTC") -> Estate:
    """The small estate of `sentinel_rag.testing`."""
    return anyio.run(estate, small_estate(), "scripted", zone, 2)


class ServiceGateway:
    """The tools without a gateway in front of them: what is measured is the check of an answer, not a policy."""

    def __init__(self, service: SentinelService) -> None:
        self._service = service

    async def execute(self, call: ToolCall) -> ToolOutcome:
        result = await self._service.call(call.tool_name, call.arguments)
        return Failed(call, result) if isinstance(result, QueryError) else Succeeded(call, result)

    async def offered_tools(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self._service.tools)


SAMPLE_END = datetime(2024, 7, 23, 12, tzinfo=UTC)


def sample(zone: str) -> Estate:
    """The sample estate that the product ships, three weeks of it."""
    return _served("sample", zone, lambda workspace: workspace.generate(EstateOptions(21, 3_000, end=SAMPLE_END)))


def real(zone: str, folder: Path) -> Estate:
    """Alerts and incidents of a real tenant, imported from an export in `folder`."""

    def fill(workspace: Workspace) -> None:
        for name in ("extracted_alerts.csv", "extracted_incidents.csv"):
            workspace.import_path(folder / name)

    return _served("real rows", zone, fill)


def _served(name: str, zone: str, fill: Callable[[Workspace], object]) -> Estate:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "workspace"
        workspace = Workspace.open(folder)
        fill(workspace)
        workspace.close()
        with workspace_process(folder) as server:
            return anyio.run(_asked, server.url, name, zone)


async def _asked(url: str, name: str, zone: str) -> Estate:
    credential = IdentityEndpointCredential(f"{url}/msi/token", IDENTITY_HEADER)
    async with LogAnalytics(credential, endpoint=url) as connection:
        service = SentinelService({name: connection.workspace(name, WORKSPACE_ID)})
        return await estate(ServiceGateway(service), name, zone, 4)


async def estate(gateway: ToolGateway, name: str, zone: str, details: int) -> Estate:
    """What a conversation about everything would have read."""
    calls = 0

    async def run(tool: str, **arguments: Any) -> ToolRun:
        nonlocal calls
        calls += 1
        call = ToolCall(f"c{calls}", "bench", tool, arguments)
        outcome = await gateway.execute(call)
        assert isinstance(outcome, Succeeded), outcome
        return ToolRun(call, outcome)

    incidents = await run("query_incidents", limit=100)
    with_alerts = [row for row in incidents.rows if int(row["alert_count"] or 0) > 1]  # type: ignore[call-overload]
    chosen = [
        await run("get_incident_detail", incident=str(row["number"]), detail="full") for row in with_alerts[:details]
    ]
    return Estate(
        name=name,
        zone=ZoneInfo(zone),
        incidents=incidents,
        details=[each for each in chosen if each.rows[0]["alerts"]],
        alerts=await run("query_alerts", limit=100),
        accounts=await run("get_top_entities", kind="account", limit=20),
        trend=await run("get_alert_trend", interval="1d"),
        rows=_sign_ins(),
    )


def _sign_ins() -> ToolRun:
    call = ToolCall("k1", "bench", "run_kql_query", {"template": "failed_signins_by_account"})
    rows = [{"Account": account, "FailedSignIns": count} for account, count in SIGN_INS]
    return ToolRun(call, Succeeded(call, rows_result(rows, table="SigninLogs")))
