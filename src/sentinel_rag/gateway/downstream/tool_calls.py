"""`tools/list` and `tools/call` through the gate: progress, a person's approval where the policy asks for one, and the
outcome as an MCP result.

What a client is told meanwhile is never what the tool server says of itself: that would be words of others on a way
past every label. It is told that an approval waits and where it is decided; it is not asked for the decision, because
whatever comes back from a client may have been written by the model in it. The one exception is a client of which the
policy attests that its person answers (`client_confirms`), for a call that the asker confirms.

A result is `structuredContent` beside its JSON as text, for clients that read one of the two. Labels, the context of
the session and the record's id stand in `_meta`, where a model does not read them. A refusal is a result with
`isError`, so that a model learns the reason and goes on; its body is the one of `POST /v1/proxy-execute`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec

from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.servers import ClientDisconnect
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.approvals import (
    Approval,
    ApprovalState,
    ApprovalStore,
    ApprovalVerdict,
    DecidedBy,
    Decider,
    DecisionRefused,
)
from sentinel_rag.gateway.approvals.approval import ELICITED
from sentinel_rag.gateway.downstream.client_sessions import Abilities, ClientSessions, SameId
from sentinel_rag.gateway.downstream.messages import (
    Code,
    Request,
    RequestId,
    RpcFault,
    Stream,
    is_id,
    meanwhile,
    notification_bytes,
    request_bytes,
)
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.policy import Effect, Policies
from sentinel_rag.gateway.policy.model import Exposure, pointer_text
from sentinel_rag.gateway.request_body import ExecuteRequest, MalformedBody, as_declared, read_execute
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted, Outcome, RefusedRequest, Unread, body_of
from sentinel_rag.gateway.store import Principal

LABEL = "sentinel-rag/label"
"""The label of a result, or the level that a denial names: `{"sensitivity": ..., "integrity": ...}`."""

CONTEXT = "sentinel-rag/context"
"""The label of the session once the result is told."""

EXPOSURE = "sentinel-rag/exposure"
"""What the policy says of parts of the result, where it quotes some: `[{"path": ..., "mode": ...}]`, as in the policy
file. The quoted texts themselves come plain, so that a client reads each result in its tool's own form."""

AUDIT_ID = "sentinel-rag/audit-id"
SESSION = "sentinel-rag/session"
"""From the client: the session of its own in which a call runs. In a result: the session in which it ran."""

HEADER_ANNOTATION = "x-mcp-header"

_SHOWN = {"image": "image/", "audio": "audio/"}
_HELD = ("uri", "mimeType", "text", "blob")
_BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def listed(offered: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`tools` of `tools/list`, of the catalogue's wire form. Hints follow the policy's `effect`, whatever the server
    says of itself. There is no `outputSchema`: what the policy hides of a result would not fit the server's."""
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "inputSchema": _without_headers(tool["parameters"]),
            "annotations": _HINTS[tool["effect"]],
            "_meta": {"sentinel-rag/effect": tool["effect"], "sentinel-rag/aliases": tool["aliases"]},
        }
        for tool in offered
    ]


_HINTS: Mapping[str, Mapping[str, bool]] = {
    Effect.READ.value: {"readOnlyHint": True, "openWorldHint": False},
    Effect.WRITE.value: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False},
    Effect.EXTERNAL.value: {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
}


