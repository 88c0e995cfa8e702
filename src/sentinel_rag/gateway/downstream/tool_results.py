"""What the gate and the catalogue say, as MCP's results: a list of tools, and the outcome of a call.

A result is `structuredContent` beside its JSON as text, for clients that read one of the two. Labels, the context of
the session and the record's id stand in `_meta`, where a model does not read them. A refusal is a result with
`isError`, so that a model learns the reason and goes on; its body is the one of `POST /v1/proxy-execute`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.outcomes import Completed, DeniedCall, Outcome
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.policy.fields import Exposure, pointer_text
from sentinel_rag.gateway.responses import body_of

LABEL = "sentinel-rag/label"
"""The label of a result, or the level that a denial names: `{"sensitivity": ..., "integrity": ...}`."""

CONTEXT = "sentinel-rag/context"
"""The label of the session once the result is told."""

EXPOSURE = "sentinel-rag/exposure"
"""What the policy says of parts of the result, where it quotes some: `[{"path": ..., "mode": ...}]`, as in the policy
file. The quoted texts themselves come plain, so that a client reads each result in its tool's own form."""

AUDIT_ID = "sentinel-rag/audit-id"
SESSION = "sentinel-rag/session"
"""From the client: the session of its own in which a call runs. In a result: the session in which it ran."""

HEADER_ANNOTATION = "x-mcp-header"

_SHOWN = {"image": "image/", "audio": "audio/"}
_HELD = ("uri", "mimeType", "text", "blob")
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def listed(offered: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`tools` of `tools/list`, of the catalogue's wire form. Hints follow the policy's `effect`, whatever the server
    says of itself. There is no `outputSchema`: what the policy hides of a result would not fit the server's."""
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": _without_headers(tool["parameters"]),
            "annotations": _HINTS[tool["effect"]],
            "_meta": {"sentinel-rag/effect": tool["effect"], "sentinel-rag/aliases": tool["aliases"]},
        }
        for tool in offered
    ]


_HINTS: Mapping[str, Mapping[str, bool]] = {
    Effect.READ.value: {"readOnlyHint": True, "openWorldHint": False},
    Effect.WRITE.value: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
    Effect.EXTERNAL.value: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


def _without_headers(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what would make clients repeat arguments in headers: the arguments stand in the body alone."""
    properties = schema["properties"]
    shown = {
        name: {key: _stripped(value) for key, value in each.items() if key != HEADER_ANNOTATION}
        for name, each in properties.items()
    }
    return {**schema, "properties": shown}


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if key != HEADER_ANNOTATION}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


def result_of(outcome: Outcome, session_id: str) -> dict[str, Any]:
    """The result of `tools/call`."""
    meta: dict[str, Any] = {AUDIT_ID: outcome.audit_id, SESSION: session_id}
    if isinstance(outcome, Completed):
        meta |= {LABEL: outcome.label.to_dict(), CONTEXT: outcome.context.to_dict()}
        if any(entry.mode is Exposure.QUOTE for entry in outcome.exposures):
            meta[EXPOSURE] = [{"path": pointer_text(each.path), "mode": each.mode.value} for each in outcome.exposures]
        return {**_content(outcome.encoded), "isError": False, "_meta": meta}
    body = body_of(outcome)
    if isinstance(outcome, DeniedCall):
        meta[LABEL] = _level(outcome)
    return {
        "content": [{"type": "text", "text": sentence_of(outcome)}],
        "structuredContent": body,
        "isError": True,
        "_meta": meta,
    }


def _level(denied: DeniedCall) -> dict[str, str]:
    label: Label = denied.deny.label
    return label.to_dict()


def sentence_of(outcome: Outcome) -> str:
    """What a model reads of a call without a result: the sentence, the reason code and what to do."""
    assert not isinstance(outcome, Completed)
    if isinstance(outcome, DeniedCall):
        said = f"{outcome.deny.sentence()} (reason: {outcome.deny.reason.value})."
        if outcome.approval_id is not None:
            said += (
                f" A person has to decide approval {outcome.approval_id} first, with a key of their own: "
                "tell the user, and call again with the same arguments once it is approved."
            )
        return f"{said} {outcome.note}".rstrip()
    next_step = "" if outcome.error is None else outcome.error.next_step
    return f"{outcome.detail} (reason: {outcome.reason.value}) {next_step}".rstrip()


def _content(encoded: bytes) -> dict[str, Any]:
    """`content`, and `structuredContent` for an object; any other value is no structured content in every revision."""
    if encoded[:1] == b"{":
        text = {"type": "text", "text": encoded.decode()}
        return {"content": [text, *_beside(encoded)], "structuredContent": msgspec.Raw(encoded)}
    value = msgspec.json.decode(encoded)
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, dict) and each.get("type") in _BLOCKS for each in value)
    ):
        return {"content": [_block(each) for each in value]}
    return {"content": [{"type": "text", "text": encoded.decode()}]}


def _beside(encoded: bytes) -> list[dict[str, Any]]:
    """The pictures and sounds that a server sent beside its structured content."""
    if b'"_mcp_content"' not in encoded:
        return []
    blocks = msgspec.json.decode(encoded).get("_mcp_content")
    shown = [_block(each) for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
    return [block for block in shown if block["type"] in _SHOWN]


def _holds(resource: Mapping[str, Any]) -> bool:
    """Whether a resource brings its content along, in exactly one form."""
    if not isinstance(resource.get("mimeType", ""), str):
        return False
    return [isinstance(resource[key], str) for key in ("text", "blob") if key in resource] == [True]


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as a server sent it, if it holds what it shows: a text, a picture, a sound, a resource with its content.
    Anything else comes as text, so that no client fetches what it names."""
    kind = block.get("type")
    data, mime = block.get("data"), block.get("mimeType")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    held = block.get("resource")
    if kind == "resource" and isinstance(held, dict) and isinstance(held.get("uri"), str) and _holds(held):
        return {"type": "resource", "resource": {key: held[key] for key in _HELD if key in held}}
    if kind in _SHOWN and isinstance(data, str) and isinstance(mime, str) and mime.startswith(_SHOWN[kind]):
        return {"type": kind, "data": data, "mimeType": mime}
    return {"type": "text", "text": msgspec.json.encode(block).decode()}
