"""Bodies of the services' responses: bounded in size, their JSON read leniently, their errors understood.

What goes wrong between an argument and a row, on its way up as a `contracts.query_results.QueryFailedError`.

It is turned into one where it is understood best (the wire, the argument, the template); the tool server sends its
`error` and nothing else. No exception of Azure's SDK leaves this package.
"""

from __future__ import annotations

import json
import math
import re
import ssl
import zlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
import msgspec

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, QueryProblem

if TYPE_CHECKING:
    from azure.core.rest import AsyncHttpResponse


# The count is of decompressed bytes, so that a small body which unpacks to a large one is caught as it grows.
LARGEST_BODY = 256 * 1024 * 1024
"""Log Analytics cuts a result at 64 MB of its own count, which is at most 104 MB of JSON; nothing answers with more."""


class UnusableBodyError(Exception):
    """The body is no answer; the text says why, as the end of a sentence about the service."""


async def read_bounded(response: AsyncHttpResponse, *, most: int) -> bytes:
    """The whole body. Raises UnusableBodyError as soon as it is larger than `most` bytes, or does not unpack."""
    parts = bytearray()
    try:
        async for part in response.iter_bytes():
            parts += part
            if len(parts) > most:
                raise UnusableBodyError("answered with more than any result can have")
    except zlib.error:
        raise UnusableBodyError("answered with something that does not unpack") from None
    return bytes(parts)


