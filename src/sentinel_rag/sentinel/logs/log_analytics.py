"""The Log Analytics client: one connection for a process, a `LogsWorkspace` for each workspace behind it.

It runs on the pipeline of azure-monitor-query, so that credentials, retries and proxies behave as on Azure whether the
endpoint is the cloud or a loopback server, and decodes rows itself. Above lie the queries of Sentinel;
nothing here knows a table.

Tables of Log Analytics out of a response: read strictly by type, else leniently, partial ones told.
"""

from __future__ import annotations

import gc
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import anyio
import msgspec

from sentinel_rag.contracts.closing import AsyncClosing
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import (
    Column,
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    TimeWindow,
    format_time,
)
from sentinel_rag.sentinel import response_bodies
from sentinel_rag.sentinel.credentials import AUDIENCE
from sentinel_rag.sentinel.response_bodies import (
    LARGEST_BODY,
    UnusableBodyError,
    certificate_error,
    decode_strictly,
    load_cell,
    load_json,
    protocol_error,
    read_bounded,
    together,
)
from sentinel_rag.telemetry import SpanKind, start_span

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential
    from azure.core.pipeline.transport import AsyncHttpTransport
    from azure.monitor.query.aio import LogsQueryClient


# The SDK's row objects cost six times as much for volume and turn a null guid or timespan into the text 'None'; these
# decoders work a column at a time.
_TIMESPAN = re.compile(r"(-)?(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,7}))?\Z")
_FIRST_OF_JSON = frozenset('{["-0123456789tfnNI \t\r\n')  # N and I: NaN and Infinity, which the reader takes
_REALS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class LogsTable:
    """The primary table of one answer. `partial_reason` is the service's sentence when it cut the result."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    query: str
    partial_reason: str = ""
    duration_ms: float = 0.0
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))

    @property
    def partial(self) -> bool:
        return bool(self.partial_reason)

    def cut(self, reason: str) -> LogsTable:
        """The same table, told to be partial: whoever asked for no more rows than came knows that there are more."""
        return replace(self, partial_reason=self.partial_reason or reason)

    def column(self, name: str) -> list[Any]:
        """The cells of a column. Raises QueryFailedError PROTOCOL for one that the answer lacks."""
        if name not in self.names:
            raise _lacking(name)
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def records(self) -> Iterator[dict[str, Any]]:
        """One dict a row, by column name; of columns with one name the last wins."""
        for row in self.rows:
            yield _Record(zip(self.names, row, strict=True))


class _Record(dict[str, Any]):
    """A row that blames the service for a column which the query asked for and the answer lacks."""

    def __missing__(self, column: str) -> Any:
        raise _lacking(column)


def _lacking(column: str) -> QueryFailedError:
    return QueryFailedError(protocol_error(f"Log Analytics answered 200 without the column {column} of the query."))


def parse_datetime(text: str) -> datetime:
    """An ISO 8601 time of the wire in UTC; a seventh fraction digit is cut, a missing zone is UTC."""
    return in_utc(datetime.fromisoformat(text))


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC, which is what one without a zone means."""
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_timespan(text: str) -> timedelta:
    """`[d.]hh:mm:ss[.fffffff]`. Raises ValueError for anything else."""
    match = _TIMESPAN.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a timespan")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    in_day = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    span = timedelta(int(days) if days else 0, in_day, int(fraction.ljust(6, "0")[:6]) if fraction else 0)
    return -span if sign else span


def decode_timespans(cells: Sequence[Any]) -> list[Any]:
    """Each text once: durations of a log repeat. Raises ValueError as `parse_timespan`."""
    spans: dict[Any, Any] = {text: None if text is None else parse_timespan(text) for text in set(cells)}
    return [spans[text] for text in cells]


def parse_dynamic(value: Any) -> Any:
    """A dynamic cell: JSON text in a string. Text that is not JSON is a string value and stays what it is."""
    if not isinstance(value, str) or value[:1] not in _FIRST_OF_JSON:
        return value
    try:
        return load_cell(value)
    except ValueError:
        return value


