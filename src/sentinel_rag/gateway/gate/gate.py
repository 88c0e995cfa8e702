"""The two doors of the gate, and a call that is decided again because labels have risen.

A call is decided by labels that this process holds in memory, and no other call can be decided between that and the
rise of the context label. If the file turns out to know more, or an answer was awaited meanwhile, it is decided again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sentinel_rag.contracts.client_disconnect import ClientDisconnect
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.gate.admission_checks import Entrance
from sentinel_rag.gateway.gate.call import Call, EnteredCall
from sentinel_rag.gateway.gate.decision import Decision
from sentinel_rag.gateway.gate.endings import CLOSED, Endings
from sentinel_rag.gateway.gate.intent import Intent
from sentinel_rag.gateway.gate.preview import Previews
from sentinel_rag.gateway.gate.result import Result
from sentinel_rag.gateway.gate.running import Running
from sentinel_rag.gateway.gate.stores import Stores
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.outcomes import NotCompleted, Outcome
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.rates import RateLimiter
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.store import ContextMoved, Principal, Session
from sentinel_rag.gateway.upstream import Upstream

MAX_ATTEMPTS = 10
"""How often a call is decided again because labels rose meanwhile. A context label can rise three times in all."""


class Gate:
    """Judges and runs calls. `upstreams` maps the policy's `server` names to tool servers; a tool that is
    `switched_off` is denied whatever its rules say. `readers_of` tells under which names a key may read, `name_of` the
    name of a key."""

    def __init__(
        self,
        *,
        policies: Policies,
        stores: Stores,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        rates: RateLimiter,
        pins: Pins,
        switched_off: Collection[str] = (),
        new_id: Callable[[], str],
        clock: Clock,
        readers_of: Callable[[str], frozenset[str]] = lambda _: frozenset(),
        name_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._policies = policies
        self._sessions = stores.sessions
        self._new_id = new_id
        self._endings = Endings(stores.journal, clock)
        self._entrance = Entrance(
            stores.sessions,
            self._endings,
            limits=limits,
            rates=rates,
            pins=pins,
            servers=upstreams,
            switched_off=switched_off,
        )
        self._running = Running(
            stores.journal,
            self._endings,
            intent=Intent(stores, clock),
            result=Result(stores, self._endings, clock),
            upstreams=upstreams,
            limits=limits,
            readers_of=readers_of,
        )
        previews = Previews(stores.journal, upstreams, limits, clock)
        self._decision = Decision(stores, self._running, self._endings, previews, name_of)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return self._running.calls_in_flight

    async def execute(
        self, principal: Principal, wish: ExecuteRequest, caller: ClientDisconnect | None = None
    ) -> Outcome:
        """Judge one call and run it if allowed. Raises UnavailableError if it cannot be recorded; then it did not run,
        or its outcome is on record as unknown. `caller` tells when nobody waits for the outcome any more: a call that
        only reads is then stopped, any other goes on to its end, and the outcome of both is recorded."""
        return await self._take(principal, wish, caller)

    async def look(self, principal: Principal, wish: ExecuteRequest, caller: ClientDisconnect | None = None) -> Outcome:
        """`execute` for a person who reads without an agent: only what reads, in a session of the person's own key.

        No agent's key enters such a session, so nothing of a conversation reaches it; it raises no conversation, since
        labels rise within the sessions of one key.
        """
        return await self._take(principal, wish, caller, looking=True)

    async def refused_now(self, principal: Principal, session: Session) -> Mapping[str, tuple[Violation, ...]]:
        """The tools whose every call would be refused now in the session, because of what it has seen, without a
        person being asked: by name, with what each call violates."""
        await self._sessions.refresh(session)
        policy, found = self._policies.current, {}
        remembers = policy.remembers(principal.key_id, principal.name)
        for name, tool in policy.tools.items():
            if violations := await self._decision.refused_whatever(policy, tool, session, remembers):
                found[name] = violations
        return found

    async def refuse_body(self, principal: Principal, fault: str) -> NotCompleted:
        """Record and answer a call whose body could not be read."""
        call = Call(self._new_id(), principal.key_id, self._policies.current)
        return await self._endings.refuse_body(call, fault)

    async def _take(
        self, principal: Principal, wish: ExecuteRequest, caller: ClientDisconnect | None, *, looking: bool = False
    ) -> Outcome:
        policy = self._policies.current
        call = Call(self._new_id(), principal.key_id, policy, wish, policy.tool(wish.tool_name), caller=caller)
        call.key_name = principal.name
        entered = await self._entrance.enter(call, principal, wish, looking=looking)
        if not isinstance(entered, EnteredCall):
            return entered
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._decision.attempt(entered, wish.args)
            except ContextMoved:
                await self._sessions.refresh(entered.session)
                if entered.session.closed:
                    return await self._endings.refuse(call, Reason.CONFLICT, CLOSED)
        return await self._endings.refuse(
            call, Reason.OVERLOADED, "The session's labels keep rising; try again in a moment."
        )
