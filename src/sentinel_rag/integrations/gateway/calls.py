"""One call through the gateway as a protocol without I/O: what is sent, when to wait, when to send again.

A generator yields `Send` and `Pause`; `connection` carries them out, blocking or not, so that both ways behave alike.

A call that only reads is sent again where the gateway asks to wait or the line broke. One that may change something is
sent once. Which it is may change while an agent runs, so a call that would be sent again says so: the gateway runs it
only if its tool reads today. Waiting for an approval sends a call again too: until a person has decided, the gateway
runs nothing, and the first identical call afterwards is the one that was approved.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

from sentinel_rag.integrations.gateway.answers import (
    Answer,
    Blocked,
    HttpReply,
    NoReply,
    NotRun,
    Ran,
    body_of,
    read_answer,
    refusal_of,
)
from sentinel_rag.integrations.gateway.conversations import Conversations
from sentinel_rag.integrations.gateway.offers import READ

FIRST_LOOK_S = 1.0
LONGEST_LOOK_S = 10.0
LOOK_GROWTH = 1.5
IF_EFFECT = "if_effect"
"""How often a pending approval is looked after: at first every second, later every ten."""


@dataclass(frozen=True, slots=True)
class Send:
    """An HTTP request to the gateway. `body` is JSON."""

    method: str
    path: str
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before going on."""

    seconds: float


T = TypeVar("T")
Exchange = Generator[Send | Pause, HttpReply | NoReply | None, T]


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How a call that only reads is repeated: at most `repeats` times, and not if the gateway asks for a longer wait
    than `longest_wait_s` seconds."""

    repeats: int = 2
    longest_wait_s: float = 15.0


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A wish. `arguments` are plain JSON values. With `session_id` that session is used; else the session that is kept
    for the `conversation`, a name of the caller's own. `wants_context` asks for the session's label afterwards."""

    tool_name: str
    arguments: Mapping[str, Any] = field(hash=False)
    effect: str = "external"
    conversation: str = ""
    session_id: str | None = None
    approval_wait_s: float = 0.0
    wants_context: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """How a call ended, and in which session (empty if none could be opened). `context` is the session's label after
    it: `{"sensitivity": ..., "integrity": ...}`."""

    answer: Answer
    session_id: str = ""
    context: Mapping[str, str] | None = None


def calling(
    call: GatewayCall, conversations: Conversations, patience: WaitLimits, changing: set[str]
) -> Exchange[Called]:
    """Open the session if there is none, send the call, and wait where that was asked for. `changing` are the tools of
    which the gateway has said since they were listed that they do not only read; one more is added."""
    session_id = call.session_id or conversations.session_of(call.conversation)
    if session_id is None:
        opened = yield from _opening(call.conversation, conversations)
        if isinstance(opened, NotRun):
            return Called(opened)
        session_id = opened
    answer = yield from _asking(call, session_id, patience, changing)
    if isinstance(answer, NotRun):
        if answer.status in (404, 409) and not answer.of_tool:
            # It ran nothing, and the session will not come back: the next call opens one, at its key's floor.
            conversations.forget(call.conversation, session_id)
        return Called(answer, session_id)
    context = (yield from _context(session_id)) if call.wants_context and isinstance(answer, Ran) else None
    return Called(answer, session_id, context)


def listing() -> Exchange[HttpReply | NoReply]:
    """Ask for the tools that the key may call."""
    return (yield from _ask(Send("GET", "/v1/tools")))


def ending(session_id: str) -> Exchange[None]:
    """Close a session. Whether it worked says nothing that anybody could act on."""
    yield from _ask(Send("DELETE", f"/v1/sessions/{quote(session_id, safe='')}"))


def _ask(send: Send) -> Exchange[HttpReply | NoReply]:
    reply = yield send
    assert reply is not None
    return reply


def _opening(conversation: str, conversations: Conversations) -> Exchange[str | NotRun]:
    reply = yield from _ask(Send("POST", "/v1/sessions"))
    if isinstance(reply, NoReply):
        return _unanswered(reply)
    body = body_of(reply)
    if reply.status != 201 or body is None or not isinstance(body.get("session_id"), str):
        # 403 here is a key without the scope, not a policy's word about a call.
        return refusal_of(reply, body) if body is not None and "detail" in body else _no_session(reply)
    opened: str = body["session_id"]
    kept = conversations.keep(conversation, opened)
    if kept != opened:  # another call of the conversation was first
        yield from ending(opened)
    return kept


