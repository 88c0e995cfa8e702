"""Ctrl-C through real processes: amid an answer that is being written, and amid a tool call at the gateway."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from sentinel_rag_testing.scripted_model import ModelHttpRequest, Reply, ScriptedModel, calls_reply, stream_reply
from sentinel_rag_testing.scripted_model.replies import Hang, chunk
from waiting import WAIT_S

pytestmark = [pytest.mark.requirement("CHAT-14"), pytest.mark.requirement("SURF-1")]
MOST_LOOKS = 60
"""At the audit, whose record follows the end of a connection; each look is a process of its own."""


def begins(request: ModelHttpRequest) -> Reply:
    """Asks for the incidents, says a line of two sentences of what came, begins another and falls silent."""
    messages = request.body["messages"]
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    results = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
    if not results:
        return calls_reply(("query_incidents", {"order": "newest", "limit": 3}), first=len(messages))
    row = next(line for line in results[0].splitlines() if line.startswith("[c1.1]"))
    number = row.removeprefix("[c1.1]").split("|")[0].strip()
    said = f"Incident {number} is the newest [c1.1]. Incident 4711 is Low [c1.2].\n\nIt was"
    return stream_reply(*(chunk({"content": said[at : at + 4]}) for at in range(0, len(said), 4)), Hang())


@pytest.fixture
def home(generated: Any, tmp_path: Path) -> Iterator[Any]:
    with ScriptedModel(respond=begins).running() as url:
        product = generated.afresh(tmp_path / "home")
        product.settings.update(
            SENTINEL_MODEL="openai-compatible", SENTINEL_MODEL_URL=f"{url}/v1", SENTINEL_MODEL_NAME="scripted"
        )
        yield product


class Terminal:
    """`sentinel chat` on a terminal of its own. What it wrote is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes], controller: int) -> None:
        self._process = process
        self._controller = controller

    def type(self, line: str) -> None:
        os.write(self._controller, f"{line}\r".encode())

    def press_ctrl_c(self) -> None:
        os.kill(self._process.pid, signal.SIGINT)

    def read_until(self, wanted: bytes) -> bytes:
        seen = b""
        while wanted not in seen:
            assert select.select([self._controller], [], [], WAIT_S)[0], seen
            seen += os.read(self._controller, 4096)
        return seen

    def ended(self) -> int:
        return self._process.wait(WAIT_S)


@contextmanager
def chat(product: Any) -> Iterator[Terminal]:
    controller, terminal = pty.openpty()
    command = [SENTINEL, "chat"]
    environment = {**product.environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "24"}
    with fork_server.Process(
        command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        try:
            yield Terminal(process, controller)
        finally:
            process.kill()
            os.close(controller)


def outcomes(product: Any) -> list[dict[str, Any]]:
    lines = product.run("audit", "show", "--json").stdout.splitlines()
    records = [json.loads(line)["record"] for line in lines]
    return [record for record in records if record["kind"] == "outcome"]


def test_a_stopped_answer_stays_readable_and_a_stopped_call_is_stopped_and_on_record(home: Any) -> None:
    with chat(home) as terminal:
        terminal.read_until(b"Ask about incidents")
        terminal.type("which incident is the newest?")
        terminal.read_until("ˢ¹".encode())  # a line is compared once it ends
        terminal.press_ctrl_c()
        told = terminal.read_until(b"the conversation goes on").decode()
        kept = told[told.rindex("is the newest") :]
        assert "ˢ¹" in kept
        assert re.search(r"4711.* is .*Low.*[!✗].*\(", kept, re.DOTALL)  # marked, with the reason
        assert "It was" not in kept
        assert "the answer was not finished" in kept
        assert [outcome["status"] for outcome in outcomes(home)] == ["success"]

        workspace = home.json("status")["workspace"]["pid"]
        os.kill(workspace, signal.SIGSTOP)  # so that the call is certainly still running
        try:
            terminal.type("and which one now?")
            terminal.read_until(b".. query_incidents")
            terminal.press_ctrl_c()
            terminal.read_until(b"the conversation goes on")
            for _ in range(MOST_LOOKS):
                if len(found := outcomes(home)) == 2:
                    break
            assert [(each["status"], each["reason"]) for each in found] == [("success", None), ("error", "caller_left")]
        finally:
            os.kill(workspace, signal.SIGCONT)
        terminal.type("/quit")
        assert terminal.ended() == 0
