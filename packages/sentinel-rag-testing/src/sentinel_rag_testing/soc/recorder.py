"""A door before the gateway that notes what an agent was told, and passes everything on unchanged.

For goals that are about reading: nothing but the gateway's responses shows that an agent got what was not for it.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag_testing.loopback import serve

_TIMEOUT_S = 300.0
_PASSED_ON = ("x-api-key", "content-type", "accept")
_METHODS = ["GET", "POST", "DELETE", "PUT"]


class Recorder:
    """Serves in front of `gateway_url`; `told` holds the bodies of responses, oldest first, and `executed` counts calls
    that ran."""

    def __init__(self, gateway_url: str) -> None:
        self._gateway = urlsplit(gateway_url)
        self.told: list[str] = []
        self.executed = 0

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve on a free port of loopback and yield the address."""
        with serve(Starlette(routes=[Route("/{path:path}", self._pass, methods=_METHODS)])) as url:
            yield url

    async def _pass(self, request: Request) -> Response:
        body = await request.body()
        return await anyio.to_thread.run_sync(self._ask, request, body)

    def _ask(self, request: Request, body: bytes) -> Response:
        headers = {name: text for name, text in request.headers.items() if name in _PASSED_ON}
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        connection = http.client.HTTPConnection(self._gateway.hostname or "", self._gateway.port, timeout=_TIMEOUT_S)
        try:
            connection.request(request.method, target, body or None, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        self.told.append(content.decode("utf-8", "replace"))
        if target == "/v1/proxy-execute" and response.status == 200:
            self.executed += 1
        kept = {"Retry-After": response.headers["Retry-After"]} if "Retry-After" in response.headers else {}
        return Response(content, response.status, kept, response.headers.get("Content-Type"))
