"""The record of requests that end before the gate: without a key, without its scope, or before their body was read.

Whoever can reach the port can send as many of them as they like, so each kind has its budget of single records; what is
over it is counted in the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import HTTPConnection
from starlette.responses import Response

from sentinel_rag.audit import AuthenticationFailed, Journal, RequestRefused
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.outcomes import HTTP_STATUS
from sentinel_rag.gateway.responses import problem
from sentinel_rag.gateway.store import Refused, Scope

KEY_ID = "sentinel.key_id"
"""Where admission leaves the id of the key in a request's scope."""


class Refusal(Exception):
    """The request ends here, with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class Unread(Refusal):
    """The request ends here, before its body was read to the end; the handler of refusals records it."""

    def __init__(
        self, reason: Reason, detail: str, *, status: int | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(problem(reason, detail, status=status))
        self.reason = reason
        self.detail = detail
        self.status = status or HTTP_STATUS[reason]
        self.retry_after_s = retry_after_s


class Refusals:
    """Answers such requests and writes them into `journal`. `seconds` is a clock that only goes forward."""

    def __init__(self, journal: Journal, new_id: Callable[[], str], seconds: Callable[[], float]) -> None:
        self._journal = journal
        self._new_id = new_id
        self._without_key = RecordBudget(seconds)
        self._unread = RecordBudget(seconds)

    async def no_entry(self, request: HTTPConnection, refused: Refused, detail: str) -> Refusal:
        """The refusal of a header that opens nothing."""
        return await self._authentication(request, Reason.UNAUTHENTICATED, refused.key_id, refused.state.value, detail)

    async def no_signature(self, request: HTTPConnection, detail: str) -> Refusal:
        """The refusal of a request that is not signed as it must be."""
        return await self._authentication(request, Reason.UNAUTHENTICATED, None, None, detail)

    async def no_scope(self, request: HTTPConnection, key_id: str, scope: Scope) -> Refusal:
        """The refusal of a live key that lacks `scope`."""
        detail = f"This key lacks the scope {scope.value!r}."
        return await self._authentication(request, Reason.MISSING_SCOPE, key_id, None, detail)

    async def unread(self, request: HTTPConnection, refusal: Unread) -> Response:
        """Record such a refusal; its response, with the record's id."""
        audit_id = None
        missed = self._unread.take()
        if missed is not None:
            audit_id = self._new_id()
            await self._journal.append(
                RequestRefused(
                    audit_id=audit_id,
                    key_id=request.scope.get(KEY_ID),
                    route=_route(request),
                    method=request.scope["method"],
                    client=_client(request),
                    reason=refusal.reason,
                    http_status=refusal.status,
                    not_recorded=missed,
                )
            )
        response = problem(refusal.reason, refusal.detail, audit_id=audit_id, status=refusal.status)
        if refusal.retry_after_s is not None:
            response.headers["Retry-After"] = str(refusal.retry_after_s)
        return response

    async def _authentication(
        self, request: HTTPConnection, reason: Reason, key_id: str | None, state: str | None, detail: str
    ) -> Refusal:
        audit_id = None
        missed = self._without_key.take()
        if missed is not None:
            audit_id = self._new_id()
            await self._journal.append(
                AuthenticationFailed(
                    audit_id=audit_id,
                    key_id=key_id,
                    key_state=state,
                    route=_route(request),
                    method=request.scope["method"],
                    client=_client(request),
                    reason=reason,
                    not_recorded=missed,
                )
            )
        return Refusal(problem(reason, detail, audit_id=audit_id))


def _route(request: HTTPConnection) -> str:
    """The route's pattern and never the path, which is the caller's text; empty before a route is found."""
    return getattr(request.scope.get("route"), "path", "")


def _client(request: HTTPConnection) -> str:
    return request.client.host if request.client else ""


# How many refusals of one kind are recorded one by one.
#
# Whoever can reach the port can be refused as often as they like. Beyond the budget refusals are counted, and the next
# record carries the count, so that a flood can neither fill the disk nor go unseen.


BURST = 1_000.0
PER_SECOND = 20.0


class RecordBudget:
    """A token bucket over `seconds`, a clock that only goes forward."""

    def __init__(self, seconds: Callable[[], float], *, burst: float = BURST, per_second: float = PER_SECOND) -> None:
        self._seconds = seconds
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at = seconds()
        self._uncounted = 0

    def take(self) -> int | None:
        """None if this refusal is over the budget; else how many were since the last one that was not."""
        now = self._seconds()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self._uncounted += 1
            return None
        self._left -= 1
        missed, self._uncounted = self._uncounted, 0
        return missed
