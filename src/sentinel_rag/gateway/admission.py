"""From an HTTP request to a principal and a body, within the bounds of the gateway and of each key, or the refusal that
answers instead; and waiting no longer than the client does.

What passes a bound is refused with its own status, never cut. A meter of calls is exact about the bound and a little
strict about the moment at which room returns: calls that lie close together are remembered as one entry, so that a
meter has at most `ENTRIES` of them. Meters live in the memory of one process; two gateways count apart.

For routes that answer once something happens; everything else is short enough to be done for nobody.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.servers import bearer_token
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.request_body import MalformedBody, parse_object
from sentinel_rag.gateway.responses import KEY_ID, Refusals, RefusedRequest, Unread, problem
from sentinel_rag.gateway.store import KeyJournal, KeyRing, KeyState, Principal, RefusedKey, Scope

DEFAULT_KEY_RATE = Rate(calls=30_000, seconds=60.0)
"""Far above what people and agents ask; it stops a loop that has gone wild, and only for its own key."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What one request, one key and all keys together may use.

    `body_bytes`: a request body (413). `body_seconds`: how long it may take to arrive (408). `url_bytes`: path and
    query (414). `header_count`, `header_bytes`: all headers, names and values (431). `tool_seconds`: a call of a tool
    whose policy names no `timeout_s` (504). `calls_in_flight`, `calls_in_flight_per_key`: calls at tool servers at once
    (503). `key_rate`: requests of a key that has no rate of its own (429). `sessions_per_key`: sessions that one
    key has used within a day, and as many more for each person's key that opens them (429). `approval_wait_s`: how long
    a call of an MCP client is held for the decision of an approval.
    """

    body_bytes: int = 1_000_000
    body_seconds: float = 10.0
    url_bytes: int = 8_192
    header_count: int = 100
    header_bytes: int = 32_768
    tool_seconds: float = 60.0
    calls_in_flight: int = 64
    calls_in_flight_per_key: int = 48
    key_rate: Rate | None = DEFAULT_KEY_RATE
    sessions_per_key: int = 20_000
    approval_wait_s: float = 300.0


ENTRIES = 64
"""Entries of one meter. Room returns at most a 64th of the span later than it could."""

MAX_METERS = 10_000
"""Meters in memory; beyond them the one that was asked longest ago is forgotten. A key has one, and one more for each
tool with a rate, so a key alone cannot push out its own."""


class RateLimiter:
    """`seconds` is a clock that only goes forward; `default` is the rate of keys that have none of their own."""

    def __init__(self, seconds: Callable[[], float], *, default: Rate | None = None) -> None:
        self._seconds = seconds
        self._default = default
        self._meters: OrderedDict[tuple[str, str], _Meter] = OrderedDict()

    def __len__(self) -> int:
        """How many meters are in memory."""
        return len(self._meters)

    def take(
        self,
        key_id: str,
        key_rate: Rate | None,
        tool: str = "",
        tool_rate: Rate | None = None,
        *,
        tool_of: str | None = None,
    ) -> float | None:
        """None if the call may go on, and it is counted; else the seconds until it may, and nothing is counted. The
        rate of the tool is counted for `tool_of`, the key of the person whom the caller asks for, where there is one.
        """
        now = self._seconds()
        rates = [(key_id, "", key_rate or self._default), (tool_of or key_id, tool, tool_rate)]
        asked = [(self._meter(whose, name), rate) for whose, name, rate in rates if rate is not None]
        wait = max((meter.wait(rate, now) for meter, rate in asked), default=0.0)
        if wait > 0:
            return wait
        for meter, rate in asked:
            meter.count(rate, now)
        return None

    def wait(self, key_id: str, key_rate: Rate | None) -> float | None:
        """What `take` would answer for the key's own rate; nothing is counted."""
        rate = key_rate or self._default
        meter = self._meters.get((key_id, ""))
        wait = 0.0 if rate is None or meter is None else meter.wait(rate, self._seconds())
        return wait or None

    def _meter(self, key_id: str, tool: str) -> _Meter:
        place = (key_id, tool)
        meter = self._meters.get(place)
        if meter is None:
            meter = self._meters[place] = _Meter()
            if len(self._meters) > MAX_METERS:
                self._meters.popitem(last=False)
        else:
            self._meters.move_to_end(place)
        return meter


class _Meter:
    """The calls of the last span, oldest first: when each entry began, its last call, and how many."""

    __slots__ = ("_entries", "_total")

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._total = 0

    def wait(self, rate: Rate, now: float) -> float:
        """Seconds until one more call keeps the rate; 0 if it does now."""
        while self._entries and self._entries[0].last + rate.seconds <= now:
            self._total -= self._entries.popleft().calls
        if self._total < rate.calls:
            return 0.0
        over = self._total - rate.calls
        for entry in self._entries:  # more than one step only where a reload has lowered the rate
            over -= entry.calls
            if over < 0:
                return entry.last + rate.seconds - now
        return rate.seconds

    def count(self, rate: Rate, now: float) -> None:
        self._total += 1
        if self._entries:
            newest = self._entries[-1]
            # The second test holds where a reload has made the span longer than the entries were cut for.
            if now - newest.first < rate.seconds / ENTRIES or len(self._entries) > ENTRIES:
                newest.last = now
                newest.calls += 1
                return
        self._entries.append(_Entry(now))


