"""Which session of the gateway a client's message belongs to: the one that it names, if it is the key's own and open,
or the one that stands for its key, which it also ends once nobody uses it.

The sessions are those of every other way in, with their labels and their floor; here is only the way to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.downstream.client_sessions import ClientSessions
from sentinel_rag.gateway.downstream.messages import Code, RpcFault
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.refusals import Unread
from sentinel_rag.gateway.session_routes import RETRY_SESSION_S, close_session
from sentinel_rag.gateway.store import PersistentSessions, Principal, Scope, Session, SessionStore, TooManySessions
from sentinel_rag.gateway.upstream import Upstream

SESSION_HEADER = "mcp-session-id"


class SessionChecks:
    """Belongs to one event loop."""

    def __init__(
        self,
        sessions: SessionStore,
        standing: PersistentSessions,
        clients: ClientSessions,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
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
