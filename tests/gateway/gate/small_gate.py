"""A real gate, store, journal and policy in this process, in front of a tool server that answers as it is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.admission import GatewayLimits, RateLimiter
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.gate import Gate, Stores
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import FixedPolicy, Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.responses import Outcome
from sentinel_rag.gateway.store import Principal, Scope, Session, State, new_audit_id, open_state
from sentinel_rag.gateway.upstream import Returned, UpstreamCall, UpstreamReply, UpstreamTool

KEY = "agent"
NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
Answer = UpstreamReply | BaseException | Callable[[], Any]


def returned(value: Any, rows: int | None = None) -> Returned:
    return Returned(msgspec.json.encode(value), value, rows)


@dataclass
class Server:
    """An upstream. `answers` by tool: a reply, an exception to raise, or a coroutine function that gives a reply."""

    listed: tuple[UpstreamTool, ...] = ()
    lists: bool = True
    answers: dict[str, Answer] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        self.calls.append(
            {
                "tool": call.tool,
                "arguments": call.arguments.value,
                "principal": call.principal,
                "session_id": call.session_id,
                "timeout_s": call.timeout_s,
                **({} if call.readers is None else {"readers": call.readers}),
            }
        )
        answer = self.answers.get(call.tool, returned({"ok": True}))
        if isinstance(answer, BaseException):
            raise answer
        reply: UpstreamReply = await answer() if callable(answer) else answer
        return reply

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        if not self.lists:
            raise UnavailableError("The tool server is away.", next_step="Start it.")
        return self.listed

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """The tests tell the pins themselves."""

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """Nothing is kept for a session."""

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class Clock:
    """The time, moved by hand."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class SmallGate:
    """One gateway. `seconds` is the clock of its rates."""

    gate: Gate
    state: State
    server: Server
    pins: Pins
    clock: Clock
    seconds: list[float]

    async def call(
        self,
        tool: str,
        args: JsonObject | None = None,
        *,
        session: str = "s1",
        key: str = KEY,
        rate: Rate | None = None,
    ) -> Outcome:
        principal = Principal(key, frozenset({Scope.EXECUTE}), rate=rate)
        return await self.gate.execute(principal, ExecuteRequest(session, tool, args or {}))

    async def session(self, session: str = "s1", key: str = KEY) -> Session:
        found = await self.state.sessions.claim(session, key)
        assert found is not None
        return found

    async def context(self, session: str = "s1") -> Label:
        return (await self.session(session)).context

    async def says(self, words: str, session: str = "s1") -> None:
        """A person's own words in the session."""
        _, write = (await self.session(session)).name(named_in(words), "user")
        await self.state.database.run(write)

    async def records(self, *kinds: str) -> list[dict[str, Any]]:
        """What the journal has, oldest first, of these kinds; of all if none is named."""
        entries = await self.state.journal.read(0, 1_000)
        return [dict(entry.record) for entry in entries if not kinds or entry.record["kind"] in kinds]


def small_gate(
    state: State,
    policy: Policy,
    *,
    server: Server | None = None,
    limits: GatewayLimits | None = None,
    clock: Clock | None = None,
    switched_off: Collection[str] = (),
    readers: Mapping[str, frozenset[str]] | None = None,
) -> SmallGate:
    """`readers` are the names under which each key reads."""
    server, clock = server or Server(), clock or Clock()
    policies, upstreams, seconds = FixedPolicy(policy), dict.fromkeys(("world", "knowledge"), server), [0.0]
    pins = Pins(policies, upstreams, state.database, state.journal)
    gate = Gate(
        policies=policies,
        stores=Stores(state.sessions, state.handles, state.resources, state.approvals, state.journal),
        upstreams=upstreams,
        limits=limits or GatewayLimits(),
        rates=RateLimiter(lambda: seconds[0]),
        pins=pins,
        switched_off=switched_off,
        new_id=new_audit_id,
        clock=clock,
        readers_of=lambda key_id: (readers or {}).get(key_id, frozenset()),
    )
    return SmallGate(gate, state, server, pins, clock, seconds)


def opened(folder: Path, clock: Clock | None = None) -> State:
    return open_state(folder, clock=clock or Clock())


def fields_of(record: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: record[name] for name in names}