# JSON that others wrote: of the service, and of the columns that hold JSON in a string. It is read leniently, since a
# row that cannot be read is a row that an analyst does not see: line breaks inside strings are taken, and half of a
# surrogate pair, which no UTF-8 can carry on, becomes U+FFFD.
_DECODER = json.JSONDecoder(strict=False)  # made once: json.loads would make one for each cell
decode_strictly = msgspec.json.Decoder().decode
"""Refuses what `load_json` mends, and reads the rest as it does."""
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def load_cell(text: str) -> Any:
    """As `load_json`, for the many short texts of a column: the strict reader first, which is several times faster."""
    try:
        return decode_strictly(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return load_json(text)  # it is no JSON, or JSON that only the lenient reader takes


def load_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for text that is none, or that is nested beyond reading."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    if "\\u" in text and _HALF_PAIR.search(text):
        # Escape by escape, so that an escaped backslash before a `ud800` stays what it is.
        text = _ESCAPE.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


# Bodies come in several shapes (nested `innererror` with line and position, an Entra error whose `error` is a string, a
# proxy's HTML); the innermost message is the useful one.
_LONGEST_MESSAGE = 500
LONGEST_TOLD_S = 86_400.0
"""A wait that is longer is told as this one: no service means it, and nobody waits for it."""
_NOT_FOUND_CODES = frozenset({"FailedToResolveResource", "PathNotFoundError", "WorkspaceNotFoundError"})
_OUTER_CODES = frozenset(
    {"BadArgumentError", "SemanticError", "SyntaxError", "InvalidProperty", "PartialError", "EngineError"}
)
"""Codes that only say of which kind a fault is."""


def error_of_response(status: int, headers: Mapping[str, str], body: bytes) -> QueryError:
    """The error for an HTTP status of 400 or more; `body` may be anything, also empty."""
    outer = error_object(body)
    codes, message, line, position = innermost(outer)
    said = f": {message}" if message else ""
    if status == 429:
        return throttled(f"Log Analytics is throttling these queries{said}", told_wait(headers))
    if status in (408, 504):
        return QueryError(
            code=QueryErrorCode.TIMEOUT,
            message=f"The query ran out of time{said}",
            next_step="Ask for a shorter window or fewer rows.",
        )
    if status in (401, 403):
        role = "Give the identity the Log Analytics Reader role on the workspace (it takes up to an hour)."
        return QueryError(
            code=QueryErrorCode.ACCESS_DENIED,
            message=f"The workspace refused the credential (HTTP {status}){said}",
            next_step=next_step_of_refusal(status, codes, role),
        )
    if status == 404 or not _NOT_FOUND_CODES.isdisjoint(codes):
        return QueryError(
            code=QueryErrorCode.WORKSPACE_NOT_FOUND,
            message=f"There is no such workspace at this endpoint{said}",
            next_step="Check the workspace id (the GUID on the workspace's overview page) and the endpoint.",
        )
    if 400 <= status < 500:
        return QueryError(
            code=QueryErrorCode.QUERY_REJECTED,
            message=f"The workspace rejected the query{said or f' (HTTP {status})'}",
            next_step=_advice(message),
            line=line,
            position=position,
            problems=_problems(outer),
        )
    return QueryError(
        code=QueryErrorCode.UNAVAILABLE,
        message=f"Log Analytics answered HTTP {status}{said}",
        next_step="Try again in a moment.",
        retry_after_s=told_wait(headers),
    )


def throttled(message: str, retry_after_s: float | None) -> QueryError:
    """Too many requests, whether the service says so or our own count does. Asking for less does not end the wait."""
    if retry_after_s is None:
        when = "in a few minutes: the service does not say how long to wait"
    else:
        when = f"in {waiting_time(retry_after_s)}"
    return QueryError(
        code=QueryErrorCode.THROTTLED, message=message, next_step=f"Ask again {when}.", retry_after_s=retry_after_s
    )


def waiting_time(seconds: float) -> str:
    """`309 seconds`, with the minutes or hours beside a number that nobody reads as a time."""
    if seconds >= LONGEST_TOLD_S:
        return "a day or longer"
    told = f"{math.ceil(seconds):,} second{'' if math.ceil(seconds) == 1 else 's'}"
    if seconds < 120:
        return told
    minutes = math.ceil(seconds / 60)
    return f"{told} ({minutes} minutes)" if minutes <= 120 else f"{told} ({math.ceil(seconds / 3600):,} hours)"


def next_step_of_refusal(status: int, codes: Collection[str], role: str) -> str:
    """What to do about a refused credential: a wrong token is none that a role would mend."""
    if "InvalidAuthenticationTokenAudience" in codes:
        return "The token is for another service: check that the endpoint and the cloud of the workspace fit together."
    if "InvalidAuthenticationToken" in codes or status == 401:
        return "Sign in again (`az login`), or check that the identity belongs to the workspace's tenant."
    return role


def protocol_error(message: str) -> QueryError:
    """An answer that is no answer: empty, not JSON, without a table."""
    return QueryError(
        code=QueryErrorCode.PROTOCOL,
        message=message,
        next_step="Try again; if it stays so, check that the endpoint is a Log Analytics endpoint.",
    )


def rejected_by_details(error: Mapping[str, Any]) -> QueryError:
    """The error for an HTTP 200 that carries an `error` and no table."""
    codes, message, line, position = innermost(error)
    return QueryError(
        code=QueryErrorCode.QUERY_REJECTED,
        message=f"The workspace gave no rows: {message or ', '.join(codes) or 'no reason told'}",
        next_step=_advice(message),
        line=line,
        position=position,
        problems=_problems(error),
    )


def partial_reason(error: Mapping[str, Any]) -> str:
    """The sentence for an `error` beside a table: why the result is not whole."""
    _, message, _, _ = innermost(error)
    return message or "the service returned a part of the result and told no reason"


def error_object(body: bytes) -> Mapping[str, Any]:
    """The `error` of a failing answer's body; empty for a body that holds none (a proxy's HTML, nothing at all)."""
    try:
        document = load_json(body)
    except ValueError:  # HTML of a proxy, an empty body: the status is all there is
        return {}
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, str):  # Entra: {"error": "invalid_grant", "error_description": "AADSTS..."}
        return {"code": error, "message": str(document.get("error_description", error))}
    return error if isinstance(error, dict) else {}


