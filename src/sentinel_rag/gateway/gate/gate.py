"""Whether a call comes in, and a call that is decided again because labels have risen.

A call is decided by labels that this process holds in memory, and no other call can be decided between that and the
rise of the context label. If the file turns out to know more, or an answer was awaited meanwhile, it is decided again.
A call that a person approves runs at that moment, the whole way through the gate, as its agent's; where anything that
the approval is bound to has changed, it does not run, and a person is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from sentinel_rag.contracts.decisions import Deny, Reason
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.servers import ClientDisconnect
from sentinel_rag.gateway.approvals import Approval, ApprovalState, ApprovalStore, YesOutcome
from sentinel_rag.gateway.arguments import ArgumentFault
from sentinel_rag.gateway.flow import NoSuchHandle, find_references
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.gate.call import CLOSED, Call, Endings, EnteredCall, Intent, Stores
from sentinel_rag.gateway.gate.decision import CallDecider, Previews
from sentinel_rag.gateway.gate.result import ResultRecorder
from sentinel_rag.gateway.gate.running import Running
from sentinel_rag.gateway.limits import GatewayLimits, RateLimiter
from sentinel_rag.gateway.outcomes import Completed, DeniedCall, NotCompleted, Outcome, outcome_kept
from sentinel_rag.gateway.pins import Pins, Quarantined
from sentinel_rag.gateway.policy import Effect, Policies
from sentinel_rag.gateway.policy.model import UNKNOWN_TOOL
from sentinel_rag.gateway.request_body import ExecuteRequest
from sentinel_rag.gateway.store import ContextMoved, Principal, Session, SessionClosed, SessionStore, TooManySessions
from sentinel_rag.gateway.upstream import Upstream

NotEntered = DeniedCall | NotCompleted


class Entrance:
    """`servers` names the tool servers that are connected; a tool that is `switched_off` is denied whatever its rules
    say."""

    def __init__(
        self,
        sessions: SessionStore,
        endings: Endings,
        *,
        limits: GatewayLimits,
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
        self, call: Call, principal: Principal, request: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        """The call with its session and tool; or the answer, which is on record. `looking` is for a person who reads
        alone. Whatever is turned away counts for the rate of the key as a call does."""
        entered = await self._with_session_and_tool(call, principal, request, looking=looking)
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
        turned_away = await self._unless_readable(entered, request) if looking else None
        return turned_away or await self._unless_pinned(entered) or entered

    async def _with_session_and_tool(
        self, call: Call, principal: Principal, request: ExecuteRequest, *, looking: bool
    ) -> EnteredCall | NotEntered:
        try:
            session = await self._sessions.claim(
                request.session_id,
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
        if request.if_effect is not None and request.if_effect is not call.tool.effect:
            return await self._endings.refuse_effect(call, request.if_effect)
        return EnteredCall(call, call.tool, session)

    async def _unless_readable(self, entered: EnteredCall, request: ExecuteRequest) -> NotEntered | None:
        """None for a call that a person may make alone; else the answer."""
        if entered.tool.effect is not Effect.READ:
            denied = await self._endings.deny(entered.call, Deny(Reason.MISSING_SCOPE, TOP))
            return replace(denied, note="A person looks with tools that only read; ask the agent for what changes.")
        with suppress(NoSuchHandle):
            if not find_references(request.args):
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
        limits: GatewayLimits,
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
            result=ResultRecorder(stores, self._endings, clock),
            upstreams=upstreams,
            limits=limits,
            readers_of=readers_of,
        )
        previews = Previews(stores.journal, upstreams, limits, clock)
        self._decision = CallDecider(stores, self._running, self._endings, previews, name_of)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return self._running.calls_in_flight

    async def execute(
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None = None
    ) -> Outcome:
        """Judge one call and run it if allowed. Raises UnavailableError if it cannot be recorded; then it did not run,
        or its outcome is on record as unknown. `caller` tells when nobody waits for the outcome any more: a call that
        only reads is then stopped, any other goes on to its end, and the outcome of both is recorded."""
        return await self._take(principal, request, caller)

    async def look(
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None = None
    ) -> Outcome:
        """`execute` for a person who reads without an agent: only what reads, in a session of the person's own key.

        No agent's key enters such a session, so nothing of a conversation reaches it; it raises no conversation, since
        labels rise within the sessions of one key.
        """
        return await self._take(principal, request, caller, looking=True)

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
        self, principal: Principal, request: ExecuteRequest, caller: ClientDisconnect | None, *, looking: bool = False
    ) -> Outcome:
        policy = self._policies.current
        call = Call(self._new_id(), principal.key_id, policy, request, policy.tool(request.tool_name), caller=caller)
        call.key_name = principal.name
        entered = await self._entrance.enter(call, principal, request, looking=looking)
        if not isinstance(entered, EnteredCall):
            return entered
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._decision.attempt(entered, request.args)
            except ContextMoved:
                await self._sessions.refresh(entered.session)
                if entered.session.closed:
                    return await self._endings.refuse(call, Reason.CONFLICT, CLOSED)
        return await self._endings.refuse(
            call, Reason.OVERLOADED, "The session's labels keep rising; try again in a moment."
        )


class AtYes:
    """Runs approved calls through `gate`; `live` gives the principal of a key that lives."""

    def __init__(self, gate: Gate, approvals: ApprovalStore, live: Callable[[str], Principal | None]) -> None:
        self._gate = gate
        self._approvals = approvals
        self._live = live

    async def run(self, approval: Approval) -> Approval:
        """The approval once its call has run, if it was approved and runs at the yes. Raises UnavailableError where
        nothing can be recorded."""
        if approval.state is not ApprovalState.APPROVED or not approval.question.runs_at_yes or approval.sent is None:
            return approval
        principal = self._live(approval.binding.key_id)
        if principal is None:  # its agent is gone, and nobody else may act for it
            return await self._approvals.keep(approval, YesOutcome("error", "", Reason.UNAUTHENTICATED.value), b"")
        sent: dict[str, Any] = dict(approval.sent)
        request = ExecuteRequest(
            approval.binding.session_id, approval.binding.tool, sent["args"], marks_quotes=sent["marks_quotes"]
        )
        outcome = await self._gate.execute(principal, request)
        return await self._approvals.keep(approval, _ran(outcome), outcome_kept(outcome))


def _ran(outcome: Outcome) -> YesOutcome:
    match outcome:
        case Completed(audit_id=audit_id):
            return YesOutcome("success", audit_id)
        case DeniedCall(deny=deny, audit_id=audit_id, approval_id=approval_id):
            return YesOutcome("denied", audit_id, deny.reason.value, approval_id or "")
        case NotCompleted(reason=reason, audit_id=audit_id):
            return YesOutcome("error", audit_id, reason.value)
        case _:
            assert_never(outcome)
