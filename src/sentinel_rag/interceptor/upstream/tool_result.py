"""From an MCP `tools/call` answer to an `UpstreamReply`.

The result is `structuredContent` where there is one; else the text of a single text block, as text and never re-typed;
else the list of content blocks. A result marked `isError` becomes the typed error that it carries, or an internal one
with its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.interceptor.upstream.port import Returned, ToolFailed, Unanswered, UpstreamReply

MAX_ERROR_TEXT = 1_000


def unusable(message: str, *, may_have_run: bool = True) -> Unanswered:
    """The server answered with something that is not MCP, or not an answer to this call."""
    return Unanswered(
        Reason.UPSTREAM_FAILED,
        QueryError(
            code=QueryErrorCode.PROTOCOL,
            message=message,
            next_step="Check the tool server's version and its log.",
        ),
        may_have_run,
    )


def reply_of(message: Mapping[str, Any]) -> UpstreamReply:
    """`message` is a JSON-RPC response to a `tools/call` with the right id."""
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
    if result.get("isError"):
        return ToolFailed(_typed_error(result))
    value = _value(result)
    rows = value.get("rows") if isinstance(value, dict) else None
    return Returned(msgspec.json.encode(value), value, len(rows) if isinstance(rows, list) else None)


def _value(result: Mapping[str, Any]) -> Any:
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    content = result.get("content")
    if not content:
        return None
    if isinstance(content, list) and len(content) == 1 and _text(content[0]) is not None:
        return _text(content[0])
    return content


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
