"""Sessions of MCP clients: which one a message belongs to, what each client can do, and which calls run in it.

The session itself is the gateway's own, with its labels and its floor, in the store. What is kept here is lost with the
process, and only convenience depends on it: a client whose abilities are forgotten is asked nothing.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from starlette.requests import Request

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.servers import ClientDisconnect
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.downstream.messages import ClientAnswer, Code, RequestId, RpcFault
from sentinel_rag.gateway.responses import Unread
from sentinel_rag.gateway.session_routes import RETRY_SESSION_S, close_session
from sentinel_rag.gateway.store import PersistentSessions, Principal, Scope, Session, SessionStore, TooManySessions
from sentinel_rag.gateway.upstream import Upstream

MAX_REMEMBERED = 2_000
MAX_WAITS_PER_KEY = 10
"""Calls of one key that wait for a person at once; as many as may wait for approvals at all."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can show a person: a page to open, a message to close."""

    urls: bool = False
    forms: bool = False

    @classmethod
    def of(cls, capabilities: object) -> Abilities:
        """Of `capabilities` as a client states them. Whoever can elicit and names no mode can show a form."""
        found = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        if not isinstance(found, dict):
            return cls()
        return cls(urls="url" in found, forms="form" in found or "url" not in found)

    @property
    def any(self) -> bool:
        return self.urls or self.forms


class SameId(Exception):
    """A call with this id runs in the session already."""


@dataclass(slots=True)
class _Question:
    """One question to a client. `answer` is what it said first."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: JsonObject | None = None


class ClientSessions:
    """Belongs to one event loop. Every key of a table begins with the id of the API key, so that no client reaches
    into another's."""

    def __init__(self) -> None:
        self._abilities: OrderedDict[str, Abilities] = OrderedDict()
        self._calls: dict[tuple[str, str, RequestId], ClientDisconnect] = {}
        self._questions: dict[tuple[str, str, RequestId], _Question] = {}
        self._waits: dict[str, int] = {}

    def remember(self, session_id: str, abilities: Abilities) -> None:
        """Note what the client of a session can do; of too many the oldest are forgotten."""
        self._abilities[session_id] = abilities
        if len(self._abilities) > MAX_REMEMBERED:
            self._abilities.popitem(last=False)

    def abilities(self, session_id: str) -> Abilities:
        return self._abilities.get(session_id, Abilities())

    def forget(self, session_id: str) -> None:
        """The session has ended."""
        self._abilities.pop(session_id, None)

    @contextmanager
    def call(
        self, key_id: str, session_id: str, request_id: RequestId, caller: ClientDisconnect | None
    ) -> Iterator[ClientDisconnect]:
        """What tells that nobody waits for a call any more: its client said so, or its connection ended. Raises
        SameId while another call of the session has this id."""
        place = (key_id, session_id, request_id)
        if place in self._calls:
            raise SameId
        disconnect = self._calls[place] = ClientDisconnect()
        try:
            if caller is None:
                yield disconnect
            else:
                with caller.heard_by(disconnect.tell):
                    yield disconnect
        finally:
            del self._calls[place]

    def cancel(self, key_id: str, session_id: str, request_id: RequestId) -> None:
        """The client does not wait for that call any more; nothing happens for one that is not there."""
        disconnect = self._calls.get((key_id, session_id, request_id))
        if disconnect is not None:
            disconnect.tell()

    @contextmanager
    def question(self, key_id: str, session_id: str) -> Iterator[tuple[str, _Question]]:
        """A question to the client under a new id, for as long as somebody waits for the answer."""
        question_id = f"sentinel-{secrets.token_hex(8)}"
        place = (key_id, session_id, question_id)
        question = self._questions[place] = _Question()
        try:
            yield question_id, question
        finally:
            del self._questions[place]

    def answer(self, key_id: str, session_id: str, said: ClientAnswer) -> None:
        """What the client said; nothing happens for a question that nobody asked it, or a second answer."""
        question = self._questions.get((key_id, session_id, said.request_id))
        if question is not None and not question.answered.is_set():
            question.answer = said.result
            question.answered.set()

    @contextmanager
    def waiting(self, key_id: str) -> Iterator[bool]:
        """Whether one more call of the key may wait for a person; it counts as one for as long as the block runs."""
        if self._waits.get(key_id, 0) >= MAX_WAITS_PER_KEY:
            yield False
            return
        self._waits[key_id] = self._waits.get(key_id, 0) + 1
        try:
            yield True
        finally:
            self._waits[key_id] -= 1
            if not self._waits[key_id]:
                del self._waits[key_id]


