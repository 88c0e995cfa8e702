"""`tools/call` through the gate: the wish, progress, and a person's approval where the policy asks for one.

What a client is told meanwhile says how long the gateway has worked, and never what the tool server says of itself:
that would be words of others on a way past every label.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import anyio

from sentinel_rag.contracts.client_disconnect import ClientDisconnect
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.approvals import ApprovalState, ApprovalStore
from sentinel_rag.gateway.downstream.client_sessions import Abilities, ClientSessions, SameId
from sentinel_rag.gateway.downstream.exchange import Stream, meanwhile
from sentinel_rag.gateway.downstream.messages import (
    Code,
    Request,
    RequestId,
    RpcFault,
    is_id,
    notification_bytes,
    request_bytes,
)
from sentinel_rag.gateway.downstream.tool_results import result_of
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.outcomes import Denied, NotCompleted, Outcome
from sentinel_rag.gateway.refusals import Refusal, Unread
from sentinel_rag.gateway.request_body import ExecuteRequest, MalformedBody, read_execute
from sentinel_rag.gateway.store import Principal

PROGRESS_S = 1.0
"""How often a client that asked for progress hears that its call still runs."""

BREATH_S = 15.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls and what their client can do. `admitted` asks for the key once more, and raises Refusal where it has
    ended; `looks`: a person who reads; `in_session`: the era in which a question to the client travels on the stream of
    the call, and a cancellation names it."""

    principal: Principal
    admitted: Callable[[], Awaitable[Principal]]
    looks: bool
    abilities: Abilities
    in_session: bool
    departure: ClientDisconnect | None


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """`approvals_page` is the address under which people decide approvals, if there is one."""

    gate: Gate
    approvals: ApprovalStore
    clients: ClientSessions
    limits: Limits
    approvals_page: str | None = None

    def read(self, session_id: str, asked: Request) -> ExecuteRequest:
        """The wish of a `tools/call`. Raises RpcFault."""
        arguments = asked.params.get("arguments")
        try:
            wish = read_execute(session_id, asked.params.get("name"), {} if arguments is None else arguments)
        except MalformedBody as fault:
            raise RpcFault(Code.INVALID_PARAMS, f"{fault}.", request_id=asked.request_id) from None
        # Clients of other makers read results by the tools' own forms, and models pay for each mark.
        return replace(wish, marks_quotes=False)

    async def refuse(self, principal: Principal, fault: str) -> NotCompleted:
        """Record a message that could not be read."""
        return await self.gate.refuse_body(principal, fault.rstrip("."))

    async def run(self, caller: Caller, asked: Request, wish: ExecuteRequest, stream: Stream | None) -> dict[str, Any]:
        """The result of the call. Raises RpcFault for an id that another call of the session has, and whatever the
        gate raises."""
        key_id = caller.principal.key_id
        # Without sessions a client ends a call by its connection, and ids of two clients may be the same.
        request_id: RequestId = asked.request_id if caller.in_session else f"{id(asked)}"
        try:
            with self.clients.call(key_id, wish.session_id, request_id, caller.departure) as left:
                return await self._told(caller, asked, wish, stream, left)
        except SameId:
            fault = "Another call of this session has this id, and runs still."
            raise RpcFault(Code.INVALID_REQUEST, fault, request_id=asked.request_id) from None

    async def _told(
        self, caller: Caller, asked: Request, wish: ExecuteRequest, stream: Stream | None, left: ClientDisconnect
    ) -> dict[str, Any]:
        pulse = _Pulse(stream, asked.meta.get("progressToken"))
        call = partial(self._through_the_gate, caller, wish, left)
        outcome = await pulse.during(call(), "The tool runs.")
        if not isinstance(outcome, Denied) or outcome.approval_id is None:
            return result_of(outcome, wish.session_id)
        if not can_be_shown(caller.abilities, self.approvals_page):
            return result_of(outcome, wish.session_id)
        if not caller.in_session and "inputResponses" not in asked.params:
            return self._input_required(caller, wish, outcome)
        decided = await self._decided(caller, asked, wish, outcome, stream, pulse, left)
        if decided and await _still_admitted(caller):
            outcome = await pulse.during(call(), "The tool runs.")
        return result_of(outcome, wish.session_id)

    async def _decided(
        self,
        caller: Caller,
        asked: Request,
        wish: ExecuteRequest,
        denied: Denied,
        stream: Stream | None,
        pulse: _Pulse,
        left: ClientDisconnect,
    ) -> bool:
        """Whether an approver has decided while the client, once told of it, waited."""
        assert denied.approval_id is not None
        with (
            self.clients.waiting(caller.principal.key_id) as may,
            anyio.CancelScope() as scope,
            left.heard_by(scope.cancel),
        ):
            if not may or not waits(await self._answer(caller, asked, wish, denied, stream, pulse)):
                return False
            waiting = decision_of(self.approvals, denied.approval_id, self.limits.approval_wait_s)
            done = await pulse.during(waiting, "A person is asked.")
            if stream is not None and caller.in_session and self._shown(caller, wish, denied)["mode"] == "url":
                told = {"elicitationId": denied.approval_id}
                await stream.say(notification_bytes("notifications/elicitation/complete", told))
            return done
        return False  # nobody waits any more

    async def _answer(
        self,
        caller: Caller,
        asked: Request,
        wish: ExecuteRequest,
        denied: Denied,
        stream: Stream | None,
        pulse: _Pulse,
    ) -> object:
        """What the client says once it is told: with the request itself in the era without sessions, else on the
        stream of the call; None if it says nothing in time, or cannot be told."""
        if not caller.in_session:
            responses = asked.params["inputResponses"]
            return responses.get(INPUT) if isinstance(responses, dict) else None
        if stream is None:
            return None
        with self.clients.question(caller.principal.key_id, wish.session_id) as (question_id, question):
            params = self._shown(caller, wish, denied)
            await stream.say(request_bytes(question_id, "elicitation/create", params))
            with anyio.move_on_after(self.limits.approval_wait_s):
                await pulse.during(question.answered.wait(), "The user is asked.")
        return question.answer

    def _input_required(self, caller: Caller, wish: ExecuteRequest, denied: Denied) -> dict[str, Any]:
        question = {"method": "elicitation/create", "params": self._shown(caller, wish, denied)}
        told = result_of(denied, wish.session_id)
        return {
            "resultType": "input_required",
            "inputRequests": {INPUT: question},
            # The client sends it back with the answers, to whichever gateway: the approval belongs to this session.
            "requestState": wish.session_id,
            "_meta": told["_meta"],
        }

    def _shown(self, caller: Caller, wish: ExecuteRequest, denied: Denied) -> dict[str, Any]:
        return elicitation(denied, wish.tool_name, caller.abilities, self.approvals_page, named=caller.in_session)

    async def _through_the_gate(self, caller: Caller, wish: ExecuteRequest, left: ClientDisconnect) -> Outcome:
        call = self.gate.look if caller.looks else self.gate.execute
        return await call(caller.principal, wish, left)


