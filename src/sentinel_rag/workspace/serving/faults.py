"""Faults on demand: what a service in the cloud does on a bad day, with the bodies recorded from it."""

from __future__ import annotations

import base64
import random
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal

import anyio
import msgspec
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.workspace.serving import query_answers
from sentinel_rag.workspace.serving.arm_authentication import ArmError, refusal

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


# `FaultSchedule` is what the operator asked for (through the admin routes only), `FaultInjector` a wrapper around the
# routes of both wires that acts on it. A fault hits a number of requests and is then used up, or goes on by a schedule:
# every n-th request, a share of them, between two times. Without one the wrapper passes everything on as it is.
MOST_FAULTS = 1_000
LONGEST_DELAY_S = 60.0
LONGEST_LATENESS_S = 86_400.0

FaultKind = Literal[
    "throttled",
    "timeout",
    "server_error",
    "html",
    "empty",
    "no_content",
    "truncated",
    "too_large",
    "partial",
    "unauthorized",
    "forbidden",
    "conflict",
    "slow",
    "lost_answer",
    "other_columns",
    "late_rows",
]
_FOR_ONE_WIRE = {
    "partial": "logs",
    "too_large": "logs",
    "other_columns": "logs",
    "late_rows": "logs",
    "conflict": "rest",
}


