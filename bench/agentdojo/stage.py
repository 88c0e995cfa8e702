"""One estate and one gateway in front of it, as processes, and a client that speaks for all who talk to them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
MAX_IDLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Pair:
    """The keys of an agent, of the person for whom it works, and of a second one whom it serves too."""

    agent: str
    person: str
    second: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway said to a call: the status, and the body."""

    status: int
    body: Mapping[str, Any]

    @property
    def ran(self) -> bool:
        """Whether the tool ran, be it that it failed."""
        return self.status == 200 or self.body.get("reason") not in _NOT_RUN


_NOT_RUN = frozenset(
    (
        *("no_rule_matched", "rule_denies", "approval_required", "condition_undecided", "unknown_tool", "sink_label"),
        *("tool_quarantined", "tool_switched_off", "missing_scope", "invalid_argument", "malformed_body", "not_found"),
        *("conflict", "too_large", "rate_limited", "overloaded", "unauthenticated"),
    )
)


class Connection:
    """Requests to one server over a connection that is kept."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._http = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        self._used = time.monotonic()

    def post(self, path: str, document: Any, key: str = "") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", **({"X-API-Key": key} if key else {})}
        return self._send("POST", path, headers, json.dumps(document).encode())

    def get(self, path: str, key: str) -> Any:
        return self._send("GET", path, {"X-API-Key": key}, None)[1]

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> tuple[int, Any]:
        # The server closes what is idle for some seconds; a request on its way into that is not known to have run.
        if time.monotonic() - self._used > MAX_IDLE_S:
            self._http.close()
        self._http.request(method, path, body=body, headers=headers)
        response = self._http.getresponse()
        content = response.read()
        self._used = time.monotonic()
        return response.status, json.loads(content) if content else None

    def close(self) -> None:
        self._http.close()


@dataclass(slots=True)
class Stage:
    """Where episodes are played, one after the other; `pair` speaks in the one that runs."""

    gateway: Connection
    estate: Connection
    approver: str
    pair: Pair
    process: subprocess.Popen[str] = field(repr=False)

    def begin(self, task: str, injection: str | None, *, same_agent: bool = False) -> Mapping[str, Any]:
        """A fresh environment, and an agent and a person of its own, or the same as before, which then remembers; the
        user's words and the calls of the task."""
        if not same_agent:
            self.pair = self._new_pair()
        status, found = self.estate.post("/control", {"begin": task, "injection": injection})
        if status != 200:
            raise RuntimeError(f"the estate could not begin {task} with {injection}")
        return dict(found)

    def attack(self) -> list[dict[str, Any]]:
        return list(self.estate.post("/control", {"attack": True})[1])

    def verdict(self) -> Mapping[str, bool]:
        """AgentDojo's own."""
        return dict(self.estate.post("/control", {"verdict": True})[1])

    def open_session(self, words: str, plan: Sequence[Mapping[str, Any]] = (), *, second: bool = False) -> str:
        """A session of the person's, or of the second one's, who says `words` in it and commits to a plan, if there is
        one."""
        person = self.pair.second if second else self.pair.person
        session = str(self.gateway.post("/v1/sessions", {}, person)[1]["session_id"])
        self.gateway.post(f"/v1/sessions/{session}/words", {"text": words}, person)
        if plan:
            status, body = self.gateway.post(f"/v1/sessions/{session}/plan", {"steps": plan}, self.pair.person)
            if status != 200:
                raise RuntimeError(f"the plan was not taken: {body}")
        return session

    def open_own_session(self) -> str:
        """A session that the agent opens by itself."""
        return str(self.gateway.post("/v1/sessions", {}, self.pair.agent)[1]["session_id"])

    def named(self, session: str) -> list[dict[str, str]]:
        """What the person's words name, and what endorsements derived."""
        return list(self.gateway.get(f"/v1/sessions/{session}", self.pair.person)["named"])

    def call(self, session: str, tool: str, arguments: Mapping[str, Any]) -> Answer:
        wish = {"session_id": session, "tool_name": tool, "args": arguments}
        return Answer(*self.gateway.post("/v1/proxy-execute", wish, self.pair.agent))

    def violations(self, approval: str, *, by_asker: bool) -> list[str]:
        """The arguments that carry more than the tool accepts, as whoever is asked is shown."""
        shown = self.gateway.get(f"/v1/approvals/{approval}", self.pair.person if by_asker else self.approver)
        return [str(each["parameter"]) for each in shown["violations"]]

    def decide(self, approval: str, *, approve: bool, by_asker: bool = False) -> None:
        """The word of the person who is asked: another one, or the one who asked the agent."""
        verb = "approve" if approve else "deny"
        key = self.pair.person if by_asker else self.approver
        status, body = self.gateway.post(f"/v1/approvals/{approval}/{verb}", {}, key)
        if status != 200:
            raise RuntimeError(f"the approval was not decided: {body}")

    def _new_pair(self) -> Pair:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return Pair(**json.loads(self.process.stdout.readline()))


@contextmanager
def stage(suite: str, policy: Path, folder: Path) -> Iterator[Stage]:
    """Start both processes; they end with the block."""
    with ExitStack() as opened:
        estate = opened.enter_context(_process("bench.agentdojo.estate", suite))
        url = _line(estate)
        process = opened.enter_context(_process("bench.agentdojo.gateway_process", str(policy), url, str(folder)))
        told = json.loads(_line(process))
        connections = [Connection(told["url"]), Connection(url)]
        for connection in connections:
            opened.callback(connection.close)
        yield Stage(*connections, told["approver"], Pair(told["agent"], told["person"], told["second"]), process)


@contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError(f"a process did not start: {process.args}")
    return line