def _without_headers(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what would make clients repeat arguments in headers: the arguments stand in the body alone."""
    properties = schema["properties"]
    shown = {
        name: {key: _stripped(value) for key, value in each.items() if key != HEADER_ANNOTATION}
        for name, each in properties.items()
    }
    return {**schema, "properties": shown}


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if key != HEADER_ANNOTATION}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


def result_of(outcome: Outcome, session_id: str) -> dict[str, Any]:
    """The result of `tools/call`."""
    meta: dict[str, Any] = {AUDIT_ID: outcome.audit_id, SESSION: session_id}
    if isinstance(outcome, Completed):
        meta |= {LABEL: outcome.label.to_dict(), CONTEXT: outcome.context.to_dict()}
        if any(entry.mode is Exposure.QUOTE for entry in outcome.exposures):
            meta[EXPOSURE] = [{"path": pointer_text(each.path), "mode": each.mode.value} for each in outcome.exposures]
        return {**_content(outcome.encoded), "isError": False, "_meta": meta}
    body = body_of(outcome)
    if isinstance(outcome, DeniedCall):
        meta[LABEL] = _level(outcome)
    return {
        "content": [{"type": "text", "text": sentence_of(outcome)}],
        "structuredContent": body,
        "isError": True,
        "_meta": meta,
    }


def _level(denied: DeniedCall) -> dict[str, str]:
    label: Label = denied.deny.label
    return label.to_dict()


def sentence_of(outcome: Outcome) -> str:
    """What a model reads of a call without a result: the sentence, the reason code and what to do."""
    assert not isinstance(outcome, Completed)
    if isinstance(outcome, DeniedCall):
        said = f"{outcome.deny.sentence()} (reason: {outcome.deny.reason.value})."
        if outcome.approval_id is not None:
            said += (
                f" A person has to decide approval {outcome.approval_id} first, with a key of their own: "
                "tell the user, and call again with the same arguments once it is approved."
            )
        return f"{said} {outcome.note}".rstrip()
    next_step = "" if outcome.error is None else outcome.error.next_step
    return f"{outcome.detail} (reason: {outcome.reason.value}) {next_step}".rstrip()


def _content(encoded: bytes) -> dict[str, Any]:
    """`content`, and `structuredContent` for an object; any other value is no structured content in every revision."""
    if encoded[:1] == b"{":
        text = {"type": "text", "text": encoded.decode()}
        return {"content": [text, *_beside(encoded)], "structuredContent": msgspec.Raw(encoded)}
    value = msgspec.json.decode(encoded)
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, dict) and each.get("type") in _BLOCKS for each in value)
    ):
        return {"content": [_block(each) for each in value]}
    return {"content": [{"type": "text", "text": encoded.decode()}]}


def _beside(encoded: bytes) -> list[dict[str, Any]]:
    """The pictures and sounds that a server sent beside its structured content."""
    if b'"_mcp_content"' not in encoded:
        return []
    blocks = msgspec.json.decode(encoded).get("_mcp_content")
    shown = [_block(each) for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
    return [block for block in shown if block["type"] in _SHOWN]


def _holds(resource: Mapping[str, Any]) -> bool:
    """Whether a resource brings its content along, in exactly one form."""
    if not isinstance(resource.get("mimeType", ""), str):
        return False
    return [isinstance(resource[key], str) for key in ("text", "blob") if key in resource] == [True]


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as a server sent it, if it holds what it shows: a text, a picture, a sound, a resource with its content.
    Anything else comes as text, so that no client fetches what it names."""
    kind = block.get("type")
    data, mime = block.get("data"), block.get("mimeType")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    held = block.get("resource")
    if kind == "resource" and isinstance(held, dict) and isinstance(held.get("uri"), str) and _holds(held):
        return {"type": "resource", "resource": {key: held[key] for key in _HELD if key in held}}
    if kind in _SHOWN and isinstance(data, str) and isinstance(mime, str) and mime.startswith(_SHOWN[kind]):
        return {"type": kind, "data": data, "mimeType": mime}
    return {"type": "text", "text": msgspec.json.encode(block).decode()}


INPUT = "approval"
"""The name of the question in a result that asks for input."""


def elicitation(
    denied: DeniedCall, tool: str, abilities: Abilities, page: str | None, *, named: bool
) -> dict[str, Any]:
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


CONFIRM = "confirm"
"""The name of the field in which a client's person says yes, and the beginning of the name of the question."""

LONGEST_CALL = 4_000
"""Characters of a call that a form shows whole; a longer one is decided where all of it can be read."""


def confirmation(approval: Approval) -> dict[str, Any] | None:
    """The params of `elicitation/create` by which a client's person confirms exactly this call; None where it is too
    long to be shown so."""
    question = approval.question
    call = f"The call: {approval.binding.tool} {_visible(canonical_json(question.arguments).decode())}"
    changes = () if question.subject is None else question.subject.changes
    told = [_visible(f"{each.field}: {_value(each.before)} -> {_value(each.after)}") for each in changes]
    message = "\n".join((question.title, *told, call, "It runs at your yes, once."))
    if len(message) > LONGEST_CALL:
        return None
    wanted = {"type": "boolean", "title": "Do exactly this"}
    schema = {"type": "object", "properties": {CONFIRM: wanted}, "required": [CONFIRM]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def verdict_of(answer: object) -> ApprovalVerdict | None:
    """What a client's person said to `confirmation`; None if they said neither, so that it goes on waiting."""
    action = answer.get("action") if isinstance(answer, dict) else None
    content = answer.get("content") if isinstance(answer, dict) else None
    if action == "decline":
        return ApprovalVerdict.DENY
    said = content.get(CONFIRM) if action == "accept" and isinstance(content, dict) else None
    return (ApprovalVerdict.APPROVE if said else ApprovalVerdict.DENY) if isinstance(said, bool) else None


def _value(value: JsonValue) -> str:
    return "(none)" if value is None else canonical_json(value).decode()


def _visible(text: str) -> str:
    """Signs that could steer how a text is drawn, by their numbers."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


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
    disconnect: ClientDisconnect | None


@dataclass(frozen=True, slots=True)
class _Question:
    """What a client is asked, under which name it answers where there are no sessions, and about which approval."""

    name: str
    params: Mapping[str, Any]
    approval_id: str
    confirms: bool = False
    """Whether the answer decides: it is that of the client's person."""


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """`approvals_page` is the address under which people decide approvals, if there is one. `run_approved` runs what
    was approved, where it runs at the yes."""

    gate: Gate
    approvals: ApprovalStore
    clients: ClientSessions
    limits: GatewayLimits
    policies: Policies
    run_approved: Callable[[Approval], Awaitable[Approval]]
    approvals_page: str | None = None

    def read(self, session_id: str, asked: Request) -> ExecuteRequest:
        """The request of a `tools/call`. Raises RpcFault."""
        arguments = asked.params.get("arguments")
        try:
            request = read_execute(session_id, asked.params.get("name"), {} if arguments is None else arguments)
        except MalformedBody as fault:
            raise RpcFault(Code.INVALID_PARAMS, f"{fault}.", request_id=asked.request_id) from None
        tool = self.policies.current.tool(request.tool_name)
        args = request.args if tool is None else as_declared(tool, request.args)
        # Clients of other makers read results by the tools' own forms, and models pay for each mark.
        return replace(request, args=args, marks_quotes=False)

    async def refuse(self, principal: Principal, fault: str) -> NotCompleted:
        """Record a message that could not be read."""
        return await self.gate.refuse_body(principal, fault.rstrip("."))

    async def run(
        self, caller: Caller, asked: Request, request: ExecuteRequest, stream: Stream | None
    ) -> dict[str, Any]:
        """The result of the call. Raises RpcFault for an id that another call of the session has, and whatever the
        gate raises."""
        key_id = caller.principal.key_id
        # Without sessions a client ends a call by its connection, and ids of two clients may be the same.
        request_id: RequestId = asked.request_id if caller.in_session else f"{id(asked)}"
        try:
            with self.clients.call(key_id, request.session_id, request_id, caller.disconnect) as left:
                return await self._told(caller, asked, request, stream, left)
        except SameId:
            fault = "Another call of this session has this id, and runs still."
            raise RpcFault(Code.INVALID_REQUEST, fault, request_id=asked.request_id) from None

    async def _told(
        self, caller: Caller, asked: Request, request: ExecuteRequest, stream: Stream | None, left: ClientDisconnect
    ) -> dict[str, Any]:
        pulse = _Pulse(stream, asked.meta.get("progressToken"))
        call = partial(self._through_the_gate, caller, request, left)
        outcome = await pulse.during(call(), "The tool runs.")
        if not isinstance(outcome, DeniedCall) or outcome.approval_id is None:
            return result_of(outcome, request.session_id)
        question = await self._question(caller, request, outcome)
        if question is None:
            return result_of(outcome, request.session_id)
        if not caller.in_session and "inputResponses" not in asked.params:
            return self._input_required(question, request, outcome)
        decided = await self._decided(caller, asked, request, question, stream, pulse, left)
        if decided and await _still_admitted(caller):
            outcome = await pulse.during(call(), "The tool runs.")
        return result_of(outcome, request.session_id)

    async def _question(self, caller: Caller, request: ExecuteRequest, denied: DeniedCall) -> _Question | None:
        """What the client is asked about a call that waits; None if it can show nothing of it."""
        assert denied.approval_id is not None
        principal, policy = caller.principal, self.policies.current
        if caller.abilities.forms and policy.client_confirms(principal.key_id, principal.name):
            approval = await self.approvals.find(denied.approval_id)
            if approval is not None and approval.question.decided_by is DecidedBy.ASKER and approval.person is None:
                params = confirmation(approval)
                if params is not None:
                    # By its name: what is answered later was asked about this approval and no other.
                    return _Question(f"{CONFIRM}-{denied.approval_id}", params, denied.approval_id, confirms=True)
        if not can_be_shown(caller.abilities, self.approvals_page):
            return None
        params = elicitation(denied, request.tool_name, caller.abilities, self.approvals_page, named=caller.in_session)
        return _Question(INPUT, params, denied.approval_id)

    async def _decided(
        self,
        caller: Caller,
        asked: Request,
        request: ExecuteRequest,
        question: _Question,
        stream: Stream | None,
        pulse: _Pulse,
        left: ClientDisconnect,
    ) -> bool:
        """Whether the client's person has decided, or an approver has while the client, once told of it, waited."""
        with (
            self.clients.waiting(caller.principal.key_id) as may,
            anyio.CancelScope() as scope,
            left.heard_by(scope.cancel),
        ):
            answer = await self._answer(caller, asked, request, question, stream, pulse) if may else None
            if question.confirms:
                return await self._confirmed(caller, question, answer)
            if not waits(answer):
                return False
            waiting = decision_of(self.approvals, question.approval_id, self.limits.approval_wait_s)
            done = await pulse.during(waiting, "A person is asked.")
            if stream is not None and caller.in_session and question.params["mode"] == "url":
                told = {"elicitationId": question.approval_id}
                await stream.say(notification_bytes("notifications/elicitation/complete", told))
            return done
        return False  # nobody waits any more

    async def _confirmed(self, caller: Caller, question: _Question, answer: object) -> bool:
        """Take the word of the client's person; whether there is one, so that the call goes through the gate again."""
        verdict = verdict_of(answer)
        if verdict is None:
            return False
        decider = Decider(caller.principal.key_id, caller.principal.name, via=ELICITED)
        try:
            approval = await self.approvals.decide(question.approval_id, verdict, decider)
        except DecisionRefused:  # it has lapsed, or was decided elsewhere
            return True
        await self.run_approved(approval)
        return True

    async def _answer(
        self,
        caller: Caller,
        asked: Request,
        request: ExecuteRequest,
        question: _Question,
        stream: Stream | None,
        pulse: _Pulse,
    ) -> object:
        """What the client says once it is told: with the request itself in the era without sessions, else on the
        stream of the call; None if it says nothing in time, or cannot be told."""
        if not caller.in_session:
            responses = asked.params["inputResponses"]
            return responses.get(question.name) if isinstance(responses, dict) else None
        if stream is None:
            return None
        with self.clients.question(caller.principal.key_id, request.session_id) as (question_id, put):
            await stream.say(request_bytes(question_id, "elicitation/create", dict(question.params)))
            with anyio.move_on_after(self.limits.approval_wait_s):
                await pulse.during(put.answered.wait(), "The user is asked.")
        return put.answer

    def _input_required(self, question: _Question, request: ExecuteRequest, denied: DeniedCall) -> dict[str, Any]:
        told = result_of(denied, request.session_id)
        return {
            "resultType": "input_required",
            "inputRequests": {question.name: {"method": "elicitation/create", "params": dict(question.params)}},
            # The client sends it back with the answers, to whichever gateway: the approval belongs to this session.
            "requestState": request.session_id,
            "_meta": told["_meta"],
        }

    async def _through_the_gate(self, caller: Caller, request: ExecuteRequest, left: ClientDisconnect) -> Outcome:
        call = self.gate.look if caller.looks else self.gate.execute
        return await call(caller.principal, request, left)


async def _still_admitted(caller: Caller) -> bool:
    """Whether the key lives yet; where it has ended while its call was held, the denial stands. One that has no room in
    its rate now goes on to the gate, which tells it so and when to come again: the approval waits for it."""
    try:
        await caller.admitted()
    except RefusedRequest as refusal:
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
