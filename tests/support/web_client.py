"""Whoever asks the people's HTTP API: a stranger, a browser that is signed in, or a program with a token.

answer = Client(url).post("/sign-in", {"name": "dana", "password": "..."})
dana = signed_in(url, answer)
dana.ask("how many incidents are open?")
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag_testing.running_gateway import HttpAnswer

TIMEOUT_S = 300


@dataclass(slots=True)
class Client:
    """Whoever asks, on a connection for each request. `cookie` and `csrf` are a browser's, `token` a program's.
    `trusted` is what an https address is checked by."""

    url: str
    cookie: str = ""
    csrf: str = ""
    token: str = ""
    trusted: ssl.SSLContext | None = None

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        parts = urlsplit(self.url)
        connection = (
            http.client.HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=self.trusted)
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
        )
        try:
            response = self.open(connection, method, path, body, headers)
            content = response.read()
            return HttpAnswer(response.status, {name.lower(): text for name, text in response.getheaders()}, content)
        finally:
            connection.close()

    def open(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        """Send a request on `connection`; its response, to be read by whoever opened it."""
        sent: dict[str, str] = {}
        if self.cookie:
            sent |= {"Cookie": self.cookie, "X-CSRF-Token": self.csrf}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, data, {**sent, **(headers or {})})
        return connection.getresponse()

    def get(self, path: str) -> HttpAnswer:
        return self.request("GET", path)

    def post(self, path: str, body: Any = None) -> HttpAnswer:
        return self.request("POST", path, body)

    def delete(self, path: str) -> HttpAnswer:
        return self.request("DELETE", path)

    def ask(self, message: str, **more: Any) -> Any:
        """The answer to a question, as JSON; asserts that there is one."""
        answer = self.post("/chat", {"message": message, **more})
        assert answer.status == 200, answer.content
        return answer.body

    def events(self, method: str, path: str, body: Any = None, after: int | None = None) -> list[dict[str, Any]]:
        """The events of a stream that ends, each `id`, `type` and `data`."""
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": str(after)})
        answer = self.request(method, path, body, headers)
        assert answer.status == 200, answer.content
        return parse_events(answer.content)


def signed_in(url: str, answer: HttpAnswer, trusted: ssl.SSLContext | None = None) -> Client:
    """The browser that was sent `answer`."""
    cookie = answer.headers["set-cookie"].partition(";")[0]
    client = Client(url, cookie=cookie, trusted=trusted)
    return replace(client, csrf=client.get("/session").body["csrf_token"])


def parse_events(content: bytes) -> list[dict[str, Any]]:
    """Server-sent events as a browser reads them, comments left out."""
    found: list[dict[str, Any]] = []
    for block in content.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            found.append({"id": int(lines["id"]), "type": lines["event"], "data": json.loads(lines["data"])})
    return found
