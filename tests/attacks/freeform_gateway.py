"""The whole way of a freeform query: a gateway with the shipped policy, the Sentinel tool server with its guard, and an
embedded workspace, each on a socket of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.freeform_query import FreeformQueries
from sentinel_rag.sentinel.kql_guard import KqlGuard, OfficialParser
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.tools.sentinel import create_app
from sentinel_rag.workspace.server import create_app as workspace_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY_FILE = Path(__file__).resolve().parents[2] / "config" / "sentinel_config.yaml"
WORKSPACE_ID = "5b1f1ae4-5a3c-4c7e-9d2a-3b8b6f1f0d12"
RATE = "rate: {calls: 30, seconds: 60}"
TOKEN = "executor-token-of-the-tests"
NOW = datetime(2024, 8, 3, tzinfo=UTC)


@dataclass(frozen=True)
class FreeformWay:
    """`ask` sends a query as an agent does."""

    gateway: RunningGateway
    workspace: Workspace

    def ask(self, kql: Any, *, session_id: str = "session-1", **arguments: Any) -> HttpAnswer:
        return self.gateway.call("run_freeform_kql", {"kql": kql, **arguments}, session_id=session_id)

    def offered(self) -> set[str]:
        tools = self.gateway.request("GET", "/v1/tools", key=self.gateway.key).body["tools"]
        return {tool["name"] for tool in tools}

    def call_records(self, audit_id: str) -> list[dict[str, Any]]:
        return [record for record in self.gateway.records() if record.get("audit_id") == audit_id]


@contextmanager
def freeform_way(
    folder: Path,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    parser: OfficialParser | None,
    on: bool = True,
    tables: frozenset[str] | None = None,
    wait_s: int = 50,
    rated: bool = False,
) -> Iterator[FreeformWay]:
    """Everything between a call and `rows`; with `on=False` as it is where the operator has not opted in. Only a way
    that is `rated` keeps the shipped policy's rate of the tool, which hundreds of tests would exceed."""
    with ExitStack() as stack:
        workspace = Workspace.open(folder / "workspace")
        stack.callback(workspace.close)
        for table, written in rows.items():
            file = folder / f"{table}.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in written), encoding="utf-8")
            workspace.import_path(file, table=table)
        url = stack.enter_context(
            serve(
                workspace_app(
                    workspace, workspace_id=WORKSPACE_ID, identity_header="identity-header", admin_token="admin-token"
                )
            )
        )
        credential = IdentityEndpointCredential(f"{url}/msi/token", "identity-header")
        logs = LogAnalytics(credential, endpoint=url, first_retry_delay_s=0.001)
        freeform = FreeformQueries(KqlGuard(parser), allowed_tables=tables, wait_s=wait_s) if on else None
        service = SentinelService({"lab": logs.workspace("lab", WORKSPACE_ID)}, clock=lambda: NOW, freeform=freeform)
        executor_url = stack.enter_context(serve(create_app(service, token=TOKEN)))
        upstream = McpHttpUpstream(f"{executor_url}/mcp", token=TOKEN, is_ours=True)
        policy_file = folder / "policy.yaml"
        text = POLICY_FILE.read_text()
        assert RATE in text
        policy_file.write_text(text if rated else text.replace(RATE, "rate: {calls: 100000, seconds: 60}"))
        policy = load_policy(policy_file)
        gateway = stack.enter_context(
            running_gateway(
                policy,
                folder / "state",
                FakeToolServer(token="not-used"),
                upstreams=dict.fromkeys(policy.servers(), upstream),
                switched_off=() if on else OPT_IN_TOOLS,
            )
        )
        yield FreeformWay(gateway, workspace)
