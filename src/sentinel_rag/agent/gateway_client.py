"""The agent's only wire: tool calls over HTTP to the gateway.

Implements `contracts.ports.ToolGateway` on `POST /v1/proxy-execute`. Whatever goes wrong on the way comes back as a
`Failed` that names the next step; nothing is raised and nothing is retried here (see `RetryOnce`). It holds the
gateway's address and key and no other credential.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from sentinel_rag.agent.tool_runs import tool_span, trace_response
from sentinel_rag.contracts.handles import as_handles, as_text, quoted_in
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_calls import (
    Denied,
    DocumentResult,
    Failed,
    OfferedTool,
    Reason,
    Succeeded,
    ToolCall,
    ToolOutcome,
    ToolSchema,
)
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME
from sentinel_rag.telemetry import traceparent

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientResponse, ClientSession

PATH = "/v1/proxy-execute"
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MAX_RESPONSE_BYTES = 64 * 1024 * 1024

_CODES: dict[int, tuple[QueryErrorCode, str]] = {
    400: (QueryErrorCode.INVALID_ARGUMENT, "Ask in other words; if it stays, the agent and the gateway do not match."),
    401: (QueryErrorCode.ACCESS_DENIED, "Check SENTINEL_API_KEY: the gateway does not accept this key."),
    404: (QueryErrorCode.ACCESS_DENIED, "Start a new session; if it stays, check SENTINEL_URL."),
    409: (QueryErrorCode.ACCESS_DENIED, "Start a new session: this one belongs to another key or is in use."),
    413: (QueryErrorCode.INVALID_ARGUMENT, "Ask with shorter values."),
    415: (QueryErrorCode.PROTOCOL, "The agent and the gateway do not match: install one version of both."),
    422: (QueryErrorCode.INVALID_ARGUMENT, "Ask with another value for the argument that is named."),
    429: (QueryErrorCode.THROTTLED, "Wait a moment and ask again."),
    500: (QueryErrorCode.INTERNAL, "Look up the audit id in the gateway's log."),
    502: (QueryErrorCode.UNAVAILABLE, "Run `sentinel doctor`: the tool server did not answer the gateway."),
    503: (QueryErrorCode.UNAVAILABLE, "Wait and ask again; `sentinel status` tells whether the gateway is up."),
    504: (QueryErrorCode.TIMEOUT, "Ask for a shorter time window or add a filter."),
}


class HttpToolGateway:
    """`ToolGateway` over a kept-alive connection. `timeout_s` bounds one call from connecting to the last byte.
    `trusted` is what the gateway's certificate is checked by, None the system's authorities."""

    def __init__(
        self, url: str, api_key: str, timeout_s: float = 60.0, *, trusted: ssl.SSLContext | None = None
    ) -> None:
        self._base_url = url.rstrip("/")
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._trusted = trusted
        self._session: ClientSession | None = None

    async def execute(self, call: ToolCall) -> ToolOutcome:
        """Judge and run one call; never raises for a refusal, a failing tool or a gateway that is away."""
        body = {"session_id": call.session_id, "tool_name": call.tool_name, "args": as_handles(dict(call.arguments))}
        try:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            said, step = "The question holds a character that cannot be sent.", "Type it again instead of pasting it."
            return _failed(call, QueryErrorCode.INVALID_ARGUMENT, said, step)
        with tool_span(call) as span:
            status, outcome = await self._post(call, data)
            trace_response(span, call, status, outcome)
        return outcome

    async def _post(self, call: ToolCall, data: bytes) -> tuple[int | None, ToolOutcome]:
        """The status of the gateway's answer and what it says; without a status where there is no answer."""
        import aiohttp

        place = traceparent()
        headers = {"Content-Type": "application/json"} | ({} if place is None else {"traceparent": place})
        url = self._base_url + PATH
        try:
            async with self._connection().post(url, data=data, headers=headers, allow_redirects=False) as response:
                raw = await _read_bounded(response)
                retry_after = response.headers.get("Retry-After", "")
                return response.status, read_response(call, response.status, raw, retry_after=retry_after)
        except TimeoutError:
            code = QueryErrorCode.TIMEOUT
            said = f"The gateway did not answer within {self._timeout_s:g} seconds."
            next_step = "Ask for a shorter time window, or raise the time-out."
        except aiohttp.InvalidURL:
            code, said = QueryErrorCode.UNAVAILABLE, f"{self._base_url!r} is not the address of a gateway."
            next_step = "Set SENTINEL_URL to an address such as http://127.0.0.1:8080."
        except (aiohttp.ClientConnectionError, OSError):
            code, said = QueryErrorCode.UNAVAILABLE, f"The gateway at {self._base_url} cannot be reached."
            next_step = "Start it with `sentinel up`, or check SENTINEL_URL."
        except (aiohttp.ClientError, _TooLargeError) as error:
            code = QueryErrorCode.PROTOCOL
            said = f"The gateway's answer could not be read ({type(error).__name__.strip('_')})."
            next_step = "Ask again; if it stays, check that SENTINEL_URL is the gateway."
        return None, _failed(call, code, said, next_step)

    async def offered_tools(self) -> frozenset[str]:
        """What `GET /v1/tools` lists; none if the gateway is away or answers something else."""
        return frozenset(str(tool["name"]) for tool in await self._listed() if isinstance(tool.get("name"), str))

    async def offered_schemas(self, session_id: str = "") -> tuple[OfferedTool, ...]:
        """The same, as a model is told of them: tools of other makers too, in the gateway's order, with what the
        session refuses at present. One whose form no model takes is left out."""
        # A session that the gateway does not know yet has read nothing that could refuse a tool.
        listed = (await self._listed(session_id) if session_id else []) or await self._listed()
        return tuple(offered for tool in listed if (offered := _offered(tool)) is not None)

    async def _listed(self, session_id: str = "") -> list[dict[str, Any]]:
        _, body = await self._get("/v1/tools" + (f"?session_id={quote(session_id, safe='')}" if session_id else ""))
        tools = body.get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    async def knows_session(self, session_id: str) -> bool | None:
        """Whether the gateway knows the session and it is open; None if the gateway does not say."""
        status, body = await self._get(f"/v1/sessions/{quote(session_id, safe='')}")
        if status == 404:
            return False
        return body["closed"] is False if "closed" in body else None

    async def _get(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status of an answer, 0 without one, and its JSON object; an empty one for any other body or status."""
        import aiohttp

        try:
            async with self._connection().get(self._base_url + path, allow_redirects=False) as response:
                body = json.loads(await _read_bounded(response)) if response.status == 200 else {}
                return response.status, body if isinstance(body, dict) else {}
        except (aiohttp.ClientError, OSError, _TooLargeError, ValueError):
            return 0, {}

    def _connection(self) -> ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._trusted or True),
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
                headers={"X-API-Key": self._api_key},
                trust_env=False,
            )
        return self._session

    async def aclose(self) -> None:
        """Close the connections. The gateway may be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _TooLargeError(Exception):
    """The body is larger than any result can be."""


async def _read_bounded(response: ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_RESPONSE_BYTES:
            raise _TooLargeError
        parts.append(part)
    return b"".join(parts)


def read_response(call: ToolCall, status: int, raw: bytes, *, retry_after: str = "") -> ToolOutcome:
    """One HTTP response as a `ToolOutcome`; a body that is not the gateway's becomes a `Failed`."""
    try:
        body = json.loads(raw)
        if not isinstance(body, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError):
        elsewhere = (
            QueryErrorCode.PROTOCOL,
            "Check that SENTINEL_URL is the gateway and not a proxy or another service.",
        )
        code, step = _CODES.get(status, elsewhere)
        return _failed(call, code, f"The gateway answered with status {status} and no JSON.", step)
    audit_id = str(body.get("audit_id") or "")
    if status == 200:
        return _read_success(call, body, audit_id)
    detail = str(body.get("detail") or f"The gateway answered with status {status}.")
    if status == 403:
        rule_id, approval_id = (None if body.get(key) is None else str(body[key]) for key in ("rule_id", "approval_id"))
        return Denied(
            call,
            _reason(body),
            detail,
            rule_id,
            audit_id,
            approval_id,
            str(body.get("note") or ""),
            str(body.get("decided_by") or ""),
            body.get("at_yes") == "run",
        )
    error = _error_in(body.get("error"))
    if error is None:
        code, step = _CODES.get(status, (QueryErrorCode.PROTOCOL, "Ask again; if it stays, run `sentinel doctor`."))
        wait = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
        error = QueryError(code=code, message=detail, next_step=step, retry_after_s=wait)
    return Failed(call, error, audit_id)


def _read_success(call: ToolCall, body: Mapping[str, Any], audit_id: str) -> ToolOutcome:
    quoted = quoted_in(body.get("result"))
    result = as_text(body.get("result"))
    if isinstance(result, dict) and result.get("kind") == "error":
        error = _error_in(result)
        if error is not None:
            return Failed(call, error, audit_id)
    if call.tool_name not in TOOLS_BY_NAME and not (isinstance(result, dict) and result.get("kind") == "result"):
        return Succeeded(call, DocumentResult(result), audit_id, quoted)
    try:
        if not isinstance(result, dict) or not all(isinstance(row, dict) for row in result["rows"]):
            raise TypeError("no rows")
        read = QueryResult.from_dict(result)
        if not isinstance(read.summary, dict):
            raise TypeError("no summary")
    except (KeyError, TypeError, ValueError, AttributeError):
        said = f"The result of {call.tool_name} does not have the agreed shape."
        step = "The agent and the tool server do not match: install one version of both."
        return _failed(call, QueryErrorCode.PROTOCOL, said, step, audit_id)
    return Succeeded(call, read, audit_id, quoted)


def _offered(tool: Mapping[str, Any]) -> OfferedTool | None:
    """One entry of the gateway's list; None for a name or a schema that the chat completions wire does not take."""
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name) or not isinstance(parameters, dict):
        return None
    properties = parameters.get("properties") or {}
    if parameters.get("type", "object") != "object" or not isinstance(properties, dict):
        return None
    schema = ToolSchema(
        name, str(tool.get("description") or ""), {**parameters, "type": "object", "properties": properties}
    )
    refused = str(tool.get("why") or tool.get("reason") or "") if tool.get("refused_now") is True else ""
    return OfferedTool(schema, tool.get("effect") == "read", refused)


def _error_in(data: object) -> QueryError | None:
    if not isinstance(data, dict):
        return None
    try:
        return QueryError.from_dict(data)
    except (KeyError, TypeError, ValueError):
        return None


def _reason(body: Mapping[str, Any]) -> Reason:
    try:
        return Reason(str(body.get("reason")))
    except ValueError:
        return Reason.RULE_DENIES


def _failed(call: ToolCall, code: QueryErrorCode, message: str, next_step: str, audit_id: str = "") -> Failed:
    return Failed(call, QueryError(code=code, message=message, next_step=next_step), audit_id)
