"""`POST /v1/workspaces/{guid}/query` and `/v1/{resourceId}/query`: authenticate, run in a thread, answer or explain.

Between the wire (`query_requests`, `query_answers`) and `Workspace.query`. The event loop only waits: translating,
executing, encoding and compressing happen in the threads of `query_slots`. A query ends with the connection of whoever
asked it.
"""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.kql.errors import KqlCancelledError, KqlError, KqlTimeoutError
from sentinel_rag.workspace.kql.stopping import StopSignal
from sentinel_rag.workspace.serving import query_answers as answers
from sentinel_rag.workspace.serving.query_counts import QueryCounts
from sentinel_rag.workspace.serving.query_requests import QueryBody, RequestPreferences, parse_prefer
from sentinel_rag.workspace.serving.query_slots import LONGEST_QUEUE, ClientGoneError, QuerySlots, TooManyQueriesError
from sentinel_rag.workspace.serving.request_checks import BodyTooLargeError, read_body
from sentinel_rag.workspace.serving.workspace_authentication import WorkspaceAuthentication, encoded, wire_response
from sentinel_rag.workspace.timespans import TimespanError

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

CLIENT_CLOSED_REQUEST = 499
_log = logging.getLogger(__name__)


class QueryEndpoint:
    """Answers queries over one workspace to whoever `door` lets in."""

    def __init__(
        self,
        workspace: Workspace,
        door: WorkspaceAuthentication,
        *,
        max_rows: int,
        max_bytes: int,
        longest_queue: int = LONGEST_QUEUE,
    ) -> None:
        self._workspace = workspace
        self._door = door
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._slots = QuerySlots(waiting=longest_queue)
        self.counts = QueryCounts(self._slots.counts)

    async def __call__(self, request: Request) -> Response:
        correlation_id = str(uuid.uuid4())
        preferences = parse_prefer(request.headers.get("prefer", ""))
        status, body = await self._respond(request, preferences, correlation_id)
        headers = {"preference-applied": preferences.applied} if preferences.applied else {}
        return await wire_response(request, status, body, correlation_id, headers)

    async def _respond(
        self, request: Request, preferences: RequestPreferences, correlation_id: str
    ) -> tuple[int, bytes]:
        refusal = self._door.refusal(request, correlation_id)
        if refusal is not None:
            return refusal
        try:
            raw = await read_body(request)
        except BodyTooLargeError:
            return encoded(413, answers.plain_error("RequestTooLarge", "The request is too large.", correlation_id))
        if not raw or "json" not in request.headers.get("content-type", ""):
            return 200, b""  # what the service does with a request that has no JSON
        try:
            query = msgspec.json.decode(raw, type=QueryBody)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return encoded(400, answers.bad_request(f"The body is not a query: {error}", correlation_id))
        return await self.answer(query, preferences, correlation_id, request)

    async def answer(
        self, query: QueryBody, preferences: RequestPreferences, correlation_id: str, request: Request
    ) -> tuple[int, bytes]:
        """Status and JSON text of one query's answer, once it is its turn. Who asks was checked before; the query ends
        with the connection of `request`, which was read."""
        others = {other.lower() for other in query.workspaces or ()} - {self._door.workspace_id}
        if others:
            return encoded(400, answers.unknown_workspace(correlation_id))
        try:
            status, body = await self._slots.run(
                lambda signal: self._answer(query, preferences, correlation_id, signal), partial(_gone, request)
            )
        except TooManyQueriesError as error:
            return encoded(429, answers.plain_error("ThrottledError", str(error), correlation_id))
        except ClientGoneError:
            return CLIENT_CLOSED_REQUEST, b""  # nobody reads it; access logs know the number from other servers
        self.counts.ended(status)
        return status, body

    def _answer(
        self, query: QueryBody, preferences: RequestPreferences, correlation_id: str, signal: StopSignal
    ) -> tuple[int, bytes]:
        try:
            answer = self._workspace.query(
                query.query,
                timespan=query.timespan,
                max_rows=self._max_rows,
                max_bytes=self._max_bytes,
                timeout_s=preferences.wait_s,
                signal=signal,
            )
        except KqlError as error:
            return encoded(400, answers.query_error(error, correlation_id))
        except TimespanError as error:
            return encoded(400, answers.bad_request(str(error), correlation_id))
        except KqlCancelledError:
            return CLIENT_CLOSED_REQUEST, b""
        except KqlTimeoutError:
            return encoded(504, answers.gateway_timeout(correlation_id))
        except SentinelError as error:
            return encoded(500, answers.plain_error("InternalServerError", str(error), correlation_id))
        except Exception:  # a fault of ours is answered in the service's form, as Azure would
            _log.exception("query %s failed", correlation_id)
            message = "Something went wrong processing your query on the server."
            return encoded(500, answers.plain_error("InternalServerError", message, correlation_id))
        body = answers.answer_body(
            answer, statistics=preferences.statistics, render=preferences.render, kql=query.query
        )
        return encoded(200, body)


async def _gone(request: Request) -> None:
    """Returns when the client has closed its connection: the request was read, so there is nothing else to come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
