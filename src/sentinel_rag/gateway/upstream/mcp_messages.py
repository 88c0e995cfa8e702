"""What is sent in MCP's two protocol versions: requests as bytes with their headers, answers found in a body,
tool lists, and every part of a `tools/call` result as an `UpstreamReply`.

2026-07-28 has no sessions: each request carries its protocol version and is routed by headers, and arguments that a
schema marks with `x-mcp-header: TOKEN` are carried as `Mcp-Param-TOKEN` too. 2025-11-25 opens with `initialize` and
carries the session that it was given.

The value of a result is its `structuredContent` where there is one; content blocks beside it that say something else
are kept under `OTHER_CONTENT`, so that a pointer into the structured part means the same with and without them. Without
structured content it is the text of a single text block, as text and never re-typed, or the list of content blocks, or
null for none. A result marked `isError` becomes the typed error that it carries, or an internal one with its text.
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

from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import row_labels_in
from sentinel_rag.gateway.upstream.port import Returned, ToolFailed, UpstreamReply, UpstreamTool, unusable

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


MAX_ERROR_TEXT = 1_000

OTHER_CONTENT = "_mcp_content"
"""The key of the content blocks that a result has beside its structured content. A server may not use it itself."""


WRAPPED_CONTENT = "structuredContent"
"""The key of structured content that is no object, where other content stands beside it."""


def reply_of(message: Mapping[str, Any], *, is_ours: bool = False) -> UpstreamReply:
    """`message` is a JSON-RPC response to a `tools/call` with the right id.

    `is_ours`: it comes from a server of this product. Its text blocks hold nothing that its structured content does
    not, and what it tells of its rows' labels is believed.
    """
    if "error" in message:
        error = message["error"]
        code = error.get("code") if isinstance(error, dict) else None
        known = f" {code}" if isinstance(code, int) else ""
        return unusable(f"The tool server refused the call with JSON-RPC error{known}.")
    result = message.get("result")
    if not isinstance(result, dict) or not ("content" in result or "structuredContent" in result):
        return unusable("The tool server's answer holds no result.")
    if result.get("resultType", "complete") != "complete":
        return unusable("The tool asks for input in the middle of a call, which this gateway does not relay.")
    if not isinstance(result.get("content") or [], list):
        return unusable("The tool server's result is not well formed.")
    if result.get("isError"):
        return ToolFailed(_typed_error(result))
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and OTHER_CONTENT in structured:
        return unusable(f"The tool's result uses the key {OTHER_CONTENT!r}, which is the gateway's.")
    value = _value(structured, result.get("content") or [], is_ours)
    rows = value.get("rows") if isinstance(value, dict) else None
    return Returned(
        msgspec.json.encode(value),
        value,
        len(rows) if isinstance(rows, list) else None,
        row_labels_in(result.get("_meta")) if is_ours else None,
    )


def _value(structured: Any, content: list[Any], text_is_summary: bool) -> Any:
    if structured is None:
        if not content:
            return None
        text = _text(content[0]) if len(content) == 1 else None
        return content if text is None else text
    texts = [text for text in map(_text, content) if text is not None]
    no_news = text_is_summary or _is_twin(texts, structured)
    others = [block for block in content if _text(block) is None] if no_news else content
    if not others:
        return structured
    return {
        **(structured if isinstance(structured, dict) else {WRAPPED_CONTENT: structured}),
        OTHER_CONTENT: others,
    }


def _is_twin(texts: list[str], structured: Any) -> bool:
    """True if the text blocks are the text form of `structured` and say nothing more.

    Servers write it as JSON. A value that is no object is wrapped as `{"result": value}` by the official SDK, beside
    one block for the value, or one for each item of a list.
    """
    if not texts or (len(texts) == 1 and _says(texts[0], structured)):
        return True
    if not isinstance(structured, dict) or structured.keys() != {"result"}:
        return False
    value = structured["result"]
    if len(texts) == 1 and _says(texts[0], value):
        return True
    return (
        isinstance(value, list)
        and len(texts) == len(value)
        and all(_says(text, item) for text, item in zip(texts, value, strict=True))
    )


def _says(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        said = msgspec.json.decode(text)
        # Servers write both from one value, so the keys are mostly in one order.
        return msgspec.json.encode(said) == msgspec.json.encode(value) or canonical_json(said) == canonical_json(value)
    except (ValueError, RecursionError, UnicodeError):
        return False


def _typed_error(result: Mapping[str, Any]) -> QueryError:
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and structured.get("kind") == "error":
        try:
            return QueryError.from_dict(structured)
        except (KeyError, TypeError, ValueError):
            pass  # an error of some newer shape: its text will do
    content = result.get("content")
    texts = [_text(block) for block in content] if isinstance(content, list) else []
    text = "\n".join(text for text in texts if text)
    return QueryError(
        code=QueryErrorCode.INTERNAL,
        message=text[:MAX_ERROR_TEXT] or "The tool failed and did not say why.",
        next_step="Check the arguments, then the tool server's log.",
    )


def _text(block: Any) -> str | None:
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        text: str = block["text"]
        return text
    return None
