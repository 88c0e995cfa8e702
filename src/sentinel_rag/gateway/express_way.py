"""The short way to the route that is asked all day: a POST to its exact path goes to the handler without the router.

It stands behind the host guard and before the application's own exception handling, whose two handlers it is given; so
a call is answered by the same functions as on the long way. What they do not take goes up to the application's last
resort, as it does there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.gateway.refusals import Refusal

Answering = Callable[[Request, Exception], Awaitable[Response]]


class ExpressWay:
    """Answers POST to the path of `route` by its endpoint, and what that raises by the two handlers."""

    def __init__(self, app: ASGIApp, *, route: Route, refused: Answering, not_possible: Answering) -> None:
        self._app = app
        self._route = route
        self._path = route.path
        self._handler: Callable[[Request], Awaitable[Response]] = route.endpoint
        self._refused = refused
        self._not_possible = not_possible

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route  # as the router does: the record of a refusal names it
        request = Request(scope, receive, send)
        try:
            try:
                response = await self._handler(request)
            except Refusal as refusal:  # recording it may fail in its turn
                response = await self._refused(request, refusal)
        except SentinelError as error:
            response = await self._not_possible(request, error)
        await response(scope, receive, send)