SESSION_HEADER = "mcp-session-id"


class SessionChecks:
    """Belongs to one event loop."""

    def __init__(
        self,
        sessions: SessionStore,
        standing: PersistentSessions,
        clients: ClientSessions,
        upstreams: Mapping[str, Upstream],
        limits: GatewayLimits,
    ) -> None:
        self._sessions = sessions
        self._standing = standing
        self._clients = clients
        self._upstreams = upstreams
        self._limits = limits

    async def open(self, principal: Principal) -> Session:
        """A new session of the key. Raises Unread if it has had too many."""
        try:
            most = self._limits.sessions_per_key
            return await self._sessions.open(principal.key_id, user_key_id=_person(principal), most=most)
        except TooManySessions as many:
            raise _too_many(many) from None

    async def standing(self, principal: Principal, began_in: object = None) -> Session:
        """The session of requests that name none: one for each key, at every gateway of the state, so that what was
        asked at one is found at another. Its name is nobody's to guess, so no other key can take it first. Raises
        Unread as `open` does.

        A request that is sent once more, with the answers that it wanted, goes on in the session that it `began_in`:
        there its approval waits. What is no open session of the key's counts for nothing.
        """
        begun = await self._sessions.find(began_in, principal.key_id) if isinstance(began_in, str) else None
        if begun is not None and not begun.closed and _may_enter(principal, begun):
            return begun
        try:
            most = self._limits.sessions_per_key
            found, before = await self._standing.enter(principal.key_id, user_key_id=_person(principal), most=most)
        except TooManySessions as many:
            raise _too_many(many) from None
        if before is not None:
            await self._end(before.session_id, principal.key_id)
        return found

    async def end_unused(self) -> None:
        """End the sessions that stood for a key and that nobody used for a day."""
        for key_id, session_id in await self._standing.unused():
            await self._end(session_id, key_id)

    async def named(self, request: Request, principal: Principal) -> Session:
        """The session of the request's header. Raises RpcFault unless there is one header, and Unread as `own` does."""
        named = request.headers.getlist(SESSION_HEADER)
        if len(named) != 1:
            raise RpcFault(Code.INVALID_REQUEST, "One Mcp-Session-Id is needed; initialize gives it.")
        return await self.own(named[0], principal)

    async def own(self, session_id: object, principal: Principal) -> Session:
        """An open session of the key. Raises Unread for any other, whatever the reason is that it is not."""
        found = await self._sessions.find(session_id, principal.key_id) if isinstance(session_id, str) else None
        if found is None or found.closed or not _may_enter(principal, found):
            raise Unread(Reason.NOT_FOUND, "There is no such session; initialize opens one.")
        return found

    async def close(self, session: Session, principal: Principal) -> None:
        """End a session that `named` found, and what it has at tool servers."""
        await self._end(session.session_id, principal.key_id)

    async def _end(self, session_id: str, key_id: str) -> None:
        await close_session(self._sessions, self._upstreams, session_id, key_id)
        self._clients.forget(session_id)


def executes(principal: Principal) -> bool:
    """Whether the key calls as an agent; any other that is let in looks as its person."""
    return Scope.EXECUTE in principal.scopes


def _person(principal: Principal) -> str | None:
    """As whose a session of the principal's own is opened."""
    return None if executes(principal) else principal.key_id


def _too_many(many: TooManySessions) -> Unread:
    return Unread(Reason.RATE_LIMITED, f"{many} {many.next_step}", retry_after_s=RETRY_SESSION_S)


def _may_enter(principal: Principal, session: Session) -> bool:
    """As the gate asks: whoever looks, looks in a session of their own as a person, and no agent's key enters it."""
    looks = not executes(principal)
    return session.key_id == principal.key_id and (session.user_key_id == principal.key_id) is looks
