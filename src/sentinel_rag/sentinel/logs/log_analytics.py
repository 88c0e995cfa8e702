"""The Log Analytics client: one connection for a process, a `LogsWorkspace` for each workspace behind it.

It runs on the pipeline of azure-monitor-query, so that credentials, retries and proxies behave as on Azure whether the
endpoint is the cloud or a loopback server, and decodes rows itself (`log_tables`). Above lie the queries of Sentinel;
nothing here knows a table.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, TimeWindow, format_time
from sentinel_rag.sentinel import response_bodies
from sentinel_rag.sentinel.credentials import AUDIENCE
from sentinel_rag.sentinel.failures import certificate_error, together
from sentinel_rag.sentinel.logs.log_tables import LogsTable, read_answer, read_large_answer, read_schema
from sentinel_rag.sentinel.response_bodies import LARGEST_BODY, UnusableBodyError, read_bounded
from sentinel_rag.telemetry import SpanKind, start_span

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.core.pipeline.transport import AsyncHttpTransport
    from azure.monitor.query.aio import LogsQueryClient


# Where several endpoints share the five, none takes the last one, so that an endpoint which never answers does not stop
# the others.
MOST_CONCURRENT_QUERIES = 5


class IdentitySlots:
    """The slots of one identity; `of_endpoint` gives an endpoint's share of them."""

    def __init__(self, most: int = MOST_CONCURRENT_QUERIES, *, _all: anyio.Semaphore | None = None) -> None:
        self._most = most
        self._own = anyio.Semaphore(most)
        self._all = _all

    def of_endpoint(self) -> IdentitySlots:
        """Slots that count in these and leave one of them to others."""
        return IdentitySlots(max(1, self._most - 1), _all=self._own)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it."""
        async with self._own:
            if self._all is None:
                yield
            else:
                async with self._all:
                    yield


LONGEST_WAIT_S = 600
CONNECT_TIMEOUT_S = 10.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_DECODED_IN_A_THREAD = 256 * 1024  # bytes; a larger body would hold up the event loop

PUBLIC_CLOUD = AUDIENCE
"""Where the service is, and what its tokens are for; they differ for other clouds and on loopback."""


class LogAnalytics:
    """A connection to one endpoint with one credential, which it owns; never more than five queries run at once.

    `audience` is the resource that tokens are for (another one in sovereign clouds, whatever the endpoint on loopback).
    `wait_s` is the time that the service may take for a query (at most 600 s), `largest_body` the bytes of an answer
    that are read; `transport` is azure-core's own for aiohttp unless given. `slots` bounds the queries that run at
    once, over every connection that shares it. Raises ConfigurationError for an endpoint that is neither https nor on
    this machine: a token must not cross a network in the clear.
    """

    def __init__(
        self,
        credential: AsyncTokenCredential,
        *,
        endpoint: str = PUBLIC_CLOUD,
        audience: str = AUDIENCE,
        wait_s: int = LONGEST_WAIT_S,
        retries: int = 3,
        first_retry_delay_s: float = 0.8,
        slots: IdentitySlots | None = None,
        transport: AsyncHttpTransport[Any, Any] | None = None,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        from azure.monitor.query.aio import LogsQueryClient

        from sentinel_rag.sentinel.azure_policies import (
            LoopbackBearerPolicy,
            QueryRetryPolicy,
            is_loopback,
            safe_endpoint,
        )

        self.endpoint = endpoint = safe_endpoint("Log Analytics", endpoint, PUBLIC_CLOUD)
        self._credential = credential
        self._wait_s = max(1, min(wait_s, LONGEST_WAIT_S))
        self._largest_body = largest_body
        self._slots = slots or IdentitySlots()
        self._client: LogsQueryClient = LogsQueryClient(
            credential,
            endpoint=endpoint,
            audience=audience,
            authentication_policy=LoopbackBearerPolicy(credential, f"{audience}/.default"),
            retry_policy=QueryRetryPolicy(total=retries, first_delay_s=first_retry_delay_s),
            use_env_settings=not is_loopback(endpoint),  # a proxy of the environment must not see loopback traffic
            **({} if transport is None else {"transport": transport}),
        )

    def workspace(self, name: str, workspace_id: str) -> LogsWorkspace:
        """A workspace of this endpoint. Raises ConfigurationError unless `workspace_id` is a GUID."""
        try:
            UUID(workspace_id)
        except ValueError:
            raise ConfigurationError(
                f"The id of workspace {name!r} is not a GUID: {workspace_id!r}.",
                next_step="Take the Workspace ID from the workspace's overview page.",
            ) from None
        return LogsWorkspace(name, workspace_id, self)

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, wait_s: int | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """One request below the API version: status, headers, body. `wait_s` is the time that the service may take, if
        less than the connection's. Raises QueryFailedError if there is no answer."""
        import aiohttp
        from azure.core.exceptions import AzureError
        from azure.core.rest import HttpRequest

        wait = min(self._wait_s, wait_s or self._wait_s)
        headers = {"Accept": "application/json", "Prefer": f"wait={wait}"}
        request = HttpRequest(method, path, json=None if body is None else dict(body), headers=headers)
        try:
            async with self._slots.one():
                # Streamed, so that the pipeline does not parse the body on the event loop before we do.
                response = await self._client.send_request(request, stream=True, read_timeout=wait + 30)
                async with response:
                    content = await read_bounded(response, most=self._largest_body)
                    return response.status_code, response.headers, content
        except UnusableBodyError as error:
            raise QueryFailedError(response_bodies.protocol_error(f"Log Analytics {error}.")) from None
        except AzureError as error:
            raise QueryFailedError(self._no_answer(error, wait)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise QueryFailedError(self._unreachable(error)) from error

    async def close(self) -> None:
        """Close connections, the credential's too: it was handed over."""
        await self._client.close()
        await self._credential.close()

    async def __aenter__(self) -> LogAnalytics:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _no_answer(self, error: Exception, wait_s: int) -> QueryError:
        from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError, ServiceResponseTimeoutError

        if isinstance(error, ClientAuthenticationError):
            return QueryError(
                code=QueryErrorCode.ACCESS_DENIED,
                message="No token could be had for Log Analytics: no configured identity is signed in or allowed.",
                next_step="Sign in (`az login`) or give this process a managed identity.",
            )
        if isinstance(error, ServiceResponseTimeoutError):
            return QueryError(
                code=QueryErrorCode.TIMEOUT,
                message=f"Log Analytics did not answer within {wait_s + 30} seconds.",
                next_step="Ask for a shorter window or fewer rows.",
            )
        if isinstance(error, ServiceRequestError):
            return self._unreachable(error)
        return QueryError(
            code=QueryErrorCode.UNAVAILABLE,
            message="The connection to Log Analytics broke before the answer was whole.",
            next_step="Try again in a moment.",
        )

    def _unreachable(self, error: BaseException) -> QueryError:
        distrusted = certificate_error(error, self.endpoint)
        if distrusted is not None:
            return distrusted
        return QueryError(
            code=QueryErrorCode.UNAVAILABLE,
            message=f"The Log Analytics endpoint {self.endpoint} cannot be reached.",
            next_step="Check that the workspace server runs (`sentinel status`) or that the network lets the call out.",
        )


class LogsWorkspace:
    """One workspace by name. `query` is the only way to its rows."""

    def __init__(self, name: str, workspace_id: str, connection: LogAnalytics) -> None:
        self.name = name
        self.workspace_id = workspace_id
        self.connection = connection

    async def query(self, kql: str, span: TimeWindow | None = None, *, wait_s: int | None = None) -> LogsTable:
        """Run `kql` over rows whose TimeGenerated lies in `span` (None: all that is retained), in at most `wait_s`.

        Raises QueryFailedError for every way in which there is no table. A cut result is a table with
        `partial_reason`; HTTP 204, which means a workspace without data, is a table without columns.
        """
        with start_span("kql.query", SpanKind.CLIENT) as told:
            told.set("db.system.name", "azure.log_analytics")
            told.set("db.operation.name", "query")
            told.set("db.namespace", self.name)
            try:
                table = await self._query(kql, span, wait_s)
            except QueryFailedError as failure:
                told.fail(failure.error.code.value)
                raise
            told.set("db.response.returned_rows", len(table.rows))
            told.set("sentinel.partial", bool(table.partial_reason))
        return table

    async def _query(self, kql: str, span: TimeWindow | None, wait_s: int | None) -> LogsTable:
        body = {"query": kql, "timespan": timespan_text(span), "workspaces": None}
        started = time.perf_counter()
        status, headers, content = await self.connection.send(
            "POST", f"/workspaces/{self.workspace_id}/query", body, wait_s=wait_s
        )
        duration_ms = (time.perf_counter() - started) * 1000
        if status == 204:
            return LogsTable((), (), kql, duration_ms=duration_ms)
        if status >= 400:
            raise QueryFailedError(response_bodies.error_of_response(status, headers, content))
        if len(content) < _DECODED_IN_A_THREAD:
            return read_answer(content, kql, duration_ms)
        return await anyio.to_thread.run_sync(read_large_answer, content, kql, duration_ms)

    async def schema(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> KQL type of the tables that the workspace knows, with rows or without.

        Raises QueryFailedError; WORKSPACE_NOT_FOUND also where a service tells no schema."""
        status, headers, content = await self.connection.send("GET", f"/workspaces/{self.workspace_id}/metadata")
        if status >= 400:
            raise QueryFailedError(response_bodies.error_of_response(status, headers, content))
        if len(content) < _DECODED_IN_A_THREAD:
            return read_schema(content)
        return await anyio.to_thread.run_sync(read_schema, content)

    async def query_all(self, queries: Sequence[tuple[str, TimeWindow | None]]) -> tuple[LogsTable, ...]:
        """Several queries at once, answers in order; the first failure ends the others and is raised."""
        return await together(*(lambda kql=kql, span=span: self.query(kql, span) for kql, span in queries))


def timespan_text(span: TimeWindow | None) -> str | None:
    """`start/end` in ISO 8601, None for no bound. An open start is 1970, an open end a day after now or after a start
    that lies still later."""
    if span is None or (span.start is None and span.end is None):
        return None
    end = span.end or datetime.now(UTC) + timedelta(days=1)
    if span.end is None and span.start is not None and span.start >= end:
        end = _LATEST if span.start > _LATEST - timedelta(days=1) else span.start + timedelta(days=1)
    return f"{format_time(span.start or _EPOCH)}/{format_time(end)}"
