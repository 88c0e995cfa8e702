"""Results of the tools for the benchmark of grounding: scripted, from the embedded sample estate, and from real rows.

The last two come through the client that the product uses, from a workspace server on loopback.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import anyio

from bench.lying_model import Estate
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.small_estate import small_estate

SIGN_INS = (
    ("m.keller", 42), ("ines.duarte@contoso.example", 17), ("svc-backup", 128), ("j.okafor@contoso.example", 5),
    ("adele.vance@contoso.example", 64),
)  # fmt: skip


def scripted(zone: str = "UTC") -> Estate:
    """The small estate of `sentinel_rag.testing`."""
    return anyio.run(estate, small_estate(), "scripted", zone, 2)


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
