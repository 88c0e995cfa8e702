"""The HTTP face of the gateway put together: its parts, its routes, and what runs beside them.

It decides nothing. Each route admits a key with one scope, reads what it needs, and turns a value into a response; the
routes of one thing stand in a module of their own (`call_routes`, `session_routes`, `audit_routes`, ...).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Collection, Mapping
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway import openapi
from sentinel_rag.gateway.admission import Doorkeeper
from sentinel_rag.gateway.approval_desk import Webhook, notifying, served_routes
from sentinel_rag.gateway.audit_routes import AuditRoutes
from sentinel_rag.gateway.call_routes import CallRoutes
from sentinel_rag.gateway.catalogue import Catalogue, survey
from sentinel_rag.gateway.downstream import ClientSessions, McpEndpoint, SessionDoor, ToolCalls
from sentinel_rag.gateway.error_answers import broken, no_method, no_route, not_possible
from sentinel_rag.gateway.express_way import ExpressWay
from sentinel_rag.gateway.gate import Gate, Stores
from sentinel_rag.gateway.host_guard import HostGuard
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.pin_routes import PinRoutes
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.policy.book import watching
from sentinel_rag.gateway.policy_routes import policy_routes
from sentinel_rag.gateway.rates import RateLimiter
from sentinel_rag.gateway.readiness import ReadinessRoutes
from sentinel_rag.gateway.refusals import Refusal, Refusals
from sentinel_rag.gateway.session_routes import SessionRoutes
from sentinel_rag.gateway.session_upkeep import SessionUpkeep
from sentinel_rag.gateway.store import KeyRing, State, new_audit_id
from sentinel_rag.gateway.telling import tell_records, told_upstreams
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
    limits: Limits | None = None,
    switched_off: Collection[str] = (),
    allowed_hosts: Collection[str] = LOOPBACK_NAMES,
    approvals_page: str | None = None,
    registry: Registry | None = None,
) -> Starlette:
    """The gateway as an ASGI application. It closes the upstreams when it stops; the state is its owner's.

    `switched_off` are tools of the policy that this run neither offers nor lets pass. `approvals_page` is the address
    under which people decide approvals, which clients of MCP are told; `registry` is where it counts."""
    limits = limits or Limits()
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
        clock=utc_now,
        readers_of=keys.readers_of,
        name_of=keys.name_of,
    )
    tell_records(state, gate, policies, upstreams, registry)
    refusals = Refusals(journal, new_audit_id, time.monotonic)
    doorkeeper = Doorkeeper(keys, refusals, rates, state.key_journal)

    async def surveyed() -> Catalogue:
        return await survey(policies.current, upstreams, pins, switched_off)

    calls = CallRoutes(gate, policies, doorkeeper, state.sessions, limits, surveyed)
    sessions = SessionRoutes(
        doorkeeper, state.sessions, state.handles, journal, upstreams, limits, new_audit_id, policies
    )

    clients = ClientSessions()
    mcp = McpEndpoint(
        doorkeeper=doorkeeper,
        calls=ToolCalls(gate, state.approvals, clients, limits, approvals_page),
        clients=clients,
        sessions=SessionDoor(state.sessions, state.standing, clients, upstreams, limits),
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
            *PinRoutes(doorkeeper, pins, limits).routes(),
            *policy_routes(policies, doorkeeper),
            *AuditRoutes(doorkeeper, journal).routes(),
            Route(openapi.PATH, openapi.show, methods=["GET"]),
            *served_routes(
                state.approvals, webhook, doorkeeper=doorkeeper, refusals=refusals, policies=policies, limits=limits
            ),
            *ReadinessRoutes(policies, journal, surveyed).routes(),
        ],
        middleware=[
            Middleware(HostGuard, allowed_hosts=allowed_hosts, limits=limits, refusals=refusals),
            Middleware(ExpressWay, route=execute, refused=doorkeeper.answer, not_possible=not_possible),
        ],
        exception_handlers={
            404: no_route,
            405: no_method,
            Refusal: doorkeeper.answer,
            SentinelError: not_possible,
            Exception: broken,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app
