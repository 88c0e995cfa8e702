"""The HTTP face of the gateway put together: its parts, its routes, and what runs beside them.

It decides nothing. Each route admits a key with one scope, reads what it needs, and turns a value into a response; the
routes of one thing stand in a module of their own (`call_routes`, `session_routes`, `admin_routes`, ...).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.audit import Journal, StateAway
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.servers import LOOPBACK_NAMES, RequestAuthenticator
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway import openapi
from sentinel_rag.gateway.admin_routes import AuditRoutes, KeyRoutes, PinRoutes, policy_routes, store_change_routes
from sentinel_rag.gateway.admission import Authenticator, GatewayLimits, RateLimiter
from sentinel_rag.gateway.approval_routes import notifying, served_routes
from sentinel_rag.gateway.approval_webhook import Webhook
from sentinel_rag.gateway.catalogue import Catalogue, survey
from sentinel_rag.gateway.downstream import ClientSessions, McpEndpoint, SessionChecks, ToolCalls
from sentinel_rag.gateway.gate import AtYes, Gate, Stores
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.policy.loading import PolicyBook, watching
from sentinel_rag.gateway.responses import (
    OutcomeLost,
    Refusals,
    RefusedRequest,
    Unread,
    away_response,
    json_response,
    problem,
)
from sentinel_rag.gateway.session_routes import CallRoutes, SessionRoutes, SessionUpkeep, Surveying
from sentinel_rag.gateway.store import KeyRing, State, new_audit_id
from sentinel_rag.gateway.telemetry import tell_records, told_upstreams
from sentinel_rag.gateway.upstream import Upstream

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry


def create_app(
    *,
    policies: Policies,
    keys: KeyRing,
    state: State,
    upstreams: Mapping[str, Upstream],
    webhook: Webhook | None = None,
    limits: GatewayLimits | None = None,
    switched_off: Collection[str] = (),
    allowed_hosts: Collection[str] = LOOPBACK_NAMES,
    approvals_page: str | None = None,
    registry: Registry | None = None,
) -> Starlette:
    """The gateway as an ASGI application. It closes the upstreams when it stops; the state is its owner's.

    `switched_off` are tools of the policy that this run neither offers nor lets pass. `approvals_page` is the address
    under which people decide approvals, which clients of MCP are told; `registry` is where it counts."""
    limits = limits or GatewayLimits()
    journal = state.journal
    upstreams = told_upstreams(upstreams)
    pins = Pins(policies, upstreams, state.database, journal)
    rates = RateLimiter(time.monotonic, default=limits.key_rate)
    gate = Gate(
        policies=policies,
        stores=Stores(state.sessions, state.handles, state.resources, state.approvals, journal),
        upstreams=upstreams,
        limits=limits,
        rates=rates,
        pins=pins,
        switched_off=switched_off,
        new_id=new_audit_id,
        clock=state.clock,
        readers_of=keys.readers_of,
        name_of=keys.name_of,
    )
    tell_records(state, gate, policies, upstreams, registry)
    refusals = Refusals(journal, new_audit_id, time.monotonic)
    authenticator = Authenticator(keys, refusals, rates, state.key_journal)

    async def surveyed() -> Catalogue:
        return await survey(policies.current, upstreams, pins, switched_off)

    calls = CallRoutes(gate, policies, authenticator, state.sessions, limits, surveyed)
    sessions = SessionRoutes(
        authenticator, state.sessions, state.handles, journal, upstreams, limits, new_audit_id, policies
    )

    at_yes = AtYes(gate, state.approvals, keys.live)
    clients = ClientSessions()
    mcp = McpEndpoint(
        authenticator=authenticator,
        calls=ToolCalls(gate, state.approvals, clients, limits, policies, at_yes.run, approvals_page),
        clients=clients,
        sessions=SessionChecks(state.sessions, state.standing, clients, upstreams, limits),
        limits=limits,
        offered=calls.offered,
    )

    execute = calls.execute_route()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        upkeep = SessionUpkeep(mcp.sessions.end_unused, state.handles, clock=utc_now)
        await state.key_journal.catch_up()
        try:
            async with (
                notifying(state.approvals, webhook),
                watching(policies),
                anyio.create_task_group() as background,
            ):
                background.start_soon(pins.watch)
                background.start_soon(upkeep.watch)
                yield
                background.cancel_scope.cancel()
        finally:
            for upstream in upstreams.values():
                await upstream.aclose()

    app = Starlette(
        routes=[
            execute,
            *mcp.routes(),
            *calls.routes(),
            *sessions.routes(),
            *PinRoutes(authenticator, pins, limits).routes(),
            *KeyRoutes(authenticator, state.keys, limits).routes(),
            *policy_routes(policies, authenticator),
            *store_change_routes(journal, authenticator, limits, new_audit_id),
            *AuditRoutes(authenticator, journal, state.keys).routes(),
            Route(openapi.PATH, openapi.show, methods=["GET"]),
            *served_routes(
                state.approvals,
                webhook,
                authenticator=authenticator,
                refusals=refusals,
                policies=policies,
                limits=limits,
                run=at_yes.run,
            ),
            *ReadinessRoutes(policies, journal, surveyed).routes(),
        ],
        middleware=[
            Middleware(RequestBounds, allowed_hosts=allowed_hosts, limits=limits, refusals=refusals),
            Middleware(FastPath, route=execute, refused=authenticator.answer, not_possible=not_possible),
        ],
        exception_handlers={
            404: no_route,
            405: no_method,
            RefusedRequest: authenticator.answer,
            SentinelError: not_possible,
            Exception: broken,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


# What answers where no route does: exception handlers that say what became of the call, and nothing of the error.


async def not_possible(_: Request, error: Exception) -> Response:
    """What could not be recorded, or not be asked: 503 or 500, and whether a call may have run."""
    # The sentence of such an error may name files; callers learn only that nothing is pretended.
    if isinstance(error, UnavailableError):
        return away_response(may_have_run=isinstance(error, OutcomeLost), is_database=isinstance(error, StateAway))
    return problem(Reason.INTERNAL, "The gateway could not record this call, so there is no result.")


async def no_route(_: Request, __: Exception) -> Response:
    """404."""
    return problem(Reason.NOT_FOUND, "There is no such route.")


async def no_method(request: Request, _: Exception) -> Response:
    """405, with the methods that the path takes."""
    response = problem(Reason.METHOD_NOT_ALLOWED, "This route does not take that method.")
    # Starlette names the methods of the first route with this path, and some paths have several.
    at_path = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    response.headers["Allow"] = ", ".join(sorted({method for route in at_path for method in route.methods}))
    return response


async def broken(_: Request, __: Exception) -> Response:
    """The last resort; the error itself stands in the log."""
    return problem(Reason.INTERNAL, "The gateway failed; the call may have no result.")


# The short way to the route that is asked all day: a POST to its exact path goes to the handler without the router.
#
# It stands behind the host guard and before the application's own exception handling, whose two handlers it is given;
# so a call is answered by the same functions as on the long way. What they do not take goes up to the application's
# last resort, as it does there.


Answering = Callable[[Request, Exception], Awaitable[Response]]


class FastPath:
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
            except RefusedRequest as refusal:  # recording it may fail in its turn
                response = await self._refused(request, refusal)
        except SentinelError as error:
            response = await self._not_possible(request, error)
        await response(scope, receive, send)


# Refuses requests before a route is looked for: those that were meant for somebody else, and heads out of measure.
#
# `contracts.servers` says why a foreign Host or Origin is refused; here are the names that this gateway goes by. The
# server below has read the whole head by now, within harder bounds of its own.


class RequestBounds:
    """Lets through what names one of `allowed_hosts` (without ports) as Host and has no other Origin."""

    def __init__(
        self, app: ASGIApp, *, allowed_hosts: Collection[str], limits: GatewayLimits, refusals: Refusals
    ) -> None:
        self._app = app
        self._authenticator = RequestAuthenticator(frozenset(host.lower() for host in allowed_hosts))
        self._limits = limits
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is not None:
                response = await self._refusals.unread(HTTPConnection(scope), refusal)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Unread | None:
        raw = scope["headers"]
        if self._authenticator.refused(raw) is not None:
            return Unread(Reason.MISDIRECTED, "This request is for another host.")
        if not scope["path"].isprintable():  # a route also matches with a line end behind it
            return Unread(Reason.NOT_FOUND, "There is no such route.")
        limits = self._limits
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > limits.url_bytes:
            return Unread(Reason.TOO_LARGE, f"The URL may have at most {limits.url_bytes} bytes.", status=414)
        if len(raw) > limits.header_count or sum([len(name) + len(text) for name, text in raw]) > limits.header_bytes:
            detail = f"There may be {limits.header_count} headers with {limits.header_bytes} bytes in all."
            return Unread(Reason.TOO_LARGE, detail, status=431)
        return None


# Whether the process lives, and whether calls can be taken: the two routes that need no key.


@dataclass(frozen=True, slots=True)
class ReadinessRoutes:
    """The routes, which decide nothing."""

    policies: Policies
    journal: Journal
    survey: Surveying

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.health, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
        ]

    async def health(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Ready means: a call would be recorded, and every tool of the policy that is not switched off is served. With
        `part`, that part decides: where one tool server is down, calls of the others are not to be turned away."""
        try:
            await self.journal.head()
            journal = "ok"
        except UnavailableError:
            journal = "not writable"
        catalogue = await self.survey()
        tools = "ok" if not catalogue.withheld else f"{len(catalogue.withheld)} not available"
        upstreams = "ok" if not catalogue.unreachable else f"{len(catalogue.unreachable)} not reachable"
        ready = journal == tools == upstreams == "ok"
        refused = self.policies.refused if isinstance(self.policies, PolicyBook) else None
        # A file that was refused does not stop the calls: the last good policy judges them.
        policy = "ok" if refused is None else f"last good; the file was refused ({len(refused.problems)} problems)"
        checks = {"policy": policy, "journal": journal, "upstreams": upstreams, "tools": tools}
        part = request.query_params.get("part")
        if part is not None:
            if part not in checks:
                return problem(Reason.INVALID_ARGUMENT, f"part must be one of {', '.join(checks)}.")
            ready = checks[part] == "ok"
        return json_response({"status": "ready" if ready else "not_ready", "checks": checks}, 200 if ready else 503)
