"""The two answers of an MCP server that never change: what it speaks, and which tools it serves.

The gateway asks both of every server when it starts. Answered from memory, they do not make a server load the
protocol's library before anybody calls a tool. They are the library's own answers, field by field; a test holds the two
against each other. Whatever is not exactly such a question in the protocol without sessions goes on to the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.tools.small_requests import PROTOCOL, again, body_of, method_of


class FixedAnswers:
    """Wraps the library's application. `answers` maps a method to its result."""

    def __init__(self, app: ASGIApp, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = method_of(scope, Headers(scope=scope))
        if method is None or method not in self._answers:
            await self._app(scope, receive, send)
            return
        body = await body_of(receive)
        if body is None:
            return
        request_id = _id_of(body, method)
        if request_id is None:
            await self._app(scope, again(body, receive), send)
        else:
            answer = {"jsonrpc": "2.0", "id": request_id, "result": self._answers[method]}
            await JSONResponse(answer)(scope, receive, send)


def fixed_answers(server: Mapping[str, str], tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The answers of a server, `name` and `version`, that serves `tools` in wire form."""
    common = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
    about = {"_meta": {"io.modelcontextprotocol/serverInfo": dict(server)}}
    capabilities = {"capabilities": {"tools": {"listChanged": False}}, "supportedVersions": [PROTOCOL]}
    return {"server/discover": {**common, **capabilities, **about}, "tools/list": {**common, "tools": tools, **about}}


def _id_of(body: bytes, method: str) -> int | str | None:
    """The id of a plain question for the first page; None for anything else."""
    try:
        question = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(question, dict) or question.get("jsonrpc") != "2.0" or question.get("method") != method:
        return None
    parameters = question.get("params", {})
    request_id = question.get("id")
    plain = isinstance(parameters, dict) and set(parameters) <= {"_meta"}
    return request_id if plain and isinstance(request_id, int | str) and not isinstance(request_id, bool) else None
