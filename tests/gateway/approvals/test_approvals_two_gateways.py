"""Two gateway processes on one state folder: an approval asked at one and given at the other is used once."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server

from sentinel_rag_testing.fake_tool_server import FakeToolServer
from waiting import WAIT_S

RACERS = 20


class Process:
    """One of the gateways, over HTTP."""

    def __init__(self, told: dict[str, str]) -> None:
        self.told = told

    def post(self, path: str, body: Any, *, key: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.told["url"].removeprefix("http://"), timeout=WAIT_S)
        try:
            headers = {"Content-Type": "application/json", "X-API-Key": key}
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def call(self, arguments: dict[str, str], *, key: str, tool: str = "disable_account") -> tuple[int, Any]:
        body = {"session_id": "shared", "tool_name": tool, "args": arguments}
        return self.post("/v1/proxy-execute", body, key=key)


@contextmanager
def gateway_process(folder: Path, executor: FakeToolServer) -> Iterator[Process]:
    script = str(Path(__file__).with_name("serving_gateway.py"))
    with fork_server.Process(
        [sys.executable, script, str(folder), executor.url, str(executor.token)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield Process(json.loads(process.stdout.readline()))
        finally:
            process.communicate(timeout=WAIT_S)


@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-3")
def test_two_gateways_let_one_of_twenty_racing_retries_run(executor: FakeToolServer, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with ExitStack() as stack:
        one, other = (stack.enter_context(gateway_process(folder, executor)) for _ in range(2))
        key, approver = one.told["key"], other.told["approver"]
        assert one.call({}, key=key, tool="read_mail")[0] == 200  # as high as the labels of this session can go
        for number in range(5):
            arguments = {"account": f"account-{number}"}
            (_, asked), (_, again) = one.call(arguments, key=key), other.call(arguments, key=key)
            assert asked["reason"] == again["reason"] == "approval_required"
            assert asked["approval_id"] == again["approval_id"]
            status, decided = other.post(f"/v1/approvals/{asked['approval_id']}/approve", {}, key=approver)
            assert (status, decided["state"]) == (200, "approved")
            status, refused = one.post(f"/v1/approvals/{asked['approval_id']}/deny", {}, key=approver)
            assert (status, refused["reason"]) == (409, "approval_decided")
            start = threading.Barrier(RACERS)

            def race(
                process: Process, start: threading.Barrier = start, arguments: dict[str, str] = arguments
            ) -> tuple[int, Any]:
                start.wait()
                return process.call(arguments, key=key)

            with ThreadPoolExecutor(RACERS) as pool:
                futures = [pool.submit(race, process) for process in [one, other] * (RACERS // 2)]
                answers = [future.result() for future in futures]
            assert sorted(status for status, _ in answers) == [200] + [403] * (RACERS - 1)
            assert len({body["approval_id"] for status, body in answers if status == 403}) == 1
            assert [call.arguments for call in executor.calls[1:]] == [
                {"account": f"account-{done}"} for done in range(number + 1)
            ]
