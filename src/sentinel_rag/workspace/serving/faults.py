"""Faults on demand: what a service in the cloud does on a bad day, done by the embedded workspace when it is told.

`FaultSchedule` is what the operator asked for (through the admin routes only), `FaultInjector` a wrapper around the
routes of both wires that acts on it. Each fault hits a number of requests and is then used up; without one the wrapper
passes everything on as it is. `fault_answers` says what the answers look like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import anyio
import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.workspace.serving.fault_answers import Wire, broken_answer, cut_in_half, faulty_answer

MOST_FAULTS = 1_000
LONGEST_DELAY_S = 60.0

FaultKind = Literal[
    "throttled", "timeout", "partial", "empty", "no_content", "html", "server_error", "slow", "conflict", "lost_answer"
]
_FOR_ONE_WIRE = {"partial": "logs", "conflict": "rest"}


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of the schedule. It hits the next `times` requests that fit, behind `skip` that pass.

    A request fits by `wire` (None: both), `method` (None: any) and a part of its path. `retry_after_s` None: no such
    header. `delay_s` is how long a slow request waits before it is served as usual; a conflict has `status` 409 or 412.
    """

    kind: FaultKind
    wire: Literal["logs", "rest"] | None = None
    method: str | None = None
    path: str = ""
    times: int = 1
    skip: int = 0
    retry_after_s: int | None = 1
    delay_s: float = 0.2
    status: Literal[409, 412] = 409

    def fits(self, wire: Wire, method: str, path: str) -> bool:
        wire_fits = (self.wire or _FOR_ONE_WIRE.get(self.kind) or wire) == wire
        return wire_fits and (self.method or method).upper() == method and self.path.lower() in path.lower()


class FaultSchedule:
    """The faults that are still to come, and how many requests there were. Confined to the event loop."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._requests: Counter[str] = Counter()
        self._running: Counter[Wire] = Counter()
        self._most_at_once: Counter[Wire] = Counter()

    def replace(self, faults: Sequence[Fault]) -> None:
        """Forget what is left, do `faults` in their order, and count from 0. Raises UsageError."""
        for fault in faults:
            wire = _FOR_ONE_WIRE.get(fault.kind)
            if wire is not None and fault.wire not in (None, wire):
                raise UsageError(f"The fault {fault.kind} is one of the {wire} wire.", next_step="Correct the wire.")
            if not (1 <= fault.times <= MOST_FAULTS and 0 <= fault.skip <= MOST_FAULTS):
                raise UsageError(f"A fault hits 1 to {MOST_FAULTS} requests.", next_step="Correct times or skip.")
            if not 0 <= fault.delay_s <= LONGEST_DELAY_S:
                raise UsageError(f"A delay is 0 to {LONGEST_DELAY_S:.0f} seconds.", next_step="Correct delay_s.")
        self._faults = list(faults)
        self._requests.clear()
        self._most_at_once.clear()

    def next_for(self, wire: Wire, method: str, path: str) -> Fault | None:
        """The fault that this request meets; counts the request."""
        self._requests[f"{wire} {method}"] += 1
        for fault in self._faults:
            if fault.fits(wire, method, path):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                self._faults = [left for left in self._faults if left.times]
                return fault
        return None

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
            "faults": msgspec.to_builtins(self._faults),
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

    async def _serve(self, wire: Wire, fault: Fault | None, scope: Scope, receive: Receive, send: Send) -> None:
        if fault is None:
            await self._app(scope, receive, send)
        elif fault.kind == "slow":
            await anyio.sleep(fault.delay_s)
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
