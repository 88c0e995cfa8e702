"""What a failing answer looks like on each wire: bodies recorded from the services, and what proxies put in between."""

from __future__ import annotations

import base64
import uuid
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from starlette.responses import HTMLResponse, Response
from starlette.types import Message, Receive, Scope, Send

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.workspace.serving import query_answers
from sentinel_rag.workspace.serving.arm.answers import ArmError, refusal

Wire = Literal["logs", "rest"]
_HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


def faulty_answer(wire: Wire, kind: str, *, retry_after_s: int | str | None, conflict_status: int) -> Response:
    """The answer of a request that is not served. Raises ValueError for a kind that has none."""
    headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    if kind == "empty":
        return Response(b"", 200, media_type="application/json")
    if kind == "no_content":
        return Response(status_code=204)
    if kind == "html":
        return HTMLResponse(_HTML, 502)
    if kind == "truncated":  # as a proxy sends it that cuts a body and mends its length
        return Response(b'{"tables":[{"name":"PrimaryResult","colu', 200, media_type="application/json")
    if kind == "too_large":
        error = query_answers.partial_error("Query result set has exceeded the internal data size limit 64000000")
        return Response(msgspec.json.encode({"error": error}), 200, media_type="application/json")
    if kind == "other_columns":
        table = {"name": "PrimaryResult", "columns": [{"name": "Message", "type": "string"}], "rows": [["Welcome."]]}
        return Response(msgspec.json.encode({"tables": [table]}), 200, media_type="application/json")
    if kind == "unauthorized":
        return _challenge(wire)
    if kind == "conflict":
        code = "Conflict" if conflict_status == 409 else "PreconditionFailed"
        return refusal(
            ArmError(conflict_status, code, "Newer data exists: the incident was changed since it was read.")
        )
    status, code, message = {
        "throttled": (429, "TooManyRequests", "The request rate is over its limit."),
        "timeout": (504, "GatewayTimeout", "The gateway did not receive a response within the time limit."),
        "server_error": (500, "InternalServerError", "Something went wrong on the server."),
        "forbidden": (403, "AuthorizationFailed", "The client does not have authorization to perform the action."),
    }[kind]
    headers = headers if kind == "throttled" else {}
    if wire == "rest":
        return refusal(ArmError(status, code, message, headers=headers))
    return Response(
        msgspec.json.encode(_logs_body(kind, message)), status, headers, media_type="application/json; charset=utf-8"
    )


_CLAIMS = base64.b64encode(b'{"access_token":{"nbf":{"essential":true,"value":"1700000000"}}}').decode()


def _challenge(wire: Wire) -> Response:
    """Continuous access evaluation took the token back: 401, with the claims that the next one must carry."""
    message = "Continuous access evaluation resulted in a challenge: the token was revoked."
    challenge = f'Bearer error="insufficient_claims", error_description="{message}", claims="{_CLAIMS}"'
    headers = {"www-authenticate": challenge}
    if wire == "rest":
        return refusal(ArmError(401, "InvalidAuthenticationToken", message, headers=headers))
    body = query_answers.plain_error("AuthenticationFailed", message, str(uuid.uuid4()))
    return Response(msgspec.json.encode(body), 401, headers, media_type="application/json; charset=utf-8")


_LOGS_CODES = {"throttled": "ThrottledError", "forbidden": "InsufficientAccessError"}


def _logs_body(kind: str, message: str) -> dict[str, Any]:
    correlation_id = str(uuid.uuid4())
    if kind == "timeout":
        return query_answers.gateway_timeout(correlation_id)
    code = _LOGS_CODES.get(kind, "InternalServerError")
    return query_answers.plain_error(code, message, correlation_id)


def cut_in_half(body: bytes) -> bytes:
    """A query's answer with half of its rows and the error that the service puts beside a cut result."""
    answer = msgspec.json.decode(body)
    rows = answer["tables"][0]["rows"]
    kept = len(rows) // 2
    answer["tables"][0]["rows"] = rows[:kept]
    reason = f"Query result set has exceeded the internal record count limit {kept}"
    return msgspec.json.encode({**answer, "error": query_answers.partial_error(reason)})


async def late_request(scope: Scope, receive: Receive, now: datetime, delay_s: float) -> tuple[Scope, Receive]:
    """The query as a log answers it whose rows come `delay_s` late: what is newer is not there yet, and
    ingestion_time() tells so much more than TimeGenerated. A timespan that is a duration stays as it is."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    try:
        asked = msgspec.json.decode(bytes(body))
        newest = format_time(now - timedelta(seconds=delay_s))
        start, _, end = str(asked.get("timespan") or "1970-01-01T00:00:00Z/").partition("/")
        if not start.startswith("P"):
            asked["timespan"] = f"{start}/{min(end, newest) if end else newest}"
        asked["query"] = asked["query"].replace("ingestion_time()", f"(TimeGenerated + {round(delay_s)}s)")
        body = bytearray(msgspec.json.encode(asked))
    except (msgspec.DecodeError, KeyError, AttributeError):
        pass  # no query; the route says so
    kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    scope = {**scope, "headers": [*kept, (b"content-length", str(len(body)).encode())]}

    told = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def again() -> Message:
        return told.pop() if told else await receive()  # after the body, only that the caller has left

    return scope, again


async def broken_answer(send: Send) -> None:
    """Promise more bytes than come: the server closes the connection in the middle."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})
