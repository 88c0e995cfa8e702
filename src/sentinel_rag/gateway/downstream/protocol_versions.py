"""Which era of MCP a request is of, and whether its headers say what its body says.

2026-07-28 has no sessions: each request carries its version and the client's capabilities, and headers repeat what a
proxy would route by. The revisions of 2025 open with `initialize` and name the session that it gave. A header that
disagrees with the body is refused, because whoever reads the header alone would have seen another request.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from starlette.datastructures import Headers

from sentinel_rag.gateway.downstream.messages import ClientMessage, Code, Notification, Request, RpcFault

STATELESS = "2026-07-28"
WITH_SESSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
"""Oldest first."""

SERVED = (*WITH_SESSIONS, STATELESS)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"

_REPEATING = frozenset(name.encode() for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER))
_ENCODED = re.compile(r"=\?base64\?(?P<payload>[A-Za-z0-9+/=]*)\?=")


class ProtocolVersion(Enum):
    """Whether a client opens a session and goes on in it."""

    SESSIONS = "sessions"
    STATELESS = "stateless"


def era_of(headers: Headers, message: ClientMessage) -> ProtocolVersion:
    """The era of a message. Raises RpcFault for a version that is not served, and for headers that disagree with each
    other or with the body."""
    said = _said(headers)
    version = said.get(VERSION_HEADER)
    meta = message.meta if isinstance(message, Request) else {}
    if isinstance(message, Request) and message.method == "initialize" and VERSION_KEY not in meta:
        if version == STATELESS:
            raise RpcFault(Code.METHOD_NOT_FOUND, f"MCP {STATELESS} has no initialize.")
        return ProtocolVersion.SESSIONS  # it settles the version; what its header says is not known yet
    if version != STATELESS and VERSION_KEY not in meta:
        if version not in (None, *WITH_SESSIONS):
            raise _unsupported(version)
        return ProtocolVersion.SESSIONS
    if isinstance(message, Request):
        _check_stateless(said, message)
    return ProtocolVersion.STATELESS


def _check_stateless(said: Mapping[str, str], request: Request) -> None:
    meta = request.meta
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcFault(Code.INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    if said.get(VERSION_HEADER) != meta[VERSION_KEY]:
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {VERSION_HEADER} is not the version in params._meta.")
    if said.get(METHOD_HEADER) != request.method:
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {METHOD_HEADER} is not the method.")
    if request.method == "tools/call" and decoded(said.get(NAME_HEADER)) != request.params.get("name"):
        raise RpcFault(Code.HEADER_MISMATCH, f"The header {NAME_HEADER} is not the tool's name.")
    if meta[VERSION_KEY] != STATELESS:
        raise _unsupported(meta[VERSION_KEY])


def _said(headers: Headers) -> Mapping[str, str]:
    """The headers that repeat a body. White space around a value is none of it (RFC 9110), and the parser below leaves
    some of it. Raises RpcFault for one that is there twice."""
    said: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        if raw_name in _REPEATING:
            name = raw_name.decode()
            if name in said:
                raise RpcFault(Code.HEADER_MISMATCH, f"The header {name} is there more than once.")
            said[name] = raw_value.decode("latin-1").strip(" \t")
    return said


def _unsupported(version: Any) -> RpcFault:
    data = {"supported": list(SERVED), "requested": version}
    return RpcFault(Code.UNSUPPORTED_VERSION, "This version of MCP is not served.", data=data)


def negotiated(wanted: Any, served: Sequence[str] = WITH_SESSIONS) -> str:
    """The version of a session that `initialize` asks for: that one if it is served, else the newest."""
    return wanted if isinstance(wanted, str) and wanted in served else served[-1]


def decoded(header: str | None) -> str | None:
    """The text of a header that may be wrapped, `=?base64?...?=`; None for one that is wrapped in a wrong way."""
    wrapped = _ENCODED.fullmatch(header or "")
    if wrapped is None:
        return header
    payload = wrapped["payload"]
    try:
        text = base64.b64decode(payload, validate=True)
        # Two spellings of one text would be two readings.
        return text.decode() if base64.b64encode(text).decode() == payload else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def is_cancellation(message: ClientMessage) -> bool:
    """Whether a client says that it does not wait for a request any more."""
    return isinstance(message, Notification) and message.method == "notifications/cancelled"
