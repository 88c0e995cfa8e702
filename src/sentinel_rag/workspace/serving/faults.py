"""Faults on demand: what a service in the cloud does on a bad day, done by the embedded workspace when it is told.

`FaultSchedule` is what the operator asked for (through the admin routes only), `FaultInjector` a wrapper around the
routes of both wires that acts on it. A fault hits a number of requests and is then used up, or goes on by a schedule:
every n-th request, a share of them, between two times. Without one the wrapper passes everything on as it is.
`fault_answers` says what the answers look like.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal

import anyio
import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.workspace.serving.fault_answers import Wire, broken_answer, cut_in_half, faulty_answer, late_request

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
