"""From an MCP `tools/call` answer to an `UpstreamReply`, with every part of the result in it.

The value of a result is its `structuredContent` where there is one; content blocks beside it that say something else
are kept under `OTHER_CONTENT`, so that a pointer into the structured part means the same with and without them. Without
structured content it is the text of a single text block, as text and never re-typed, or the list of content blocks, or
null for none. A result marked `isError` becomes the typed error that it carries, or an internal one with its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.trusted_meta import row_labels_in
from sentinel_rag.gateway.upstream.port import Returned, ToolFailed, UpstreamReply, unusable

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