def innermost(error: Mapping[str, Any]) -> tuple[tuple[str, ...], str, int | None, int | None]:
    """All codes on the way down, outermost first, then message, line and position of the deepest level with them."""
    codes: list[str] = []
    message, line, position = "", None, None
    level: Any = error
    while isinstance(level, Mapping):
        codes.append(str(level.get("code", "")))
        message = str(level.get("message") or message)
        line = level["line"] if isinstance(level.get("line"), int) else line
        position = level["pos"] if isinstance(level.get("pos"), int) else position
        details = level.get("details")
        level = level.get("innererror") or (details[0] if isinstance(details, list) and details else None)
    text = " ".join(message.split())
    if len(text) > _LONGEST_MESSAGE:
        text = text[:_LONGEST_MESSAGE] + "…"
    return tuple(code for code in dict.fromkeys(codes) if code), text, line, position


def _problems(error: Mapping[str, Any]) -> tuple[QueryProblem, ...]:
    """The fault of a query as the service tells it, under the service's own code (`SEM0100`); none without a code."""
    codes, message, line, position = innermost(error)
    code = next((code for code in reversed(codes) if code not in _OUTER_CODES), "")
    if not code:
        return ()
    column = None if position is None else position + 1
    return (QueryProblem(code=code, message=message or code, line=line, column=column),)


def _advice(message: str) -> str:
    if "E_QUERY_RESULT_SET_TOO_LARGE" in message:
        return "The result is larger than the service returns: ask for a shorter window, fewer rows or a summary."
    if "Failed to resolve" in message:
        return "The table or column is not in this workspace; list_tables tells which tables hold rows."
    return "Correct the query and run it again."


def told_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait, in any of the headers that Azure's services use; None for none."""
    told = {name.lower(): value for name, value in headers.items()}
    seconds = retry_after_seconds(told.get("retry-after"))
    if seconds is not None:
        return seconds
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = retry_after_seconds(told.get(name))
        if milliseconds is not None:
            return milliseconds / 1000
    return None


def retry_after_seconds(header: str | None, *, now: Clock = utc_now) -> float | None:
    """The seconds of a Retry-After header, a number or an HTTP date; None without one, and for nonsense."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - now()).total_seconds()
        except (ValueError, TypeError, OverflowError):  # TypeError: a date without a zone
            return None
    return min(max(0.0, seconds), LONGEST_TOLD_S) if math.isfinite(seconds) else None


def certificate_error(error: BaseException | None, endpoint: str) -> QueryError | None:
    """The error for a TLS certificate that is not trusted, found anywhere below `error`; None for another reason."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        deeper = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        if isinstance(error, ssl.SSLError) and deeper is None:
            why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or "the handshake failed"
            return QueryError(
                code=QueryErrorCode.UNAVAILABLE,
                message=f"The TLS certificate of {endpoint} is not accepted: {why}.",
                next_step="If a proxy of your network signs it, name its CA in SSL_CERT_FILE; else check the address.",
            )
        error = deeper or error.__cause__ or error.__context__
    return None


# A reader of a `QueryError` wants the sentence of the query that failed, not a group of one.
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")


@overload
async def together(first: Callable[[], Awaitable[T1]], second: Callable[[], Awaitable[T2]], /) -> tuple[T1, T2]: ...
@overload
async def together(
    first: Callable[[], Awaitable[T1]], second: Callable[[], Awaitable[T2]], third: Callable[[], Awaitable[T3]], /
) -> tuple[T1, T2, T3]: ...
@overload
async def together(*reads: Callable[[], Awaitable[T1]]) -> tuple[T1, ...]: ...


async def together(*reads: Callable[[], Awaitable[Any]]) -> Any:
    """Run all, return their values in order. The first QueryFailedError cancels the rest and is raised as it is."""
    values: list[Any] = [None] * len(reads)

    async def run(index: int, read: Callable[[], Awaitable[Any]]) -> None:
        values[index] = await read()

    try:
        async with anyio.create_task_group() as group:
            for index, read in enumerate(reads):
                group.start_soon(run, index, read)
    except BaseExceptionGroup as failures:
        failed = failures.subgroup(QueryFailedError)
        rest = failures.split(QueryFailedError)[1]
        if failed is None or rest is not None:
            raise
        leaf: BaseException = failed
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        raise leaf from None
    return tuple(values)
