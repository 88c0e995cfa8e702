"""The callers of a crash trial: they do everything that a gateway promises to keep, and note what they were told.

Each caller is one agent with its person and whoever decides. It goes round by round, each in a session of its own:
reads of growing secrecy, a hidden value, a note in a store, a call that waits for a person and is tried twice, a name
that is no tool, and the end of the session. Every text that is sent is unlike any other, so that the journal and the
tool server tell of the same calls.
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.tool_calls import ToolSchema

ANSWER_SECONDS = 300

POLICY = """
tools:
  - name: read_public
    effect: read
    parameters: [{name: marker, type: string, required: true}]
    taint_rules: [{rule_id: read_public_any, condition: "true", taint_level: LOW}]
  - name: read_secret
    effect: read
    parameters: [{name: marker, type: string, required: true}]
    taint_rules: [{rule_id: read_secret_any, condition: "true", taint_level: HIGH}]
  - name: read_hidden
    effect: read
    parameters: [{name: marker, type: string, required: true}]
    exposure: [{path: /arguments/marker, mode: hide}]
    taint_rules: [{rule_id: read_hidden_any, condition: "true", taint_level: MEDIUM}]
  # What the agent remembers rises in the other sessions of this load, and approvals lapse by it; no kill would show.
  - name: note
    effect: write
    across_sessions: false
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    writes: ["note/{place}"]
    parameters:
      - {name: place, type: string, required: true}
      - {name: marker, type: string, required: true}
    taint_rules: [{rule_id: note_any, condition: "true", taint_level: LOW}]
  - name: isolate
    effect: write
    across_sessions: false
    accepts: {sensitivity: HIGH, integrity: UNTRUSTED}
    parameters: [{name: marker, type: string, required: true}]
    taint_rules: [{rule_id: isolate_needs_a_person, condition: "true", taint_level: LOW, requires_approval: true}]
"""

TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {key: {} for key in parameters}})
    for name, parameters in (
        ("read_public", ["marker"]),
        ("read_secret", ["marker"]),
        ("read_hidden", ["marker"]),
        ("note", ["place", "marker"]),
        ("isolate", ["marker"]),
    )
)


@dataclass(frozen=True, slots=True)
class Keys:
    """The texts of a caller's keys: its agent's, its person's, and that of whoever decides."""

    agent: str
    user: str
    approver: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a caller was told of one tool call: its id and the HTTP status it ended with."""

    audit_id: str
    session_id: str
    tool: str
    marker: str
    status: int


@dataclass(slots=True)
class Approved:
    """A call that waited. `acknowledged`: the caller was told that a person's yes is taken."""

    approval_id: str
    session_id: str
    marker: str
    keys: Keys
    acknowledged: bool = False


@dataclass(slots=True)
class Told:
    """All that the callers of one trial were told. `closing` are sessions whose end was asked for, `closed` those whose
    end was acknowledged; `handles` are (session, handle, hidden value)."""

    calls: list[Acknowledged] = field(default_factory=list)
    handles: list[tuple[str, str, str]] = field(default_factory=list)
    approvals: list[Approved] = field(default_factory=list)
    closing: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)


class _NothingPasses(Exception):
    """The gateway cannot reach its database; the round ends, and nothing was acknowledged."""


class Caller:
    """One caller. Each request goes to the next of `urls`, so that several gateways share every session; one that
    is gone is left out from then on."""

    def __init__(self, name: str, urls: Sequence[str], keys: Keys, told: Told) -> None:
        self._name = name
        self._keys = keys
        self._told = told
        self._connections = [http.client.HTTPConnection(urlsplit(url).netloc, timeout=ANSWER_SECONDS) for url in urls]
        self._turn = 0
        self._numbers = itertools.count()

    def run(self, kill_after: int, enough: threading.Event, half: threading.Event) -> None:
        """Go round until the last gateway is gone; set `enough` when all callers together were told so many ends,
        and `half` when they were told half as many."""
        while self._connections:
            with suppress(OSError, http.client.HTTPException, ValueError, _NothingPasses):
                for _ in self._round():
                    if len(self._told.calls) >= kill_after:
                        enough.set()
                    elif 2 * len(self._told.calls) >= kill_after:
                        half.set()
        half.set()
        enough.set()

    def _round(self) -> Iterator[Mapping[str, Any]]:
        _, opened = self._request("POST", "/v1/sessions", self._keys.user)
        session_id = opened["session_id"]
        yield self._call(session_id, "read_public")
        yield self._read_hidden(session_id)
        yield self._call(session_id, "note", place=self._name)
        yield from self._with_approval(session_id)
        yield self._call(session_id, "read_secret")
        yield self._call(session_id, "note", place=self._name)
        yield self._call(session_id, "no_such_tool")
        yield self._call(session_id, "read_public")
        if next(self._numbers) % 2:
            self._told.closing.add(session_id)
            status, _ = self._request("DELETE", f"/v1/sessions/{session_id}", self._keys.user)
            if status == 204:
                self._told.closed.add(session_id)

    def _read_hidden(self, session_id: str) -> Mapping[str, Any]:
        hidden = self._new_marker()
        answer = self._call(session_id, "read_hidden", marker=hidden)
        if "result" in answer:
            self._told.handles.append((session_id, answer["result"]["arguments"]["marker"]["$ref"], hidden))
        return answer

    def _with_approval(self, session_id: str) -> Iterator[Mapping[str, Any]]:
        marker = self._new_marker()
        asked = self._call(session_id, "isolate", marker=marker)
        yield asked
        if "approval_id" not in asked:  # a key may not ask without end
            return
        waiting = Approved(asked["approval_id"], session_id, marker, self._keys)
        self._told.approvals.append(waiting)
        path = f"/v1/approvals/{waiting.approval_id}"
        status, _ = self._request("POST", f"{path}/approve", self._keys.approver, {})
        waiting.acknowledged = status == 200
        yield self._call(session_id, "isolate", marker=marker)
        again = self._call(session_id, "isolate", marker=marker)
        yield again
        if "approval_id" in again:  # nobody is to wait in the way of the next ones
            self._request("POST", f"/v1/approvals/{again['approval_id']}/deny", self._keys.approver, {})

    def _new_marker(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    def _call(self, session_id: str, tool: str, **arguments: str) -> Mapping[str, Any]:
        marker = arguments.setdefault("marker", self._new_marker())
        body = {"session_id": session_id, "tool_name": tool, "args": arguments}
        status, answer = self._request("POST", "/v1/proxy-execute", self._keys.agent, body)
        self._told.calls.append(Acknowledged(answer["audit_id"], session_id, tool, marker, status))
        return answer

    def _request(self, method: str, path: str, key: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        self._turn = (self._turn + 1) % len(self._connections)
        connection = self._connections[self._turn]
        headers = {"X-API-Key": key, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            content = response.read()
            answer = json.loads(content) if content else {}
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            self._connections.remove(connection)
            raise
        if response.status == http.HTTPStatus.SERVICE_UNAVAILABLE and "audit_id" not in answer:
            raise _NothingPasses
        return response.status, answer
