"""Whether a call comes in: its session, its tool, its rate, and the definition that the tool was accepted with.

Nothing here looks at what the arguments say or at any label; that is `decision`. Who the principal is was settled
before, by `gateway.admission`.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from sentinel_rag.contracts.decisions import Deny, Reason
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.arguments import ArgumentFault
from sentinel_rag.gateway.flow import NoSuchHandle, find_references
from sentinel_rag.gateway.gate.call import Call, EnteredCall
from sentinel_rag.gateway.gate.endings import Endings
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.outcomes import Denied, NotCompleted
from sentinel_rag.gateway.pins import Pins, Quarantined
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.policy.deciding import UNKNOWN_TOOL
from sentinel_rag.gateway.rates import RateLimiter
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.store import Principal, SessionClosed, SessionStore, TooManySessions

NotEntered = Denied | NotCompleted


class Entrance:
    """`servers` names the tool servers that are connected; a tool that is `switched_off` is denied whatever its rules
    say."""

    def __init__(
        self,
        sessions: SessionStore,
        endings: Endings,
        *,
        limits: Limits,
        rates: RateLimiter,
        pins: Pins,
        servers: Collection[str],
        switched_off: Collection[str],
    ) -> None:
        self._sessions = sessions
        self._endings = endings
        self._limits = limits
        self._rates = rates
        self._pins = pins
        self._servers = servers
        self._switched_off = frozenset(switched_off)

    async def enter(
        self, call: Call, principal: Principal, wish: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        """The call with its session and tool; or the answer, which is on record. `looking` is for a person who reads
        alone. Whatever is turned away counts for the rate of the key as a call does."""
        entered = await self._with_session_and_tool(call, principal, wish, looking=looking)
        if not isinstance(entered, EnteredCall):
            # It ends before the rate of a tool is asked and is on record all the same: so it counts for its key's.
            self._rates.take(principal.key_id, principal.rate)
            return entered
        # One agent serves many people: what one of them, or whoever steers their conversation, uses up of a tool is
        # taken from nobody else.
        whose = entered.session.user_key_id or principal.key_id
        wait_s = self._rates.take(principal.key_id, principal.rate, entered.tool.name, entered.tool.rate, tool_of=whose)
        if wait_s is not None:
            # By the tool's rate or the key's: a key that goes on and on all the same comes to the end of its own.
            self._rates.take(principal.key_id, principal.rate)
            return await self._endings.refuse_for_now(call, wait_s)
        turned_away = await self._unless_readable(entered, wish) if looking else None
        return turned_away or await self._unless_pinned(entered) or entered

    async def _with_session_and_tool(
        self, call: Call, principal: Principal, wish: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        try:
            session = await self._sessions.claim(
                wish.session_id,
                principal.key_id,
                user_key_id=principal.key_id if looking else None,
                most=self._limits.sessions_per_key,
            )
        except SessionClosed as closed:
            return await self._endings.refuse(call, Reason.CONFLICT, f"{closed} {closed.next_step}")
        except TooManySessions as many:
            return await self._endings.refuse(call, Reason.RATE_LIMITED, f"{many} {many.next_step}")
        # A key that may execute too does not act as an agent where its person looks, nor the other way round.
        if session is None or (session.user_key_id == principal.key_id) is not looking:
            return await self._endings.refuse(call, Reason.NOT_FOUND, "There is no such session.")
        call.session = session
        if call.tool is None:
            return await self._endings.deny(call, UNKNOWN_TOOL)
        if call.tool.name in self._switched_off:
            denied = await self._endings.deny(call, Deny(Reason.TOOL_SWITCHED_OFF, TOP))
            return replace(denied, note="The operator has not switched this tool on.")
        if wish.if_effect is not None and wish.if_effect is not call.tool.effect:
            return await self._endings.refuse_effect(call, wish.if_effect)
        return EnteredCall(call, call.tool, session)

    async def _unless_readable(self, entered: EnteredCall, wish: ExecuteRequest) -> NotEntered | None:
        """None for a call that a person may make alone; else the answer."""
        if entered.tool.effect is not Effect.READ:
            denied = await self._endings.deny(entered.call, Deny(Reason.MISSING_SCOPE, TOP))
            return replace(denied, note="A person looks with tools that only read; ask the agent for what changes.")
        with suppress(NoSuchHandle):
            if not find_references(wish.args):
                return None
        # A tool may repeat what it was asked, and so tell what the person's clearance does not cover.
        return await self._endings.refuse_arguments(
            entered.call, ArgumentFault("", "A look takes values and no handles.")
        )

    async def _unless_pinned(self, entered: EnteredCall) -> NotEntered | None:
        """None if the tool is what it was when its definition was accepted; else the answer."""
        call, tool = entered.call, entered.tool
        pin = self._pins.sha256_of(tool)
        if pin is None and tool.server in self._servers and not await self._pins.learn(tool.server):
            message = "The tool server does not list its tools."
            error = QueryError(
                code=QueryErrorCode.UNAVAILABLE,
                message=message,
                next_step="Check that the tool server runs; ask again.",
            )
            return await self._endings.refuse(call, Reason.UPSTREAM_FAILED, message, error)
        call.pin = pin or self._pins.sha256_of(tool)
        if isinstance(call.pin, Quarantined):
            denied = await self._endings.deny(call, Deny(Reason.TOOL_QUARANTINED, TOP))
            return replace(denied, note="The definition of the tool has changed; an administrator has to accept it.")
        return None
