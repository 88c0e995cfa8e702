"""Bodies of `POST /mcp`: refused with a code of JSON-RPC, or read as the one message that other parsers read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from starlette.datastructures import Headers
from tests.support.body_mutations import TOKENS
from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.gateway.downstream.messages import (
    STATELESS,
    VERSION_KEY,
    ClientAnswer,
    ClientMessage,
    Notification,
    ProtocolVersion,
    Request,
    RpcFault,
    era_of,
    error_bytes,
    read_message,
    result_bytes,
)
from sentinel_rag.gateway.request_body import MalformedBody, parse_object

META = {VERSION_KEY: STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
VALID: tuple[bytes, ...] = tuple(
    json.dumps({"jsonrpc": "2.0", **message}).encode()
    for message in (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "notifications/cancelled", "params": {"requestId": "a"}},
        {"id": "sentinel-1", "result": {"action": "accept", "content": {"approve": True}}},
        {"id": -5, "error": {"code": -32601, "message": "no"}},
        {"id": 2, "method": "tools/call", "params": {"name": "\u00e9 x", "arguments": {"a": [1, 2.5]}, "_meta": META}},
        {"id": "3", "method": "tools/list", "params": {"_meta": {**META, "progressToken": 7, "traceparent": "00-"}}},
    )
)
MORE = (
    b'"method":"ping",',
    b'"id":true,',
    b'"id":null,',
    b'"params":[],',
    b'"_meta":"x",',
    b'"result":{},',
    b'"error":1,',
)


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    try:
        message = read_message(parse_object(content))
    except MalformedBody as refused:
        expect(str(refused) != "", "a refusal says nothing")
        return
    except RpcFault as fault:
        told = msgspec.json.decode(error_bytes(fault))
        expect(told["error"]["code"] < 0 and told["error"]["message"] != "", "a refusal has no code or says nothing")
        return
    read = json.loads(content)
    expect(
        _written(message) == {key: value for key, value in read.items() if key != "error"}, "it reads something else"
    )
    if isinstance(message, Request):
        told = msgspec.json.decode(result_bytes(message.request_id, {}))
        same = type(told["id"]) is type(read["id"]) and told["id"] == read["id"]
        expect(same, "the answer has another id")
    try:
        era = era_of(Headers({}), message)
    except RpcFault:
        return
    # Without a header no request passes for one of the era in which headers repeat the body.
    expect(era is ProtocolVersion.SESSIONS or not isinstance(message, Request), "the body alone settles the era")


def _written(message: ClientMessage) -> dict[str, object]:
    match message:
        case Request(request_id, method, params):
            written: dict[str, object] = {"jsonrpc": "2.0", "id": request_id, "method": method}
            return {**written, "params": params} if params else written
        case Notification(method, params):
            return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        case ClientAnswer(request_id, result):
            return {"jsonrpc": "2.0", "id": request_id, **({} if result is None else {"result": result})}


def _seeds() -> Sequence[bytes]:
    return VALID


MCP_MESSAGE = Target(
    name="mcp-message",
    promise="A message of an MCP client is refused with a code and a sentence, or it is the one that Python's parser "
    "reads; its answer has its id, in its type; and no body passes for a request of the era without sessions unless "
    "headers say the same.",
    opened=_opened,
    seeds=_seeds,
    tokens=(*TOKENS, *MORE),
    calls=(400, 40),
)
