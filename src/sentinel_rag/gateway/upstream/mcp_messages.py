"""What goes over the wire in MCP's two eras: requests as bytes with their headers, answers found in a body, tool lists.

2026-07-28 has no sessions: each request carries its protocol version and is routed by headers, and arguments that a
schema marks with `x-mcp-header: TOKEN` are carried as `Mcp-Param-TOKEN` too. 2025-11-25 opens with `initialize` and
carries the session that it was given.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from typing import Any

import msgspec

from sentinel_rag.gateway.upstream.port import UpstreamTool

ANNOTATION = "x-mcp-header"
MAX_DEPTH = 8
MAX_HEADERS = 32

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_TYPES = ("string", "integer", "boolean")
_ENCODED = re.compile(r"=\?base64\?.*\?=")

Places = Mapping[tuple[str, ...], str]
"""The header token of each annotated property, by its path in the arguments."""


def annotated(input_schema: Mapping[str, Any]) -> Places:
    """The annotated properties of a schema; annotations that the protocol does not allow are left out."""
    found: dict[tuple[str, ...], str] = {}
    for path, token in _walk(input_schema, ()):
        if token.lower() not in (known.lower() for known in found.values()) and len(found) < MAX_HEADERS:
            found[path] = token
    return found


def headers_of(places: Places, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call; an argument that is left out has none."""
    headers: dict[str, str] = {}
    for path, token in places.items():
        value: Any = arguments
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """`text` as a header can carry it: plain if it is printable ASCII, else in the protocol's base64 form."""
    if text.isascii() and text.isprintable() and text == text.strip() and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _walk(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(path) == MAX_DEPTH:
        return
    for name, part in properties.items():
        if not isinstance(part, Mapping):
            continue
        token = part.get(ANNOTATION)
        if isinstance(token, str) and _TOKEN.fullmatch(token) and part.get("type") in _TYPES:
            yield (*path, name), token
        yield from _walk(part, (*path, name))


class UpstreamProtocol(StrEnum):
    """A protocol revision that this client speaks."""

    STATELESS = "2026-07-28"
    SESSIONS = "2025-11-25"


CLIENT = {"name": "sentinel-rag-interceptor", "version": metadata.version("sentinel-rag")}
_META = {
    "io.modelcontextprotocol/protocolVersion": UpstreamProtocol.STATELESS.value,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON-RPC message to send. `request_id` is None for a notification."""

    request_id: int | None
    body: bytes
    headers: dict[str, str]


def call_message(
    era: UpstreamProtocol,
    request_id: int,
    tool: str,
    arguments: bytes,
    headers: Mapping[str, str] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Message:
    """`tools/call`; `arguments` is JSON and is sent byte for byte. `headers` are those that repeat arguments, `beside`
    goes into `_meta`."""
    params: dict[str, Any] = {"name": tool, "arguments": msgspec.Raw(arguments)}
    if beside:
        params["_meta"] = dict(beside)
    message = request(era, request_id, "tools/call", params, name=tool)
    message.headers.update(headers or {})
    return message


def request(
    era: UpstreamProtocol, request_id: int, method: str, params: dict[str, Any], *, name: str | None = None
) -> Message:
    headers = {"Mcp-Protocol-Version": era.value}
    if era is UpstreamProtocol.STATELESS:
        params = {**params, "_meta": {**params.get("_meta", {}), **_META}}
        headers["Mcp-Method"] = method
        if name is not None:
            headers["Mcp-Name"] = header_value(name)
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
    return Message(request_id, body, headers)


def initialize(request_id: int) -> Message:
    params = {"protocolVersion": UpstreamProtocol.SESSIONS.value, "capabilities": {}, "clientInfo": CLIENT}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params})
    return Message(request_id, body, {})


def initialized() -> Message:
    body = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return Message(None, body, {"Mcp-Protocol-Version": UpstreamProtocol.SESSIONS.value})


def cancelled(era: UpstreamProtocol, request_id: int) -> Message:
    """Tells a server that nobody waits for that request any more."""
    params = {"requestId": request_id, "reason": "the deadline passed"}
    body = msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    return Message(None, body, {"Mcp-Protocol-Version": era.value, "Mcp-Method": "notifications/cancelled"})


def refusal_of(document: Any) -> bytes | None:
    """The answer to a request that a server sends to its client; None if `document` is no such request.

    A ping is answered. Sampling, elicitation and roots are refused: they would let a tool server put words before the
    model or the user, past every rule.
    """
    if not isinstance(document, dict) or "method" not in document or document.get("id") is None:
        return None
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": document["id"]}
    if document["method"] == "ping":
        return msgspec.json.encode({**answer, "result": {}})
    return msgspec.json.encode({**answer, "error": {"code": -32601, "message": "This client offers no such method."}})


def says_tools_changed(document: Any) -> bool:
    """True for the notification that the list of tools has changed."""
    return isinstance(document, dict) and document.get("method") == "notifications/tools/list_changed"


def speaks_stateless(discovered: Any) -> bool:
    """Whether an answer to `server/discover` says that the server speaks the newer era."""
    result = discovered.get("result") if isinstance(discovered, dict) else None
    versions = result.get("supportedVersions") if isinstance(result, dict) else None
    return isinstance(versions, list) and UpstreamProtocol.STATELESS.value in versions


def events(text: str) -> Iterator[str]:
    """The `data` of each complete server-sent event; what follows the last blank line is not complete."""
    *blocks, _ = text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    for block in blocks:
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines)


def answer_to(request_id: int, document: Any) -> dict[str, Any] | None:
    """`document` if it is the JSON-RPC response with that id, or an error that has none; else None."""
    if not isinstance(document, dict) or not ("result" in document or "error" in document):
        return None
    if document.get("id") == request_id or (document.get("id") is None and "error" in document):
        return document
    return None


MAX_PAGES = 50


class NoList(Exception):
    """What the server sent is not a list of tools, or does not end; the message is a sentence for people."""


async def all_pages(ask: Callable[[dict[str, Any]], Awaitable[Any]]) -> tuple[UpstreamTool, ...]:
    """Ask for page after page: `ask` sends `tools/list` with these params and returns the JSON-RPC response.

    Raises NoList, and whatever `ask` raises.
    """
    tools: list[UpstreamTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        answer = await ask({} if cursor is None else {"cursor": cursor})
        result = answer.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            raise NoList("The list of tools is not one.")
        tools += [_described(tool) for tool in result["tools"] if _is_tool(tool)]
        cursor = result.get("nextCursor")
        if not cursor:
            return tuple(tools)
    raise NoList("The list of tools does not end.")


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _described(tool: dict[str, Any]) -> UpstreamTool:
    return UpstreamTool(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        input_schema=_object(tool.get("inputSchema")) or {},
        output_schema=_object(tool.get("outputSchema")),
        annotations=_object(tool.get("annotations")),
    )


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