class InjectedFault(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of the schedule. It hits the next `times` requests that fit (None: all), behind `skip` that pass.

    A request fits by `wire` (None: both), `method` (None: any), a part of its path, and its time, `[start, end)`. Of
    those that fit each `every`-th is taken, and of these a share of `probability`, drawn from `seed`: the same seed
    takes the same requests. `retry_after_s` None: no such header; text stands in it as it
    is. `delay_s` is how long a slow request waits before it
    is served as usual; a conflict has `status` 409 or 412.
    """

    kind: FaultKind
    wire: Literal["logs", "rest"] | None = None
    method: str | None = None
    path: str = ""
    times: int | None = 1
    skip: int = 0
    every: int = 1
    probability: float = 1.0
    seed: int = 0
    start: datetime | None = None
    end: datetime | None = None
    retry_after_s: int | str | None = 1
    delay_s: float = 0.2
    """How long a slow request waits; how late rows reach the log."""
    status: Literal[409, 412] = 409

    def fits(self, wire: Wire, method: str, path: str, at: datetime) -> bool:
        """Whether it is about such a request, at that time."""
        wire_fits = (self.wire or _FOR_ONE_WIRE.get(self.kind) or wire) == wire
        in_time = (self.start is None or at >= self.start) and (self.end is None or at < self.end)
        return wire_fits and in_time and (self.method or method).upper() == method and self.path.lower() in path.lower()

    def problem(self) -> tuple[str, str] | None:
        """What is wrong with it, and what to do; None for a sound one."""
        wire = _FOR_ONE_WIRE.get(self.kind)
        if wire is not None and self.wire not in (None, wire):
            return f"The fault {self.kind} is one of the {wire} wire.", "Correct the wire."
        if not ((self.times is None or 1 <= self.times <= MOST_FAULTS) and 0 <= self.skip <= MOST_FAULTS):
            return f"A fault hits 1 to {MOST_FAULTS} requests, or all (null).", "Correct times or skip."
        if not 1 <= self.every <= MOST_FAULTS:
            return f"A fault takes each request, or up to every {MOST_FAULTS}th.", "Correct every."
        if not 0 < self.probability <= 1:
            return "A probability is above 0 and at most 1.", "Correct probability."
        longest = LONGEST_LATENESS_S if self.kind == "late_rows" else LONGEST_DELAY_S
        if not 0 <= self.delay_s <= longest:
            return f"A delay is 0 to {longest:.0f} seconds.", "Correct delay_s."
        if any(moment is not None and moment.tzinfo is None for moment in (self.start, self.end)):
            return "A time needs a zone, as 2026-11-28T09:00:00Z.", "Correct start or end."
        if self.start is not None and self.end is not None and self.start >= self.end:
            return "The fault ends at or before its start.", "Correct start or end."
        return None


class _Planned:
    """A fault with what became of it."""

    def __init__(self, fault: InjectedFault) -> None:
        self.fault = fault
        self._fitted = 0
        self._draws = random.Random(fault.seed)  # noqa: S311  # the same faults again for the same seed, no secret

    def takes(self) -> bool:
        """Whether the next request that fits is hit; counts it."""
        if self.fault.skip:
            self.fault.skip -= 1
            return False
        self._fitted += 1
        if self._fitted % self.fault.every or self._draws.random() >= self.fault.probability:
            return False
        if self.fault.times is not None:
            self.fault.times -= 1
        return True


class FaultSchedule:
    """The faults that are still to come, and how many requests there were. Confined to the event loop."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._planned: list[_Planned] = []
        self._requests: Counter[str] = Counter()
        self._running: Counter[Wire] = Counter()
        self._most_at_once: Counter[Wire] = Counter()

    def replace(self, faults: Sequence[InjectedFault]) -> None:
        """Forget what is left, do `faults` in their order, and count from 0. Raises UsageError."""
        self._check(faults)
        self._planned = [_Planned(fault) for fault in faults]
        self._requests.clear()
        self._most_at_once.clear()

    def add(self, faults: Sequence[InjectedFault]) -> None:
        """Do `faults` behind those that are left; counts go on. Raises UsageError."""
        self._check(faults)
        self._planned += [_Planned(fault) for fault in faults]

    @staticmethod
    def _check(faults: Sequence[InjectedFault]) -> None:
        for fault in faults:
            problem = fault.problem()
            if problem is not None:
                raise UsageError(problem[0], next_step=problem[1])

    def next_for(self, wire: Wire, method: str, path: str) -> InjectedFault | None:
        """The fault that this request meets; counts the request."""
        self._requests[f"{wire} {method}"] += 1
        now = self._clock()
        for planned in self._planned:
            if planned.fault.fits(wire, method, path, now) and planned.takes():
                self._planned = [left for left in self._planned if left.fault.times != 0]
                return planned.fault
        return None

    def now(self) -> datetime:
        return self._clock()

    @contextmanager
    def running(self, wire: Wire) -> Iterator[None]:
        """Counts a request as long as it is served."""
        self._running[wire] += 1
        self._most_at_once[wire] = max(self._most_at_once[wire], self._running[wire])
        try:
            yield
        finally:
            self._running[wire] -= 1

    def to_dict(self) -> dict[str, Any]:
        """`faults` that are left, `requests` by wire and method, and how many were served at once, by wire."""
        return {
            "faults": msgspec.to_builtins([planned.fault for planned in self._planned]),
            "requests": dict(self._requests),
            "most_at_once": dict(self._most_at_once),
        }


class FaultInjector:
    """ASGI wrapper that lets `schedule` act on the requests of the two wires and on nothing else."""

    def __init__(self, app: ASGIApp, *, schedule: FaultSchedule) -> None:
        self._app = app
        self._schedule = schedule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wire = _wire_of(scope)
        if wire is None:
            await self._app(scope, receive, send)
            return
        fault = self._schedule.next_for(wire, scope["method"], scope["path"])
        with self._schedule.running(wire):
            await self._serve(wire, fault, scope, receive, send)

    async def _serve(self, wire: Wire, fault: InjectedFault | None, scope: Scope, receive: Receive, send: Send) -> None:
        if fault is None:
            await self._app(scope, receive, send)
        elif fault.kind == "slow":
            await anyio.sleep(fault.delay_s)
            await self._app(scope, receive, send)
        elif fault.kind == "late_rows":
            scope, receive = await late_request(scope, receive, self._schedule.now(), fault.delay_s)
            await self._app(scope, receive, send)
        elif fault.kind == "partial":
            await self._partial(scope, receive, send)
        elif fault.kind == "lost_answer":
            await self._answer_of(scope, receive)  # it is done, and nobody hears of it
            await broken_answer(send)
        else:
            answer = faulty_answer(wire, fault.kind, retry_after_s=fault.retry_after_s, conflict_status=fault.status)
            await answer(scope, receive, send)

    async def _partial(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, body = await self._answer_of(scope, receive)
        cut = cut_in_half(body) if start["status"] == 200 else body
        MutableHeaders(raw=start["headers"])["content-length"] = str(len(cut))
        await send(start)
        await send({"type": "http.response.body", "body": cut})

    async def _answer_of(self, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
        """Serve the request and keep its answer, uncompressed, back."""
        start: Message = {}
        body = bytearray()

        async def keep(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = {**message, "headers": list(message["headers"])}
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self._app({**scope, "headers": headers}, receive, keep)
        return start, bytes(body)


def _wire_of(scope: Scope) -> Wire | None:
    if scope["type"] != "http":
        return None
    path = scope["path"].lower()
    if path.startswith("/v1/"):
        return "logs"
    return "rest" if path.startswith("/subscriptions/") else None
