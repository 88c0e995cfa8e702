"""A tool call of the protocol without sessions, answered without the protocol's library.

The library takes half a second of processor time to load, and some milliseconds for each call, in which it lists all
tools anew. Whatever is not exactly the call that our gateway makes, of a tool that is served, goes on to the library:
that includes all that is wrong with a call, so what is refused, and how, is the library's. A test holds the two answers
against each other.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.trusted_meta import READERS
from sentinel_rag.tools.small_requests import PROTOCOL, again, body_of, method_of
from sentinel_rag.tools.tool_answer import ToolAnswer

METHOD = "tools/call"
_PREFIX = "io.modelcontextprotocol/"
_ENVELOPE = frozenset({f"{_PREFIX}protocolVersion", f"{_PREFIX}clientInfo", f"{_PREFIX}clientCapabilities"})
_BESIDE = frozenset({READERS, "traceparent"})
_INTERNAL_ERROR = {"code": -32603, "message": "Internal server error"}
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Call:
    request_id: int | str
    tool: str
    arguments: dict[str, Any]
    meta: dict[str, Any]


class PlainCalls:
    """Wraps the library's application. `call` runs one of `tools`, `server` is what results name as their server:
    `name` and `version`."""

    def __init__(
        self,
        app: ASGIApp,
        call: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Awaitable[ToolAnswer]],
        tools: Collection[str],
        server: Mapping[str, str],
    ) -> None:
        self._app = app
        self._call = call
        self._tools = frozenset(tools)
        self._server = dict(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        tool = self._tool_of(scope, headers)
        if tool is None:
            await self._app(scope, receive, send)
            return
        body = await body_of(receive)
        if body is None:
            return
        call = _call_in(body, tool)
        if call is None:
            await self._app(scope, again(body, receive), send)
            return
        answer = {"jsonrpc": "2.0", "id": call.request_id, **await self._outcome(call)}
        await Response(_encoded(answer), media_type="application/json")(scope, receive, send)

    def _tool_of(self, scope: Scope, headers: Headers) -> str | None:
        """The tool that the headers name; None where anything is not as the gateway sends it."""
        if method_of(scope, headers) != METHOD or any(name.startswith("mcp-param-") for name in headers):
            return None
        once = all(len(headers.getlist(name)) == 1 for name in ("mcp-method", "mcp-protocol-version", "mcp-name"))
        json_both_ways = headers.get("content-type") == "application/json" and "application/json" in {
            form.strip() for form in headers.get("accept", "").split(",")
        }
        tool = headers.get("mcp-name", "")
        return tool if once and json_both_ways and tool in self._tools else None

    async def _outcome(self, call: _Call) -> dict[str, Any]:
        try:
            answer = await self._call(call.tool, call.arguments, call.meta)
        except Exception:  # none should; if one does, the gateway hears what the library would have told it
            _LOG.exception("a call of %s raised", call.tool)
            return {"error": _INTERNAL_ERROR}
        beside = {name: value for name, value in answer.meta.items() if value is not None}
        return {
            "result": {
                "_meta": {**beside, f"{_PREFIX}serverInfo": self._server},
                "content": [{"text": answer.text, "type": "text"}],
                "isError": answer.is_error,
                "resultType": "complete",
                "structuredContent": dict(answer.value),
            }
        }


def _call_in(body: bytes, tool: str) -> _Call | None:
    """The call of `tool`, whole and with nothing beside it that this module does not know; None for anything else."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.keys() != {"jsonrpc", "id", "method", "params"}:
        return None
    request_id, params = message["id"], message["params"]
    if (message["jsonrpc"], message["method"]) != ("2.0", METHOD) or type(request_id) not in (int, str):
        return None
    if not isinstance(params, dict) or params.keys() != {"name", "arguments", "_meta"} or params["name"] != tool:
        return None
    arguments, meta = params["arguments"], params["_meta"]
    if not isinstance(arguments, dict) or not isinstance(meta, dict) or not _is_envelope(meta):
        return None
    return _Call(request_id, tool, arguments, meta)


def _is_envelope(meta: dict[str, Any]) -> bool:
    if not _ENVELOPE <= meta.keys() <= _ENVELOPE | _BESIDE:
        return False
    client = meta[f"{_PREFIX}clientInfo"]
    named = isinstance(client, dict) and client.keys() == {"name", "version"}
    return (
        named
        and all(isinstance(text, str) for text in client.values())
        and meta[f"{_PREFIX}clientCapabilities"] == {}
        and meta[f"{_PREFIX}protocolVersion"] == PROTOCOL
    )


def _encoded(answer: dict[str, Any]) -> str:
    """As the library writes it: in ASCII, and a number that JSON does not have is null."""
    try:
        return json.dumps(answer, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(answer), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
