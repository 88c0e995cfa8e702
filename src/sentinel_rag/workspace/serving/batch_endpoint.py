"""`POST /v1/$batch`: several queries in one request, each answered as if it had come alone.

The operation is deprecated and our own client does not use it; azure-monitor-query still offers it, so it is served. An
entry's failure is its own: the request succeeds.
"""

from __future__ import annotations

import uuid
from typing import Any

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.workspace.serving import query_answers as answers
from sentinel_rag.workspace.serving.query_endpoint import QueryEndpoint
from sentinel_rag.workspace.serving.query_requests import QueryBody, parse_prefer
from sentinel_rag.workspace.serving.request_checks import BodyTooLargeError, read_body
from sentinel_rag.workspace.serving.workspace_authentication import WorkspaceAuthentication, encoded, wire_response

MOST_QUERIES = 100


class BatchEntry(msgspec.Struct, frozen=True):
    """One query of a batch; `path` and `method` are what they would be alone."""

    id: str
    body: QueryBody
    workspace: str
    headers: dict[str, str] = {}
    path: str = "/query"
    method: str = "POST"


class BatchBody(msgspec.Struct, frozen=True):
    requests: list[BatchEntry]


class BatchEndpoint:
    """Hands the entries of a batch to `query`, for whoever `door` lets in."""

    def __init__(self, query: QueryEndpoint, door: WorkspaceAuthentication) -> None:
        self._query = query
        self._door = door

    async def __call__(self, request: Request) -> Response:
        correlation_id = str(uuid.uuid4())
        status, body = await self._respond(request, correlation_id)
        return await wire_response(request, status, body, correlation_id)

    async def _respond(self, request: Request, correlation_id: str) -> tuple[int, bytes]:
        refusal = self._door.refusal(request, correlation_id)
        if refusal is not None:
            return refusal
        try:
            batch = msgspec.json.decode(await read_body(request), type=BatchBody)
        except BodyTooLargeError:
            return encoded(413, answers.plain_error("RequestTooLarge", "The request is too large.", correlation_id))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return encoded(400, answers.bad_request(f"The body is not a batch: {error}", correlation_id))
        if not 1 <= len(batch.requests) <= MOST_QUERIES:
            return encoded(400, answers.bad_request(f"A batch holds 1 to {MOST_QUERIES} queries.", correlation_id))
        responses: list[dict[str, Any]] = []

        async def answer(entry: BatchEntry) -> None:
            status, body = await self._answer(entry, correlation_id, request)
            responses.append({"id": entry.id, "status": status, "headers": {}, "body": msgspec.Raw(body)})

        async with anyio.create_task_group() as group:
            for entry in batch.requests:
                group.start_soon(answer, entry)
        return encoded(200, {"responses": responses})

    async def _answer(self, entry: BatchEntry, correlation_id: str, request: Request) -> tuple[int, bytes]:
        if entry.path != "/query" or entry.method != "POST":
            return encoded(404, answers.unknown_path(correlation_id))
        if entry.workspace.lower() != self._door.workspace_id:
            return encoded(400, answers.unknown_workspace(correlation_id))
        headers = {name.lower(): value for name, value in entry.headers.items()}
        preferences = parse_prefer(headers.get("prefer", ""))
        return await self._query.answer(entry.body, preferences, correlation_id, request)