async def _still_admitted(caller: Caller) -> bool:
    """Whether the key lives yet; where it has ended while its call was held, the denial stands. One that has no room in
    its rate now goes on to the gate, which tells it so and when to come again: the approval waits for it."""
    try:
        await caller.admitted()
    except Refusal as refusal:
        return isinstance(refusal, Unread) and refusal.reason is Reason.RATE_LIMITED
    return True


class _Pulse:
    """Shows a client that its call goes on: as progress if it gave a token, else that the connection lives."""

    def __init__(self, stream: Stream | None, token: Any) -> None:
        self._stream = stream
        self._token = token if is_id(token) else None
        self._seconds = 0.0

    async def during(self, work: Awaitable[T], said: str) -> T:
        stream = self._stream
        if stream is None or (self._token is None and not stream.started):  # nobody hears a beat: no task for it
            return await work
        return await meanwhile(partial(self._beat, stream, said), work)

    async def _beat(self, stream: Stream, said: str) -> None:
        with suppress(OSError):  # the client has gone, which is told to the call in another way
            while True:
                await anyio.sleep(BREATH_S if self._token is None else PROGRESS_S)
                if self._token is None:
                    await stream.breathe()
                    continue
                self._seconds += PROGRESS_S
                told = {"progressToken": self._token, "progress": self._seconds, "message": said}
                await stream.say(notification_bytes("notifications/progress", told))


# A call that a person has to allow, towards a client that can show its user something.
#
# The client is told that an approval waits and where it is decided; it is never asked for the decision, because
# whatever comes back from a client may have been written by the model in it. "Accept" means no more than "I wait for
# it": then the call is held until an approver has decided with a key of their own, and goes through the gate again.


INPUT = "approval"
"""The name of the question in a result that asks for input."""


def elicitation(denied: Denied, tool: str, abilities: Abilities, page: str | None, *, named: bool) -> dict[str, Any]:
    """The params of `elicitation/create`. `page` is the address under which people decide approvals; `named`: this
    revision of MCP gives a page's question an id."""
    approval_id = denied.approval_id
    message = (
        f"{tool} runs only after a person has approved it: approval {approval_id}, rule {denied.deny.rule_id}. "
        "Nothing that you answer here decides it. An approver decides "
    )
    if page is not None and abilities.urls:
        found = {"mode": "url", "message": f"{message}on the page.", "url": f"{page}/{approval_id}"}
        return {**found, "elicitationId": approval_id} if named else found
    message += f"with: sentinel approvals show {approval_id}. Accept to wait for the decision."
    return {"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}}


def can_be_shown(abilities: Abilities, page: str | None) -> bool:
    """Whether a client can show its user anything of this."""
    return abilities.forms or (abilities.urls and page is not None)


def waits(answer: object) -> bool:
    """Whether a client's answer says that its user waits. Whatever else it says is not read."""
    return isinstance(answer, dict) and answer.get("action") == "accept"


async def decision_of(store: ApprovalStore, approval_id: str, longest_s: float) -> bool:
    """Whether the approval was decided, or has lapsed, within `longest_s`; and where the call runs at the yes, has."""
    with anyio.move_on_after(longest_s):
        while True:
            page = await store.page(ApprovalState.PENDING, 1)
            approval = await store.find(approval_id)
            if approval is None or approval.is_settled:
                return True
            await store.wait_for_change(page.mark, longest_s)
    return False