def _asking(call: GatewayCall, session_id: str, patience: WaitLimits, changing: set[str]) -> Exchange[Answer]:
    answer = yield from _sending(call, session_id, patience, changing)
    left_s, gap_s = call.approval_wait_s, FIRST_LOOK_S
    while left_s > 0 and isinstance(answer, Blocked) and answer.waits_for_a_person:
        yield Pause(min(gap_s, left_s))
        left_s, gap_s = left_s - gap_s, min(gap_s * LOOK_GROWTH, LONGEST_LOOK_S)
        again = yield from _sending(call, session_id, patience, changing)
        if isinstance(again, NotRun) and _only_not_now(again):
            gap_s = max(gap_s, again.later_s or 0.0)
            continue  # the approval waits all the same
        if isinstance(again, Blocked) and again.approval_id != answer.approval_id:
            return again  # decided, lapsed, or what the session knows has changed: it has to be told anew
        answer = again
    return answer


def _sending(call: GatewayCall, session_id: str, patience: WaitLimits, changing: set[str]) -> Exchange[Answer]:
    answer: Answer | None = None
    for attempt in range(patience.repeats + 1):
        if call.effect != READ or call.tool_name in changing:
            break
        reply = yield from _ask(_wish(call, session_id, READ))
        before, answer = answer, _answer_of(reply)
        if not isinstance(answer, NotRun):
            return answer
        if answer.field == IF_EFFECT:
            changing.add(call.tool_name)
            answer = before
            break
        wait_s = _wait_s(reply, answer, attempt)
        if wait_s is None or wait_s > patience.longest_wait_s or attempt == patience.repeats:
            return answer
        yield Pause(wait_s)
    if isinstance(answer, NotRun) and answer.may_have_run:
        return _warned(answer)  # it was sent as one that reads, and may have been more by then
    answer = _answer_of((yield from _ask(_wish(call, session_id))))
    return _warned(answer) if isinstance(answer, NotRun) else answer


def _wish(call: GatewayCall, session_id: str, if_effect: str | None = None) -> Send:
    body = {"session_id": session_id, "tool_name": call.tool_name, "args": call.arguments}
    if if_effect is not None:
        body[IF_EFFECT] = if_effect
    return Send("POST", "/v1/proxy-execute", json.dumps(body, ensure_ascii=False).encode())


def _answer_of(reply: HttpReply | NoReply) -> Answer:
    return _unanswered(reply) if isinstance(reply, NoReply) else read_answer(reply)


def _only_not_now(answer: NotRun) -> bool:
    """Whether the gateway has no room for a call or is away, so that nothing ran and the next look may find more."""
    return answer.status in (0, 429, 503) and not answer.may_have_run


def _wait_s(reply: HttpReply | NoReply, answer: NotRun, attempt: int) -> float | None:
    """Seconds until a call that reads is worth sending again; None if it is not."""
    if isinstance(reply, NoReply):
        return None if reply.timed_out else 0.25 * 2**attempt
    if answer.of_tool and answer.may_have_run:  # the gateway knows the tool's effect of today; ours is of the listing
        return None
    return (answer.later_s or 1.0) if answer.status in (429, 503) else None


def _unanswered(reply: NoReply) -> NotRun:
    return NotRun(reply.message, reply.next_step, may_have_run=reply.sent)


def _warned(answer: NotRun) -> NotRun:
    """A call that may have changed something must not look like one that is safe to repeat. A tool that says how it
    failed knows better."""
    if not answer.may_have_run or answer.of_tool:
        return answer
    return replace(answer, next_step="It may have taken effect: look before you call again.")


def _no_session(reply: HttpReply) -> NotRun:
    return NotRun(
        f"No session could be opened: the answer with status {reply.status} is not the gateway's.",
        "Check that SENTINEL_URL is the gateway and not a proxy or another service.",
        status=reply.status,
    )


def _context(session_id: str) -> Exchange[Mapping[str, str] | None]:
    reply = yield from _ask(Send("GET", f"/v1/sessions/{quote(session_id, safe='')}"))
    body = body_of(reply) if isinstance(reply, HttpReply) and reply.status == 200 else None
    context = body.get("context") if body is not None else None
    return context if isinstance(context, dict) else None
