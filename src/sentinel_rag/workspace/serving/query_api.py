"""The query API of Log Analytics: one query, a batch, the metadata; five run at once, two hundred wait."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.queries import KqlCancelledError, KqlError, KqlTimeoutError, StopSignal, TimespanError
from sentinel_rag.workspace.serving import query_answers as answers
from sentinel_rag.workspace.serving.authentication import (
    BodyTooLargeError,
    WorkspaceAuthentication,
    encoded,
    read_body,
    wire_response,
)

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace


DEFAULT_WAIT_S = 180
MAX_WAIT_S = 600


class QueryBody(msgspec.Struct, frozen=True):
    """The JSON body. azure-monitor-query always sends all three keys."""

    query: str
    timespan: str | None = None
    workspaces: list[str] | None = None


@dataclass(frozen=True, slots=True)
class RequestPreferences:
    """What the Prefer header asked for; `applied` is the text of Preference-Applied."""

    wait_s: int = DEFAULT_WAIT_S
    statistics: bool = False
    render: bool = False
    applied: str = ""


def parse_prefer(header: str) -> RequestPreferences:
    """`wait=600,include-statistics=true`; an empty header is what the SDK sends when it wants nothing."""
    wait, statistics, render = DEFAULT_WAIT_S, False, False
    applied: list[str] = []
    for part in header.replace(";", ",").split(","):
        name, _, value = part.strip().partition("=")
        name, value = name.strip().lower(), value.strip().strip('"').lower()
        if name == "wait" and value.isdigit() and int(value) > 0:
            wait = min(int(value), MAX_WAIT_S)
            applied.append(f"wait={wait}")
        elif name == "include-statistics" and value == "true":
            statistics = True
            applied.append("include-statistics=true")
        elif name == "include-render" and value == "true":
            render = True
            applied.append("include-render=true")
    return RequestPreferences(wait, statistics, render, ",".join(applied))


# How many queries run and wait at once, and their end when the client is gone: the service's rules for one user. Five
# run, two hundred wait, at most three minutes; what comes beyond is refused. The work is blocking and runs in a thread;
# it is handed a `StopSignal`, which is given as soon as nobody waits for the answer any more.
CONCURRENT_QUERIES = 5
LONGEST_QUEUE = 200
LONGEST_WAIT_S = 180.0

_T = TypeVar("_T")


class TooManyQueriesError(Exception):
    """There is no place for one more query; the text says why."""


class ClientGoneError(Exception):
    """The client closed its connection; its query was taken from the queue, or told to stop and has ended."""


@dataclass(slots=True)
class SlotCounts:
    """Queries inside now, and the number of those that found no place or lost their client."""

    running: int = 0
    waiting: int = 0
    refused: int = 0
    abandoned: int = 0


class QuerySlots:
    """Places for queries. For one event loop; `counts` is read and written there only."""

    def __init__(
        self, *, running: int = CONCURRENT_QUERIES, waiting: int = LONGEST_QUEUE, longest_wait_s: float = LONGEST_WAIT_S
    ) -> None:
        self._most_running = running
        self._most_waiting = waiting
        self._longest_wait_s = longest_wait_s
        self._free = anyio.Semaphore(running)
        self._threads = CapacityLimiter(running)
        self.counts = SlotCounts()

    async def run(self, work: Callable[[StopSignal], _T], gone: Callable[[], Awaitable[object]]) -> _T:
        """`work` in a thread once there is a place for it; `gone` returns when the client has left.

        Raises TooManyQueriesError and ClientGoneError. What `work` raises comes out as it is.
        """
        counts = self.counts
        if counts.running + counts.waiting >= self._most_running + self._most_waiting:
            counts.refused += 1
            raise TooManyQueriesError(
                f"Too many queries at once: {self._most_running} run and {self._most_waiting} wait."
            )
        signal = StopSignal()
        left = False
        results: list[_T] = []
        failures: list[Exception] = []

        async def leave_with_client() -> None:
            nonlocal left
            try:
                await gone()
                left = True
            finally:
                signal.give()  # also when this call is cancelled: its thread would run on and be waited for
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(leave_with_client)
            try:
                results.append(await self._in_turn(work, signal))
            except Exception as error:  # carried past the task group, which would wrap it
                failures.append(error)
            group.cancel_scope.cancel()
        if left:
            counts.abandoned += 1
            raise ClientGoneError
        for failure in failures:
            raise failure
        return results[0]

    async def _in_turn(self, work: Callable[[StopSignal], _T], signal: StopSignal) -> _T:
        self.counts.waiting += 1
        try:
            with anyio.move_on_after(self._longest_wait_s) as wait:
                await self._free.acquire()
        finally:
            self.counts.waiting -= 1
        if wait.cancelled_caught:
            self.counts.refused += 1
            raise TooManyQueriesError(f"The query waited {self._longest_wait_s:g} seconds for its turn.")
        self.counts.running += 1
        try:
            return await to_thread.run_sync(work, signal, limiter=self._threads)
        finally:
            self.counts.running -= 1
            self._free.release()


@dataclass(slots=True)
class QueryCounts:
    """Counts since the start, over the places that `slots` counts. Written on the event loop only."""

    slots: SlotCounts
    answered: int = 0
    rejected: int = 0
    timed_out: int = 0
    failed: int = 0

    def ended(self, status: int) -> None:
        """A query that ran ended with this HTTP status."""
        if status < 400:
            self.answered += 1
        elif status == 504:
            self.timed_out += 1
        elif status < 499:
            self.rejected += 1
        else:
            self.failed += 1

    def to_dict(self) -> dict[str, int]:
        """`cancelled` are the queries whose client went away, `throttled` those without a place."""
        return {
            "running": self.slots.running,
            "waiting": self.slots.waiting,
            "answered": self.answered,
            "rejected": self.rejected,
            "timed_out": self.timed_out,
            "cancelled": self.slots.abandoned,
            "throttled": self.slots.refused,
            "failed": self.failed,
        }


# A query ends with the connection of whoever asked it.
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


# The operation is deprecated and our own client does not use it; azure-monitor-query still offers it, so it is served.
# An entry's failure is its own: the request succeeds.
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


_TIME_COLUMN = "TimeGenerated"


class MetadataEndpoint:
    """Tells the schema of one workspace to whoever `door` lets in."""

    def __init__(self, workspace: Workspace, door: WorkspaceAuthentication) -> None:
        self._workspace = workspace
        self._door = door

    async def __call__(self, request: Request) -> Response:
        correlation_id = str(uuid.uuid4())
        answer = self._door.refusal(request, correlation_id)
        if answer is None:
            answer = await to_thread.run_sync(self._answer)
        return await wire_response(request, *answer, correlation_id)

    def _answer(self) -> tuple[int, bytes]:
        schema = self._workspace.schema()
        return encoded(200, {"tables": [_table(name, schema[name]) for name in sorted(schema)]})


def _table(name: str, columns: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": f"t/{name}",
        "name": name,
        **({"timespanColumn": _TIME_COLUMN} if _TIME_COLUMN in columns else {}),
        "columns": [{"name": column, "type": kql_type} for column, kql_type in columns.items()],
    }
