"""A gateway that is killed between the record of a call and its dispatch: `python dying_gateway.py FOLDER`.

It asks, approves and retries by itself, so that the kill meets a call that spends an approval.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from approval_policy import DISABLE, ask, policy

from sentinel_rag.gateway.upstream import UpstreamCall, UpstreamReply, UpstreamTool
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway


class KilledBeforeSending:
    """The upstream of a process that ends for certain before a byte is sent."""

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        print("dispatch", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        return ()

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        return None

    async def end_session(self, *, principal: str, session_id: str) -> None:
        return None

    async def aclose(self) -> None:
        return None


def main() -> None:
    upstreams = {"sentinel": KilledBeforeSending()}
    with running_gateway(policy(), Path(sys.argv[1]), FakeToolServer(), upstreams=upstreams) as gateway:
        approval_id = ask(gateway)
        gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=gateway.approver)
        print(approval_id, gateway.key, flush=True)
        gateway.call("disable_account", DISABLE)


if __name__ == "__main__":
    main()
