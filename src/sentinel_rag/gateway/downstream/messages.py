"""JSON-RPC messages of an MCP client as values, and the bytes of what is answered.

The body was parsed once, strictly, by `request_body`; here it is only told what kind of message it is. Batches, which
one revision of 2025 had, are not taken: one body holds one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec

from sentinel_rag.contracts.json_values import JsonObject

RequestId = int | str

MAX_ID = 256
"""Characters of an id, a method or a token that a client chooses."""


class Code(IntEnum):
    """Error codes of JSON-RPC and of MCP."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    HEADER_MISMATCH = -32020
    UNSUPPORTED_VERSION = -32022


@dataclass(frozen=True, slots=True)
class Request:
    """Wants an answer under its id, which is unique among the client's requests of a session."""

    request_id: RequestId
    method: str
    params: JsonObject

    @property
    def meta(self) -> JsonObject:
        """`params._meta`; empty where there is none."""
        return meta_of(self.params)


@dataclass(frozen=True, slots=True)
class Notification:
    """Wants no answer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client says to a request of ours; `result` is None where it says that it failed."""

    request_id: RequestId
    result: JsonObject | None


ClientMessage = Request | Notification | Answer


class RpcFault(Exception):
    """The message gets an error for an answer. `data` may be shown to the client."""

    def __init__(self, code: Code, message: str, *, data: Any = None, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.request_id = request_id

    def for_request(self, request_id: RequestId | None) -> RpcFault:
        """The same as the answer to that request."""
        return RpcFault(self.code, str(self), data=self.data, request_id=request_id)


def read_message(document: Mapping[str, Any]) -> ClientMessage:
    """The message that a parsed body is. Raises RpcFault."""
    known = {"jsonrpc", "id", "method", "params", "result", "error"}
    request_id = document.get("id")
    if "id" in document and not is_id(request_id):
        raise RpcFault(Code.INVALID_REQUEST, "id must be a text or a whole number.")
    answered = request_id if is_id(request_id) else None
    if document.get("jsonrpc") != "2.0" or document.keys() - known:
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=answered)
    if "method" in document:
        return _asked(document, request_id)
    result = document.get("result")
    is_answer = isinstance(result, dict) if "result" in document else "error" in document
    if request_id is None or not is_answer or ("result" in document and "error" in document):
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=answered)
    return Answer(request_id, result)


def _asked(document: Mapping[str, Any], request_id: Any) -> Request | Notification:
    method, params = document["method"], document.get("params", {})
    if not isinstance(method, str) or not 0 < len(method) <= MAX_ID or "result" in document or "error" in document:
        raise RpcFault(Code.INVALID_REQUEST, "The body must be one JSON-RPC 2.0 message.", request_id=request_id)
    if not isinstance(params, dict):
        raise RpcFault(Code.INVALID_PARAMS, "params must be an object.", request_id=request_id)
    if "_meta" in params and not isinstance(params["_meta"], dict):
        raise RpcFault(Code.INVALID_PARAMS, "params._meta must be an object.", request_id=request_id)
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a request, or a progress token. True is a number to Python only."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and len(value) <= MAX_ID)


def meta_of(params: JsonObject) -> JsonObject:
    """`_meta` of params that `read_message` has read; empty where there is none."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def result_bytes(request_id: RequestId, result: Mapping[str, Any]) -> bytes:
    """The answer to a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_bytes(fault: RpcFault) -> bytes:
    """The answer that says why there is no result."""
    error: dict[str, Any] = {"code": fault.code.value, "message": str(fault)}
    if fault.data is not None:
        error["data"] = fault.data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": fault.request_id, "error": error})


def request_bytes(request_id: RequestId, method: str, params: Mapping[str, Any]) -> bytes:
    """A request to the client."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_bytes(method: str, params: Mapping[str, Any]) -> bytes:
    """Something that the client is told."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})