def _parse_real(value: Any) -> float:
    return _REALS[value] if isinstance(value, str) and value in _REALS else float(value)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "datetime": parse_datetime,
    "timespan": parse_timespan,
    "dynamic": parse_dynamic,
    "real": _parse_real,
    "bool": bool,
    "int": int,
    "long": int,
}
"""By KQL type; guid, string and decimal are text already (a decimal loses digits as a float)."""


def decode_table(
    table: Mapping[str, Any], query: str, *, partial_reason: str = "", duration_ms: float = 0
) -> LogsTable:
    """A table of the wire. Raises ValueError, KeyError or TypeError for one that does not hold to the protocol."""
    columns = tuple(Column(str(column["name"]), str(column["type"])) for column in table["columns"])
    if not columns:
        raise ValueError("every result of a query has a column")
    raw_rows: Sequence[Sequence[Any]] = table["rows"]
    if any(len(row) != len(columns) for row in raw_rows):
        raise ValueError("a row has another number of cells than the table has columns")
    decoded: list[Sequence[Any]] = []
    for index, column in enumerate(columns):
        decoder = _DECODERS.get(column.type)
        cells = [row[index] for row in raw_rows]
        decoded.append(cells if decoder is None else [None if cell is None else decoder(cell) for cell in cells])
    rows = tuple(zip(*decoded, strict=True))
    return LogsTable(columns, rows, query, partial_reason, duration_ms)


def json_cell(value: Any) -> JsonValue:
    """A decoded cell as JSON: times in ISO 8601 UTC, timespans as on the wire, NaN and infinities as their names."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, float) and not math.isfinite(value):
        return next(name for name, real in _REALS.items() if real == value or (value != value and real != real))
    cell: JsonValue = value
    return cell


def format_timespan(span: timedelta) -> str:
    """`[-][d.]hh:mm:ss[.fffffff]`, as the service writes it."""
    sign = "-" if span < timedelta(0) else ""
    span = abs(span)
    hours, rest = divmod(span.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    days = f"{span.days}." if span.days else ""
    fraction = f".{span.microseconds:06d}0" if span.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


# The fast way to read an answer of the Log Analytics wire: the columns first, then all rows as tuples of their types.
# It reads what holds to the protocol to the letter. For everything else it returns None, and the lenient reading
# decides; where both read an answer they read the same values.
_CELLS: dict[str, Any] = {
    "bool": bool | None,
    "int": int | None,
    "long": int | None,
    "real": float | None,
    "string": str | None,
    "guid": str | None,
    "decimal": str | None,
    "datetime": str | None,  # msgspec would round the seventh digit of a fraction, which we cut
    "timespan": str | None,
}


class _WireColumn(msgspec.Struct):
    name: str
    type: str


class _WireTable(msgspec.Struct):
    columns: list[_WireColumn]
    rows: msgspec.Raw
    name: str = ""


class _WireAnswer(msgspec.Struct):
    tables: list[_WireTable]
    error: Any = None


_ANSWER = msgspec.json.Decoder(_WireAnswer)


class TypedAnswer(msgspec.Struct, frozen=True):
    """The primary table, not yet decoded to values, and the `error` beside it."""

    columns: tuple[Column, ...]
    rows: list[tuple[Any, ...]]
    error: Any

    def table(self, query: str, *, partial_reason: str, duration_ms: float) -> LogsTable:
        """The table with its values. Raises ValueError for a cell that is not of its column's type."""
        return LogsTable(self.columns, _with_values(self.columns, self.rows), query, partial_reason, duration_ms)


def read_typed(content: bytes) -> TypedAnswer | None:
    """The answer if it holds to the protocol in every cell, else None."""
    try:
        answer = _ANSWER.decode(content)
        if not answer.tables:
            return None
        primary = next((table for table in answer.tables if table.name == "PrimaryResult"), answer.tables[0])
        if not primary.columns:
            return None
        rows = _rows_decoder(tuple(column.type for column in primary.columns)).decode(primary.rows)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return TypedAnswer(tuple(Column(column.name, column.type) for column in primary.columns), rows, answer.error)


