"""The gate: what happens to one tool call, on one page.

canonicalise → label → decide → record → dispatch → record. Above it lies the HTTP face, which knows who asks; below it
the policy, the store, the journal and the tool servers. A call that is not recorded is not run, and a decision that is
not an Allow ends here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from sentinel_rag.audit import CallIntended, CallOutcome, CallRefused, Journal, OutcomeStatus
from sentinel_rag.contracts.decisions import Allow, Deny, Reason
from sentinel_rag.contracts.labels import Integrity, Label
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.interceptor.arguments import ArgumentFault, CanonicalArguments, fit
from sentinel_rag.interceptor.limits import Limits
from sentinel_rag.interceptor.outcomes import HTTP_STATUS, Denied, NotCompleted, Outcome, outcome_of
from sentinel_rag.interceptor.policy import Policy, ToolPolicy, decide
from sentinel_rag.interceptor.policy.deciding import UNKNOWN_TOOL
from sentinel_rag.interceptor.request_body import ExecuteRequest
from sentinel_rag.interceptor.store import Principal, Session, SessionClosed, SessionStore
from sentinel_rag.interceptor.upstream import Upstream

TOOL_OUTPUT = Label(integrity=Integrity.UNTRUSTED)
"""Whatever a tool returns may have been written by an attacker: log lines, file names, web pages."""

MAX_REFUSED_BYTES = 16_384
"""Longer arguments of a call that did not run leave only their hash: refusals cost nothing and could fill the disk."""


class Gate:
    """Judges and runs calls under one policy. `upstreams` maps the policy's `server` names to tool servers."""

    def __init__(
        self,
        *,
        policy: Policy,
        sessions: SessionStore,
        journal: Journal,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        new_id: Callable[[], str],
    ) -> None:
        self.policy = policy
        self._sessions = sessions
        self._journal = journal
        self._upstreams = upstreams
        self._limits = limits
        self._new_id = new_id
        self._in_flight = 0

    async def execute(self, principal: Principal, wish: ExecuteRequest) -> Outcome:
        """Judge one call and run it if allowed. Raises UnavailableError if it cannot be recorded; then it did not run,
        or its outcome is on record as unknown."""
        call = _Call(self._new_id(), principal.key_id, wish, self.policy.tool(wish.tool_name))
        try:
            session = await self._sessions.claim(wish.session_id, principal.key_id)
        except SessionClosed as closed:
            return await self._refuse(call, Reason.CONFLICT, f"{closed} {closed.next_step}")
        if session is None:
            return await self._refuse(call, Reason.NOT_FOUND, "There is no such session.")
        call.session = session
        if call.tool is None:
            return await self._deny(call, UNKNOWN_TOOL)
        arguments = fit(call.tool, wish.args)
        if isinstance(arguments, ArgumentFault):
            return await self._refuse_arguments(call, arguments)
        call.arguments = arguments
        decision = decide(call.tool, arguments.value)
        match decision:
            case Deny():
                return await self._deny(call, decision)
            case Allow():
                return await self._run(call, call.tool, session, arguments, decision)
            case _:
                assert_never(decision)

    async def refuse_body(self, principal: Principal, fault: str) -> NotCompleted:
        """Record and answer a call whose body could not be read."""
        call = _Call(self._new_id(), principal.key_id)
        error = QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message=f"The request was refused: {fault}.")
        return await self._refuse(call, Reason.MALFORMED_BODY, error.message, error)

    async def _run(
        self, call: _Call, tool: ToolPolicy, session: Session, arguments: CanonicalArguments, allowed: Allow
    ) -> Outcome:
        upstream = self._upstreams.get(tool.server)
        if upstream is None:
            return await self._refuse(call, Reason.UPSTREAM_FAILED, "No tool server is connected for this tool.")
        if self._in_flight >= self._limits.calls_in_flight:
            return await self._refuse(call, Reason.OVERLOADED, "Too many calls are running; try again in a moment.")
        self._in_flight += 1
        try:
            label = allowed.label.join(TOOL_OUTPUT)
            before = session.context
            raise_label = session.raise_to(label)
            await self._journal.append(
                CallIntended(
                    audit_id=call.audit_id,
                    key_id=call.key_id,
                    session_id=session.session_id,
                    tool=tool.name,
                    requested_tool=call.wish.tool_name if call.wish else tool.name,
                    server=tool.server,
                    effect=tool.effect.value,
                    arguments=arguments.value,
                    arguments_sha256=arguments.sha256,
                    rule_id=allowed.rule_id,
                    label=label,
                    context_before=before,
                    context_after=session.context,
                    policy_sha256=self.policy.sha256,
                ),
                alongside=raise_label,
            )
            started = time.perf_counter()
            timeout = tool.timeout_s or self._limits.tool_seconds
            try:
                reply = await upstream.call(
                    tool.name,
                    arguments,
                    principal=call.key_id,
                    session_id=session.session_id,
                    timeout_s=timeout,
                )
            except BaseException:  # this server stops, or the upstream broke its promise not to raise
                await self._journal.append(CallOutcome(audit_id=call.audit_id, status=OutcomeStatus.UNKNOWN))
                raise
            outcome, record = outcome_of(reply, tool, call.audit_id, (time.perf_counter() - started) * 1e3)
            await self._journal.append(record)
            return outcome
        finally:
            self._in_flight -= 1

    async def _deny(self, call: _Call, deny: Deny) -> Denied:
        await self._journal.append(call.refusal(deny.reason, self.policy, deny))
        return Denied(deny, call.audit_id)

    async def _refuse(self, call: _Call, reason: Reason, detail: str, error: QueryError | None = None) -> NotCompleted:
        await self._journal.append(call.refusal(reason, self.policy))
        return NotCompleted(reason, detail, call.audit_id, error)

    async def _refuse_arguments(self, call: _Call, fault: ArgumentFault) -> NotCompleted:
        error = QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT,
            message=fault.message,
            next_step="Correct the argument and call again.",
            field=fault.field,
            allowed=fault.allowed,
        )
        return await self._refuse(call, Reason.INVALID_ARGUMENT, fault.message, error)


@dataclass(slots=True)
class _Call:
    """One call on its way through the gate; what is not yet known to be good is None."""

    audit_id: str
    key_id: str
    wish: ExecuteRequest | None = None
    tool: ToolPolicy | None = None
    session: Session | None = None
    arguments: CanonicalArguments | None = None

    def refusal(self, reason: Reason, policy: Policy, deny: Deny | None = None) -> CallRefused:
        """The record of a call that is not run: with the arguments as judged, or as they came if it never got there."""
        arguments = self.arguments or (CanonicalArguments.of(self.wish.args) if self.wish else None)
        return CallRefused(
            audit_id=self.audit_id,
            key_id=self.key_id,
            session_id=None if self.wish is None else self.wish.session_id,
            tool=None if self.tool is None else self.tool.name,
            requested_tool=None if self.wish is None else self.wish.tool_name,
            arguments=arguments.value if arguments and len(arguments.encoded) <= MAX_REFUSED_BYTES else None,
            arguments_sha256=None if arguments is None else arguments.sha256,
            reason=reason,
            http_status=HTTP_STATUS[reason],
            rule_id=None if deny is None else deny.rule_id,
            label=None if deny is None else deny.label,
            context=None if self.session is None else self.session.context,
            policy_sha256=policy.sha256,
        )
