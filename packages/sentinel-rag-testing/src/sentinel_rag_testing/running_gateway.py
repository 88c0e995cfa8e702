"""A whole gateway on loopback in front of a fake tool server: policy in, answers and journal out.

For people who write a policy and want to see what it does, over the wire and on record:

    with FakeToolServer().running() as server, running_gateway(policy, folder, server) as gateway:
        answer = gateway.call("query_incidents", {"limit": 3})
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.audit import JournalEntry, JournalReader, KeyChanged, PostgresPlace
from sentinel_rag.audit.events import ApprovalNotified, ToolPinned
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.approval_webhook import Webhook
from sentinel_rag.gateway.policy import FixedPolicy, Policies, Policy
from sentinel_rag.gateway.store import Scope, State, open_state
from sentinel_rag.gateway.store.sessions import REMEMBERED
from sentinel_rag.gateway.upstream import McpHttpUpstream, Upstream
from sentinel_rag.telemetry.metrics import Registry
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve

PAGE = 1_000
"""As many records as a journal gives at once."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers with names in lower case, and body of a response."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The body as JSON."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that serves at `url`. `key` may execute, `auditor` may read the journal, `approver` may decide
    what waits."""

    url: str
    state: State
    executor: FakeToolServer
    key: str
    auditor: str
    approver: str
    user: str

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, session_id: str = "session-1", key: str | None = None
    ) -> HttpAnswer:
        """`POST /v1/proxy-execute`."""
        body = json.dumps({"session_id": session_id, "tool_name": tool, "args": arguments}).encode()
        return self.request("POST", "/v1/proxy-execute", body=body, key=self.key if key is None else key)

    def request(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Any request, on a connection of its own."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if key is not None:
            sent["X-API-Key"] = key
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers={**sent, **(headers or {})})
            response = connection.getresponse()
            content = response.read()
            return HttpAnswer(response.status, {name.lower(): text for name, text in response.getheaders()}, content)
        finally:
            connection.close()

    def open_session(self, *, key: str | None = None) -> str:
        """A new session's id: clean, opened by the person, unless `key` opens it."""
        return str(self.request("POST", "/v1/sessions", key=key or self.user).body["session_id"])

    def say(self, session_id: str, text: str) -> list[tuple[str, str]]:
        """Send the person's own words; what they name, as (kind, text)."""
        answer = self.request(
            "POST", f"/v1/sessions/{session_id}/words", key=self.user, body=json.dumps({"text": text}).encode()
        )
        return [(value["kind"], value["text"]) for value in answer.body["named"]]

    def resolve(self, session_id: str, *handles: str, key: str | None = None) -> HttpAnswer:
        """Ask for hidden values as the person."""
        body = json.dumps({"handles": handles}).encode()
        return self.request("POST", f"/v1/sessions/{session_id}/resolve", key=key or self.user, body=body)

    def context(self, session_id: str) -> tuple[str, str]:
        """The context label of a session of the person: sensitivity and integrity."""
        label = self.request("GET", f"/v1/sessions/{session_id}", key=self.user).body["context"]
        return label["sensitivity"], label["integrity"]

    def records(self) -> list[dict[str, Any]]:
        """The journal so far, oldest first, without what opens every journal here: pins of tools, making of keys."""
        reader = JournalReader(self.state.database.place)
        entries: list[JournalEntry] = []
        while page := reader.read(entries[-1].seq if entries else 0, PAGE):
            entries += page
        return _told(entries)

    def last_record(self) -> dict[str, Any]:
        """What the last request wrote. Notices do not count: they are recorded beside the requests, at any time."""
        newest = _told(JournalReader(self.state.database.place).last(100))
        return next(record for record in reversed(newest) if record["kind"] != ApprovalNotified.kind)


def _told(entries: list[JournalEntry]) -> list[dict[str, Any]]:
    return [entry.record for entry in entries if entry.kind not in (KeyChanged.kind, ToolPinned.kind)]


@contextmanager
def running_gateway(
    policy: Policy,
    folder: Path,
    executor: FakeToolServer,
    *,
    limits: GatewayLimits | None = None,
    upstreams: Mapping[str, Upstream] | None = None,
    policies: Callable[[State], Policies] | None = None,
    webhook: Webhook | None = None,
    switched_off: Collection[str] = (),
    approvals_page: str | None = None,
    postgres: PostgresPlace | None = None,
    registry: Registry | None = None,
    around: Callable[[Any], Any] = lambda app: app,
    clock: Clock = utc_now,
    memory: timedelta = REMEMBERED,
) -> Iterator[RunningGateway]:
    """Serve `policy` with its state in `folder`, or in `postgres`; every server that it names is `executor`, unless
    `upstreams` says. `policies` makes a source of policies that change; tools that are `switched_off` do not pass, and
    clients of MCP are told of `approvals_page`. It counts into `registry`; `around` wraps the application."""
    if upstreams is None:
        shared = McpHttpUpstream(executor.url, token=executor.token)
        upstreams = dict.fromkeys(policy.servers(), shared)
    with open_state(folder, postgres=postgres, clock=clock, memory=memory) as state:
        key, caller = state.keys.create([Scope.EXECUTE], name="caller")
        user, _ = state.keys.create([Scope.USER], name="person", for_key=caller.key_id, clearance=Sensitivity.HIGH)
        auditor, _ = state.keys.create([Scope.AUDIT], name="auditor")
        approver, _ = state.keys.create([Scope.APPROVE], name="approver")
        app = create_app(
            policies=FixedPolicy(policy) if policies is None else policies(state),
            keys=state.keys,
            state=state,
            webhook=webhook,
            upstreams=upstreams,
            limits=limits,
            switched_off=switched_off,
            approvals_page=approvals_page,
            registry=registry,
        )
        with serve(around(app)) as url:
            yield RunningGateway(url, state, executor, key, auditor, approver, user)
