"""`POST /v1/workspaces/{guid}/query` and `/v1/{resourceId}/query`: authenticate, run in a thread, answer or explain.

Between the wire (`query_requests`, `query_answers`) and `Workspace.query`. The event loop only waits: translating,
executing, encoding and compressing happen in at most five worker threads, as the service allows five queries a user.
"""

from __future__ import annotations

import gzip
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.kql.errors import KqlError, KqlTimeoutError
from sentinel_rag.workspace.serving import query_answers as answers
from sentinel_rag.workspace.serving.identity import LOG_ANALYTICS_AUDIENCES, TokenIssuer, TokenVerdict, bearer_token
from sentinel_rag.workspace.serving.loopback_guard import BodyTooLargeError, read_body
from sentinel_rag.workspace.serving.query_requests import Preferences, QueryBody, parse_prefer
from sentinel_rag.workspace.timespans import TimespanError

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

CONCURRENT_QUERIES = 5
_COMPRESS_FROM_BYTES = 1400
_log = logging.getLogger(__name__)


class QueryEndpoint:
    """Answers queries over one workspace, which has the GUID `workspace_id`."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        workspace_id: str,
        issuer: TokenIssuer,
        max_rows: int = 500_000,
        max_bytes: int = 64_000_000,
    ) -> None:
        self._workspace = workspace
        self._workspace_id = workspace_id.lower()
        self._issuer = issuer
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._limiter = CapacityLimiter(CONCURRENT_QUERIES)

    async def __call__(self, request: Request) -> Response:
        correlation_id = str(uuid.uuid4())
        preferences = parse_prefer(request.headers.get("prefer", ""))
        status, body = await self._respond(request, preferences, correlation_id)
        headers = {"x-ms-request-id": correlation_id, "cache-control": "no-store"}
        if preferences.applied:
            headers["preference-applied"] = preferences.applied
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        wants_gzip = "gzip" in request.headers.get("accept-encoding", "")
        if wants_gzip and len(body) >= _COMPRESS_FROM_BYTES:
            body = await to_thread.run_sync(gzip.compress, body, 1)
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
        return Response(body, status, headers, media_type="application/json; charset=utf-8")

    async def _respond(self, request: Request, preferences: Preferences, correlation_id: str) -> tuple[int, bytes]:
        refusal = self._refusal(request, correlation_id)
        if refusal is not None:
            return refusal
        try:
            raw = await read_body(request)
        except BodyTooLargeError:
            return _encoded(413, answers.plain_error("RequestTooLarge", "The request is too large.", correlation_id))
        if not raw or "json" not in request.headers.get("content-type", ""):
            return 200, b""  # what the service does with a request that has no JSON
        try:
            query = msgspec.json.decode(raw, type=QueryBody)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _encoded(400, answers.bad_request(f"The body is not a query: {error}", correlation_id))
        others = {other.lower() for other in query.workspaces or ()} - {self._workspace_id}
        if others:
            return _encoded(400, answers.unknown_workspace(correlation_id))
        return await to_thread.run_sync(self._answer, query, preferences, correlation_id, limiter=self._limiter)

    def _refusal(self, request: Request, correlation_id: str) -> tuple[int, bytes] | None:
        token = bearer_token(request)
        if token is None:
            message = "Authentication failed. The 'Authorization' header is missing."
            return _encoded(401, answers.plain_error("AuthenticationFailed", message, correlation_id))
        verdict = self._issuer.judge(token, LOG_ANALYTICS_AUDIENCES)
        if verdict is TokenVerdict.UNKNOWN:
            message = "The provided authentication is not valid for this resource."
            return _encoded(403, answers.plain_error("InvalidAuthenticationToken", message, correlation_id))
        if verdict is TokenVerdict.WRONG_AUDIENCE:
            message = "The token was issued for another audience."
            return _encoded(403, answers.plain_error("InvalidAuthenticationTokenAudience", message, correlation_id))
        guid = request.path_params.get("workspace_id")
        if guid is not None and guid.lower() != self._workspace_id:
            return _encoded(400, answers.unknown_workspace(correlation_id))
        resource = request.path_params.get("resource_id")
        if resource is not None and not _names_workspace(resource):
            return _encoded(404, answers.unknown_path(correlation_id))
        return None

    def _answer(self, query: QueryBody, preferences: Preferences, correlation_id: str) -> tuple[int, bytes]:
        try:
            answer = self._workspace.query(
                query.query,
                timespan=query.timespan,
                max_rows=self._max_rows,
                max_bytes=self._max_bytes,
                timeout_s=preferences.wait_s,
            )
        except KqlError as error:
            return _encoded(400, answers.query_error(error, correlation_id))
        except TimespanError as error:
            return _encoded(400, answers.bad_request(str(error), correlation_id))
        except KqlTimeoutError:
            return _encoded(504, answers.gateway_timeout(correlation_id))
        except SentinelError as error:
            return _encoded(500, answers.plain_error("InternalServerError", str(error), correlation_id))
        except Exception:
            _log.exception("query %s failed", correlation_id)
            message = "Something went wrong processing your query on the server."
            return _encoded(500, answers.plain_error("InternalServerError", message, correlation_id))
        body = answers.answer_body(
            answer, statistics=preferences.statistics, render=preferences.render, kql=query.query
        )
        return _encoded(200, body)


def _names_workspace(resource_id: str) -> bool:
    parts = [part.lower() for part in resource_id.strip("/").split("/")]
    return parts[:1] == ["subscriptions"] and parts[-3:-1] == ["microsoft.operationalinsights", "workspaces"]


def _encoded(status: int, body: Mapping[str, Any]) -> tuple[int, bytes]:
    return status, msgspec.json.encode(body)