class _Entry:
    __slots__ = ("calls", "first", "last")

    def __init__(self, now: float) -> None:
        self.first = self.last = now
        self.calls = 1


Body = TypeVar("Body", bound=msgspec.Struct)

KEY_HEADER = "x-api-key"
UNCOUNTED = "sentinel.uncounted"
"""Where admission leaves the principal of a request that somebody else counts, in its scope."""

_WANTED = "A valid X-API-Key header is required."

_SENTENCES = {
    KeyState.EXPIRED: "This key has expired; rotating does not bring it back, a new one is needed.",
    KeyState.REVOKED: "This key was revoked.",
    KeyState.SUPERSEDED: "This key was rotated; use its new text.",
}
"""Said only to somebody who holds the secret; everybody else learns nothing about which keys there are."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Asks each request for its key, and how often that key has asked already."""

    keys: KeyRing
    refusals: Refusals
    rates: RateLimiter
    key_journal: KeyJournal

    async def admit(self, request: Request, *scopes: Scope, counts: bool = True, bearer: bool = False) -> Principal:
        """The principal of a request that has one live key with one of the scopes and room in its rate. Raises Refusal.

        With `counts=False` the request is only let through where there is room, and the gate counts it, or `count`, or
        `answer` where neither comes to see it. With `bearer` the key may come as a bearer token instead, as clients of
        MCP send it; two keys are none.
        """
        headers = request.headers.getlist(KEY_HEADER)
        if bearer:
            headers += [bearer_token(text).strip() for text in request.headers.getlist("authorization")]
        principal = self.keys.check(headers[0] if len(headers) == 1 else None)
        await self.key_journal.catch_up()  # a change of a key is on record before the first use that shows it
        if isinstance(principal, RefusedKey):
            wanted = "A valid key is required, as a bearer token or in X-API-Key." if bearer else _WANTED
            detail = _SENTENCES.get(principal.state, wanted)
            raise await self.refusals.no_entry(request, principal, detail)
        request.scope[KEY_ID] = principal.key_id
        if principal.scopes.isdisjoint(scopes):
            raise await self.refusals.no_scope(request, principal.key_id, scopes[0])
        self._within_rate(self.rates.take if counts else self.rates.wait, principal)
        if not counts:
            request.scope[UNCOUNTED] = principal
        return principal

    def count(self, request: Request, principal: Principal) -> None:
        """Count a request that was admitted with `counts=False` and does not reach the gate. Raises Refusal."""
        request.scope.pop(UNCOUNTED, None)
        self._within_rate(self.rates.take, principal)

    def _count_unread(self, request: Request) -> None:
        """Count a request that ends before anybody has counted it; one that has no room in its rate counts for
        nothing, as everywhere."""
        principal = request.scope.pop(UNCOUNTED, None)
        if principal is not None:
            self.rates.take(principal.key_id, principal.rate)

    async def answer(self, request: Request, refusal: Exception) -> Response:
        """The answer to a refusal. One of a request that was not read is on record only now, and counts for its key."""
        assert isinstance(refusal, RefusedRequest)
        if not isinstance(refusal, Unread):
            return refusal.response
        self._count_unread(request)
        return await self.refusals.unread(request, refusal)

    def _within_rate(self, ask: Callable[[str, Rate | None], float | None], principal: Principal) -> None:
        wait = ask(principal.key_id, principal.rate)
        if wait is not None:
            detail = "This key has asked as often as its rate allows."
            raise Unread(Reason.RATE_LIMITED, detail, retry_after_s=max(1, math.ceil(wait)))


async def read_json_body(request: Request, limits: GatewayLimits) -> bytes:
    """The body of a JSON request, within the limits. Raises Refusal."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise Unread(Reason.UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json without Content-Encoding.")
    too_large = f"The body may have at most {limits.body_bytes} bytes."
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limits.body_bytes:
        raise Unread(Reason.TOO_LARGE, too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Unread(Reason.MALFORMED_BODY, "The connection ended before the body did.", status=400)
                body += message.get("body", b"")
                if len(body) > limits.body_bytes:
                    raise Unread(Reason.TOO_LARGE, too_large)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Unread(Reason.MALFORMED_BODY, "The body did not arrive in time.", status=408) from None
    return bytes(body)


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises Refusal."""
    try:
        return parse_object(content)
    except MalformedBody as fault:
        raise RefusedRequest(problem(Reason.MALFORMED_BODY, f"The request was refused: {fault}.")) from None


async def read_body(request: Request, limits: GatewayLimits, kind: type[Body]) -> Body:
    """The body of a JSON request as `kind`, a struct that forbids other fields. Raises Refusal."""
    document = json_object(await read_json_body(request, limits))
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError:
        detail = f"The body must hold {', '.join(kind.__struct_fields__)}, as the OpenAPI document has them."
        raise RefusedRequest(problem(Reason.MALFORMED_BODY, detail)) from None


T = TypeVar("T")


async def unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """What `work` gives; None if the connection ended before, which cancels it. The request must have no body that is
    still to be read."""
    found: T | None = None
    fault: Exception | None = None

    async def listen() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        try:
            found = await work
        except Exception as error:  # on its own it leaves the group; a group would wrap it
            fault = error
        group.cancel_scope.cancel()
    if fault is not None:
        raise fault
    return found
