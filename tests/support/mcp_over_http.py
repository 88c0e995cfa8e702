"""An MCP client that sends exactly what a test says, right or wrong, and shows what came back.

The official SDK's client is the judge of what a good client sees; this one is for what no good client does. It speaks
streamable HTTP in both eras, one connection for each request.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag_testing.running_gateway import HttpAnswer

STATELESS, SESSIONS = "2026-07-28", "2025-11-25"
_TIMEOUT_S = 300
_IDS = count(1)


@dataclass(frozen=True, slots=True)
class RawMcp:
    """A client at `url` with `key`, in the era of `version`. `headers` are sent beside, or instead of, its own."""

    url: str
    key: str
    version: str = STATELESS
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    path: str = "/mcp"

    def initialized(self, **meta: Any) -> RawMcp:
        """This client in a session of its own, of the era of sessions."""
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
            **({"_meta": meta} if meta else {}),
        }
        answer = replace(self, headers={**self.headers, "Mcp-Protocol-Version": ""}).request("initialize", params)
        assert answer.status == 200, answer.content
        session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
        return replace(self, version=answer.body["result"]["protocolVersion"], headers={**self.headers, **session})

    @property
    def session_id(self) -> str:
        return self.headers["Mcp-Session-Id"]

    def call(self, tool: str, arguments: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        """The result of a call."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
        assert answer.status == 200, answer.content
        result: dict[str, Any] = answer.body["result"]
        return result

    def request(self, method: str, params: Mapping[str, Any], *, request_id: Any = None) -> HttpAnswer:
        """Any request, with what its era wants beside it."""
        return self.post(self.message(method, params, request_id=request_id))

    def message(self, method: str, params: Mapping[str, Any], *, request_id: Any = None) -> dict[str, Any]:
        """The message of a request."""
        params = dict(params)
        if self.version == STATELESS:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientCapabilities": dict(self.capabilities),
                **params.get("_meta", {}),
            }
        return {
            "jsonrpc": "2.0",
            "id": next(_IDS) if request_id is None else request_id,
            "method": method,
            "params": params,
        }

    def post(self, message: Any) -> HttpAnswer:
        """Any body, with the headers that fit it."""
        with self._open(message) as response:
            content = response.read()
            return HttpAnswer(response.status, {name.lower(): text for name, text in response.getheaders()}, content)

    @contextmanager
    def streamed(self, message: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of the answer, as they come. The connection ends with the block, whatever is still to come."""
        with self._open(message) as response:
            assert response.headers["content-type"] == "text/event-stream", response.read()
            yield _events(response)

    @contextmanager
    def lines(self, message: Any) -> Iterator[Iterator[bytes]]:
        """The lines of a stream as they come: with the comments that show that the connection lives."""
        with self._open(message) as response:
            yield (line.rstrip(b"\r\n") for line in response)

    def end(self) -> HttpAnswer:
        """Close the session."""
        with self._sent("DELETE", None, {}) as response:
            return HttpAnswer(response.status, {}, response.read())

    @contextmanager
    def _open(self, message: Any) -> Iterator[http.client.HTTPResponse]:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if isinstance(message, dict) and self.version == STATELESS:
            headers["Mcp-Method"] = str(message.get("method"))
            if message.get("method") == "tools/call":
                headers["Mcp-Name"] = str(message["params"].get("name"))
        with self._sent("POST", body, headers) as response:
            yield response

    @contextmanager
    def _sent(self, verb: str, body: bytes | None, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        own = {"Authorization": f"Bearer {self.key}", "Mcp-Protocol-Version": self.version}
        sent = {name: text for name, text in {**own, **headers, **self.headers}.items() if text}
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT_S)
        try:
            connection.request(verb, self.path, body=body, headers=sent)
            yield connection.getresponse()
        finally:
            connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))
