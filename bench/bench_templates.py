"""Every template and every reading tool over a month of a mid-sized company, through the real server and client.

Six million rows, a million of them SecurityEvent, a hundred thousand alerts with entities, twenty thousand versions of
incidents (`volume_estate`). Each question is asked as the tool server asks it, over all thirty days; the first time,
which includes the translation of its text, stands beside the median of the next five.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.harness import write
from bench.volume_columns import END
from bench.volume_estate import ROWS, build
from bench.workspace_process import IDENTITY_HEADER, WORKSPACE_ID, WorkspaceProcess, workspace_process
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.sentinel.templates.template_registry import load_templates

RUNS = 5
SLOW_S = 1.0
WITHOUT_WINDOW = ("list_tables", "get_incident_detail")

VALUES = {
    "account": "user0003",
    "user": "user0003@contoso.example",
    "host": "wks-0003",
    "domain": "example3.com",
    "sender": "example3.net",
    "destination": "203.3.3.3",
    "ip": "198.51.100.7",
    "process": "powershell.exe",
    "indicator": "203.3.3.3",
    "url_contains": "site42",
}
"""A value that finds rows, for each parameter that must have one."""

TOOLS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("query_incidents", "query_incidents", {"min_severity": "Medium", "limit": 100}),
    ("query_incidents words", "query_incidents", {"title_contains": "kind 7", "limit": 20}),
    ("get_incident_detail", "get_incident_detail", {"incident": "3000"}),
    ("query_alerts", "query_alerts", {"min_severity": "Medium", "limit": 100}),
    ("query_alerts entity", "query_alerts", {"entity": "user0003@contoso.example", "limit": 20}),
    ("get_alert_trend", "get_alert_trend", {}),
    ("get_top_entities account", "get_top_entities", {"kind": "account", "limit": 20}),
    ("get_top_entities ip", "get_top_entities", {"kind": "ip", "limit": 20}),
    ("get_threat_summary", "get_threat_summary", {}),
    ("list_tables", "list_tables", {}),
)


def questions() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, tool and arguments of everything that is asked."""
    asked = []
    for template in load_templates().values():
        parameters = {parameter.name: VALUES[parameter.name] for parameter in template.parameters if parameter.required}
        asked.append((template.name, "run_kql_query", {"template": template.name, "parameters": parameters}))
    asked += [(name, tool, dict(arguments)) for name, tool, arguments in TOOLS]
    return [
        (name, tool, arguments if tool in WITHOUT_WINDOW else {**arguments, "time_window": "last_30d"})
        for name, tool, arguments in asked
    ]


async def ask(server: WorkspaceProcess, tool: str, arguments: dict[str, Any]) -> tuple[float, int]:
    """Seconds and rows of one call, with a connection and memory of its own so that nothing is remembered."""
    credential = IdentityEndpointCredential(f"{server.url}/msi/token", IDENTITY_HEADER)
    async with LogAnalytics(credential, endpoint=server.url) as connection:
        service = SentinelService({"bench": connection.workspace("bench", WORKSPACE_ID)}, clock=lambda: END)
        started = perf_counter()
        outcome = await service.call(tool, arguments)
        spent = perf_counter() - started
    assert not isinstance(outcome, QueryError), (tool, arguments, outcome)
    return spent, len(outcome.rows)


async def measure(server: WorkspaceProcess) -> dict[str, Any]:
    """Seconds of each question, and the processor seconds that the server spent on one run of it."""
    measured: dict[str, Any] = {}
    for name, tool, arguments in questions():
        first, rows = await ask(server, tool, arguments)
        before = server.usage().cpu_s
        spent = [(await ask(server, tool, arguments))[0] for _ in range(RUNS)]
        used = server.usage()
        measured[name] = {
            "median_s": round(statistics.median(spent), 3),
            "first_s": round(first, 3),
            "server_cpu_s": round((used.cpu_s - before) / RUNS, 3),
            "rows": rows,
            "peak_mib": used.peak_mib,
        }
        print(f"{name:45} {measured[name]}", flush=True)
    return measured


def main() -> None:
    kept = os.environ.get("SENTINEL_BENCH_WORKSPACE")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(kept or temporary) / "workspace"
        built = None if folder.exists() else build(folder)
        with workspace_process(folder) as server:
            asked = asyncio.run(measure(server))
            peak = server.usage().peak_mib
        write(
            "templates",
            {
                "table_rows": ROWS,
                "import": None if built is None else {"rows": built.rows, "seconds": built.import_s},
                "open_s": server.open_s,
                "server_peak_mib": peak,
                "slower_than_1_s": {name: one["median_s"] for name, one in asked.items() if one["median_s"] >= SLOW_S},
                "questions": asked,
            },
            claim="Each of the templates and tools answers in under a second on two cores over a million SecurityEvent "
            "rows and five million others",
        )


if __name__ == "__main__":
    main()
