"""Running a call that was allowed: the intent on record, the tool server's reply, the outcome on record.

A call that is not recorded is not run, and what has run never looks as if it had not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import anyio

from sentinel_rag.audit import CallOutcome, Journal, OutcomeStatus
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.gate.call import DecidedCall
from sentinel_rag.gateway.gate.endings import Endings
from sentinel_rag.gateway.gate.intent import Intent
from sentinel_rag.gateway.gate.result import Result
from sentinel_rag.gateway.gate.result_forms import in_form
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.outcomes import Outcome, OutcomeLost
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.store import ContextMoved
from sentinel_rag.gateway.upstream import Upstream, UpstreamReply
from sentinel_rag.gateway.upstream.unanswered import nobody_waits


class Running:
    """`upstreams` maps the policy's `server` names to tool servers; `readers_of` tells under which names a key may
    read."""

    def __init__(
        self,
        journal: Journal,
        endings: Endings,
        *,
        intent: Intent,
        result: Result,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        readers_of: Callable[[str], frozenset[str]],
    ) -> None:
        self._journal = journal
        self._endings = endings
        self._intent = intent
        self._result = result
        self._upstreams = upstreams
        self._limits = limits
        self._readers_of = readers_of
        self._in_flight = InFlight(limits)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return len(self._in_flight)

    async def run(self, decided: DecidedCall) -> Outcome:
        """Run a call by the labels it was decided by. Raises ContextMoved if they have risen since, ApprovalSpent if
        its approval has served another call, UnavailableError if the intent cannot be recorded; then it has not run."""
        call = decided.call
        upstream = self._upstreams.get(decided.tool.server)
        full = self._in_flight.refusal(call.key_id)
        if upstream is None or full is not None:
            await self._endings.reveal(decided.entered, decided.entered.handles_label())
        if upstream is None:
            return await self._endings.refuse(
                call, Reason.UPSTREAM_FAILED, "No tool server is connected for this tool."
            )
        if full is not None:
            return await self._endings.refuse(call, Reason.OVERLOADED, full)
        if decided.session.context != decided.facts.context:
            raise ContextMoved
        self._in_flight.enter(call.key_id)
        try:
            return await self._run_at(upstream, decided)
        finally:
            self._in_flight.leave(call.key_id)

    async def _run_at(self, upstream: Upstream, decided: DecidedCall) -> Outcome:
        call, tool, session = decided.call, decided.tool, decided.session
        if tool.sends_readers:
            # A person's session reads as that person does, the agent's own as its key does.
            call.readers = self._readers_of(session.user_key_id or session.key_id)
        await self._intent.record(decided)
        started = time.perf_counter()
        try:
            reply = in_form(await self._reply(upstream, decided), tool.result, tool.server)
        except BaseException:  # this server stops, or the upstream broke its promise not to raise
            await self._journal.append(CallOutcome(audit_id=call.audit_id, status=OutcomeStatus.UNKNOWN))
            raise
        try:
            return await self._result.tell(decided, reply, (time.perf_counter() - started) * 1e3)
        except UnavailableError as away:
            # Whichever record could not be written: the call has run, and must not look as if it had not.
            if tool.effect is Effect.READ:
                raise
            raise OutcomeLost(str(away), next_step=away.next_step) from away

    async def _reply(self, upstream: Upstream, decided: DecidedCall) -> UpstreamReply:
        """What the tool server answers. A call that only reads is stopped once its caller has left."""
        call, tool = decided.call, decided.tool
        asked = partial(
            upstream.call,
            tool.name,
            decided.arguments,
            principal=call.key_id,
            session_id=decided.session.session_id,
            timeout_s=tool.timeout_s or self._limits.tool_seconds,
            readers=call.readers,
        )
        if call.caller is None or tool.effect is not Effect.READ:
            return await asked()
        with anyio.CancelScope() as waiting, call.caller.heard_by(waiting.cancel):
            return await asked()
        return nobody_waits()


# How many calls run at tool servers at once: in all, and for one key, so that no key can take every place.


class InFlight:
    """Belongs to one event loop, so a place is taken without waiting and without a lock."""

    def __init__(self, limits: Limits) -> None:
        self._in_all = limits.calls_in_flight
        self._per_key = limits.calls_in_flight_per_key
        self._calls = 0
        self._of_key: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._calls

    def refusal(self, key_id: str) -> str | None:
        """Why one more call of the key may not run now, in one sentence; None if it may."""
        if self._calls >= self._in_all:
            return "Too many calls are running; try again in a moment."
        if self._of_key[key_id] >= self._per_key:
            return "Too many calls of this key are running; try again in a moment."
        return None

    def enter(self, key_id: str) -> None:
        """Take a place for one call. Ask `refusal` first, without an await between."""
        self._calls += 1
        self._of_key[key_id] += 1

    def leave(self, key_id: str) -> None:
        """Give it back."""
        self._calls -= 1
        self._of_key[key_id] -= 1
        if not self._of_key[key_id]:
            del self._of_key[key_id]
