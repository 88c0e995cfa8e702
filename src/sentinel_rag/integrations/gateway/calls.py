"""Calls to the gateway: the tools that it offers, arguments as JSON, the conversation that a call belongs to."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError
from sentinel_rag.contracts.handles import as_handles
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

READ = "read"
_log = logging.getLogger(__name__)
_MODEL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class GatewayTool:
    """One tool: `parameters` is the pinned JSON Schema of type object, `effect` is read, write or external."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)
    effect: str = "external"


def chosen(offered: Iterable[GatewayTool], names: Collection[str] | None) -> list[GatewayTool]:
    """Those of `names`, all for None, without the ones whose name no model service takes, which the log names.

    Raises ConfigurationError if a name is not offered.
    """
    found = {tool.name: tool for tool in offered if names is None or tool.name in names}
    missing = sorted(set(names or ()) - found.keys())
    if missing:
        raise ConfigurationError(
            f"The gateway does not offer {', '.join(missing)}.",
            next_step="Look at `GET /v1/tools`; `sentinel doctor` says why a tool is withheld.",
        )
    unfit = [name for name in found if not _MODEL_NAME.fullmatch(name)]
    for name in unfit:
        _log.warning("The gateway's tool %r is left out: model services take no such name.", name)
    return [tool for name, tool in found.items() if name not in unfit]


def read_offers(reply: HttpReply | NoReply) -> tuple[GatewayTool, ...]:
    """The tools of an answer of `GET /v1/tools`, in the gateway's order.

    Raises UnavailableError if nothing or something else answered, ConfigurationError if the key is not taken.
    """
    if isinstance(reply, NoReply):
        raise UnavailableError(reply.message, next_step=reply.next_step)
    body = body_of(reply)
    if reply.status == 200 and body is not None and isinstance(body.get("tools"), list):
        return tuple(tool for entry in body["tools"] if (tool := _tool(entry)) is not None)
    raise _refused(reply, body)


def _refused(reply: HttpReply, body: Mapping[str, Any] | None) -> SentinelError:
    if reply.status in (401, 403) and body is not None and "detail" in body:
        return ConfigurationError(
            str(body["detail"]),
            next_step="Set SENTINEL_API_KEY to a key with the scope execute (`sentinel keys create`).",
        )
    if body is not None and "detail" in body:
        refusal = refusal_of(reply, body)
        return UnavailableError(refusal.message, next_step=refusal.next_step)
    return UnavailableError(
        f"What answered with status {reply.status} is not the gateway.",
        next_step="Check that SENTINEL_URL is the gateway and not a proxy or another service.",
    )


def _tool(entry: Any) -> GatewayTool | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return None
    parameters = entry.get("parameters")
    schema = dict(parameters) if isinstance(parameters, dict) else {}
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    schema["type"] = "object"
    return GatewayTool(
        entry["name"], str(entry.get("description") or ""), schema, str(entry.get("effect") or "external")
    )


# Models put `null` where they mean to leave an argument out; programs pass dates, enums and models of pydantic. Each
# has one JSON form here. The gateway checks types and values; this does not.
class BadArguments(ValueError):
    """The arguments have no JSON form. The message says which value, by its type, and never repeats it."""


def wire_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` as plain JSON values, with placeholders of hidden values turned back into handles.

    A null is left out where `schema` (a JSON Schema of type object) does not require the parameter: the gateway takes
    none, and a model means nothing by it. Raises BadArguments.
    """
    required = schema.get("required", ())
    kept = {name: value for name, value in arguments.items() if value is not None or name in required}
    try:
        plain = json.loads(json.dumps(kept, default=_plain, allow_nan=False))
        json.dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadArguments("A text holds half of a surrogate pair.") from None
    except (TypeError, ValueError, RecursionError) as fault:
        if isinstance(fault, BadArguments):
            raise
        raise BadArguments("The arguments have no JSON form (a cycle, NaN, or a key that is no text).") from None
    found: dict[str, Any] = as_handles(plain)
    return found


def arguments_of_text(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """One text in place of arguments: a JSON object, or the value of the only parameter, or of the only required one.
    Raises BadArguments."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        return document
    properties = _object(schema.get("properties"))
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    names = required if len(required) == 1 else list(properties)
    if len(names) != 1:
        raise BadArguments("This tool takes named arguments; give them as an object.")
    return {names[0]: text}


def _plain(value: Any) -> Any:
    """What `json` cannot write by itself."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise BadArguments("A time without a time zone is not sent: give it one, such as timezone.utc.")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | PurePath | Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)  # pydantic, without importing it
    if callable(dump):
        return dump(mode="json")
    raise BadArguments(f"A value of type {type(value).__name__} has no JSON form.")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# A session's labels rise with what was read in it, so two conversations must not share one and one conversation must
# not change it. Safe for threads. The gateway does not trust this: a session that a key opens anew starts at what the
# key has seen of late.
MAX_KEPT = 10_000
"""Conversations whose session is kept; the one used longest ago is forgotten first."""


class GatewayConversations:
    """The kept sessions by conversation."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def session_of(self, conversation: str) -> str | None:
        """The kept session; None if the conversation has none yet."""
        with self._lock:
            if conversation in self._sessions:
                self._sessions.move_to_end(conversation)
            return self._sessions.get(conversation)

    def keep(self, conversation: str, session_id: str) -> str:
        """The session to use: this one, unless another call of the conversation has brought one meanwhile."""
        with self._lock:
            kept = self._sessions.setdefault(conversation, session_id)
            while len(self._sessions) > MAX_KEPT:
                self._sessions.popitem(last=False)
            return kept

    def forget(self, conversation: str, session_id: str) -> None:
        """Keep it no longer, if it is still the one."""
        with self._lock:
            if self._sessions.get(conversation) == session_id:
                del self._sessions[conversation]

    def take_all(self) -> tuple[str, ...]:
        """Every kept session; none is kept afterwards."""
        with self._lock:
            sessions = tuple(self._sessions.values())
            self._sessions.clear()
            return sessions


# A generator yields `Send` and `Pause`; `connection` carries them out, blocking or not, so that both ways behave alike.
# A call that only reads is sent again where the gateway asks to wait or the line broke. One that may change something
# is sent once. Which it is may change while an agent runs, so a call that would be sent again says so: the gateway runs
# it only if its tool reads today. Waiting for an approval sends a call again too: until a person has decided, the
# gateway runs nothing, and the first identical call afterwards is the one that was approved.
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
    """A request. `arguments` are plain JSON values. With `session_id` that session is used; else the one kept for the
    `conversation`, a name of the caller's own. `wants_context` asks for the session's label afterwards."""

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
    call: GatewayCall, conversations: GatewayConversations, patience: WaitLimits, changing: set[str]
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


def _opening(conversation: str, conversations: GatewayConversations) -> Exchange[str | NotRun]:
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