@lru_cache(maxsize=512)
def _rows_decoder(kinds: tuple[str, ...]) -> msgspec.json.Decoder[list[tuple[Any, ...]]]:
    cells = tuple(_CELLS.get(kind, Any) for kind in kinds)
    return msgspec.json.Decoder(list[tuple[cells]])  # type: ignore[valid-type]  # made of values, not written


def _with_values(columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """The rows with times, spans and dynamics as Python values, made a column at a time."""
    made = [(place, _MAKERS[column.type]) for place, column in enumerate(columns) if column.type in _MAKERS]
    if not made or not rows:
        return tuple(rows)
    cells: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for place, make in made:
        cells[place] = make(cells[place])
    return tuple(zip(*cells, strict=True))


def _datetimes(cells: Sequence[Any]) -> list[Any]:
    if None in cells:
        return [None if cell is None else parse_datetime(cell) for cell in cells]
    moments = list(map(datetime.fromisoformat, cells))
    return [moment if moment.tzinfo is UTC else in_utc(moment) for moment in moments]


def _dynamics(cells: Sequence[Any]) -> list[Any]:
    try:
        return [None if cell is None else decode_strictly(cell) for cell in cells]
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, TypeError):
        return [parse_dynamic(cell) for cell in cells]  # some are plain text, or JSON that has to be mended


_MAKERS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    "datetime": _datetimes,
    "timespan": decode_timespans,
    "dynamic": _dynamics,
}


def read_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """The primary table of an HTTP 200. Raises QueryFailedError for a body that holds none."""
    if not content.strip():
        raise QueryFailedError(response_bodies.protocol_error("Log Analytics answered 200 with an empty body."))
    try:
        typed = read_typed(content)
        if typed is not None:
            reason = response_bodies.partial_reason(typed.error) if isinstance(typed.error, Mapping) else ""
            return typed.table(kql, partial_reason=reason, duration_ms=duration_ms)
        document = load_json(content)
        error = document.get("error")
        tables = document.get("tables") or []
        if not tables:
            if isinstance(error, Mapping):
                raise QueryFailedError(response_bodies.rejected_by_details(error))
            raise QueryFailedError(response_bodies.protocol_error("Log Analytics answered 200 without a table."))
        reason = response_bodies.partial_reason(error) if isinstance(error, Mapping) else ""
        primary = next((table for table in tables if table.get("name") == "PrimaryResult"), tables[0])
        return decode_table(primary, kql, partial_reason=reason, duration_ms=duration_ms)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            response_bodies.protocol_error("Log Analytics answered with something that is not a query result.")
        ) from error


def read_large_answer(content: bytes, kql: str, duration_ms: float) -> LogsTable:
    """As `read_answer`, without the garbage collector in between."""
    with collector_pause:
        return read_answer(content, kql, duration_ms)


def read_schema(content: bytes) -> dict[str, dict[str, str]]:
    """Table -> column -> KQL type of a metadata answer. Raises QueryFailedError for a body that is none."""
    try:
        return {
            str(table["name"]): {
                str(column["name"]): _kql_type(str(column["type"])) for column in table.get("columns") or ()
            }
            for table in load_json(content).get("tables") or ()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QueryFailedError(
            response_bodies.protocol_error("Log Analytics answered with something that is not a schema.")
        ) from error


_OTHER_NAMES = {"boolean": "bool", "double": "real", "date": "datetime", "time": "timespan", "uuid": "guid"}


def _kql_type(name: str) -> str:
    """The type as queries write it; the service also has older names for some."""
    return _OTHER_NAMES.get(name.lower(), name.lower())


# The garbage collector left out while a large answer is decoded: it would walk the rows so far again and again.
#
# Nothing that a decoder makes is garbage before it is done, and it is done in a fraction of a second. Several may
# decode at once; the last one to leave lets the collector in again.


class CollectorPause:
    """A context manager for any thread, shared by all who pause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()


collector_pause = CollectorPause()


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


class LogAnalytics(AsyncClosing):
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
