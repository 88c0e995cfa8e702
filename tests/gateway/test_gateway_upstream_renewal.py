"""A token that has expired: what is told, and that a newer one in `.env` or a file is taken without a restart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sentinel_rag.app.tool_servers import ToolServers, tool_server_configuration
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import Returned, Unanswered, Upstream, UpstreamCall, UpstreamReply
from sentinel_rag.settings import load_settings
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

VARIABLE = "SENTINEL_UPSTREAM_TICKETS"
OLD, NEW = "old-token-of-the-test", "new-token-of-the-test"
POLICY = """
servers:
  - {{name: tickets, url: "{url}", token_variable: SENTINEL_UPSTREAM_TICKETS}}
tools:
  - name: search_tickets
    server: tickets
    effect: read
    parameters: [{{name: text, type: string, required: true}}]
    taint_rules: [{{rule_id: search_tickets_any, condition: "true", taint_level: MEDIUM}}]
"""


def tickets(folder: Path, server: FakeToolServer, environment: Mapping[str, str]) -> Upstream:
    """The upstream as a start of the product makes it from settings and policy."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(url=server.url), encoding="utf-8")
    settings = load_settings({"SENTINEL_HOME": str(folder), **environment}, folder / ".env")
    servers = ToolServers(**tool_server_configuration(settings))
    return servers.upstreams(load_policy(policy))["tickets"]


async def asked(upstream: Upstream) -> UpstreamReply:
    arguments = CanonicalArguments.of({"text": "x"})
    return await upstream.call(
        UpstreamCall(tool="search_tickets", arguments=arguments, principal="key", session_id="one", timeout_s=WAIT_S)
    )


@pytest.mark.parametrize("place", [".env", "file"])
async def test_a_new_token_is_taken_without_a_restart(tmp_path: Path, place: str) -> None:
    holder, environment = tmp_path / ".env", {}
    form = f"{VARIABLE}={{}}\n"
    if place == "file":
        holder, form = tmp_path / "token", "{}\n"
        environment = {f"{VARIABLE}_FILE": str(holder)}
    holder.write_text(form.format(OLD))
    with FakeToolServer(token=OLD).running() as server:
        upstream = tickets(tmp_path, server, environment)
        try:
            assert isinstance(await asked(upstream), Returned)
            server.token = NEW
            refused = await asked(upstream)
            assert isinstance(refused, Unanswered)
            assert (refused.error.code, refused.error.retry_possible) == (QueryErrorCode.ACCESS_DENIED, False)
            assert refused.error.message == (
                "The tool server does not accept the gateway's credential (SENTINEL_UPSTREAM_TICKETS, HTTP 401): "
                "it may have expired."
            )
            assert "taken with the next call" in refused.error.next_step
            assert not refused.may_have_run
            with pytest.raises(UnavailableError, match=VARIABLE):
                await upstream.list_tools(timeout_s=WAIT_S)
            holder.write_text(form.format(NEW))
            assert isinstance(await asked(upstream), Returned)
            assert await upstream.list_tools(timeout_s=WAIT_S)
            assert len(server.calls) == 2  # a call that was refused did not run
        finally:
            await upstream.aclose()


async def test_a_token_of_the_process_environment_needs_a_new_start(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{VARIABLE}={NEW}\n")
    with FakeToolServer(token=NEW).running() as server:
        upstream = tickets(tmp_path, server, {VARIABLE: OLD})
        try:
            refused = await asked(upstream)
        finally:
            await upstream.aclose()
    assert isinstance(refused, Unanswered)
    assert refused.error.next_step == f"Have the operator set {VARIABLE} anew and start again."
    assert not server.calls


async def test_a_file_that_cannot_be_read_is_told_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings({f"{VARIABLE}_FILE": str(tmp_path / "none")}, tmp_path / ".env")
    assert f"{VARIABLE}_FILE" in str(caught.value.problems)
