"""The HTTP face of the Interceptor: routes, and the way from a request to the gate and back.

It decides nothing. Each route admits a key with one scope, reads what it needs, and turns a value into a response.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from sentinel_rag.audit import Journal, StateAway
from sentinel_rag.audit.reader import MAX_PAGE, RecordFilter
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.departure import Departure, departure_of
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.interceptor import openapi
from sentinel_rag.interceptor.admission import Doorkeeper, read_json_body
from sentinel_rag.interceptor.approval_desk import Webhook, notifying, served_routes
from sentinel_rag.interceptor.catalogue import survey
from sentinel_rag.interceptor.downstream import ClientSessions, McpEndpoint, SessionDoor, ToolCalls, metadata_routes
from sentinel_rag.interceptor.express_way import ExpressWay
from sentinel_rag.interceptor.gate import Gate, Stores
from sentinel_rag.interceptor.host_guard import HostGuard
from sentinel_rag.interceptor.limits import Limits
from sentinel_rag.interceptor.outcomes import Outcome, OutcomeLost
from sentinel_rag.interceptor.pin_routes import PinRoutes
from sentinel_rag.interceptor.pins import Pins
from sentinel_rag.interceptor.policy import Effect, Policies
from sentinel_rag.interceptor.policy.book import PolicyBook, watching
from sentinel_rag.interceptor.policy_routes import policy_routes
from sentinel_rag.interceptor.rates import RateLimiter
from sentinel_rag.interceptor.refusals import Refusal, Refusals, Unread
from sentinel_rag.interceptor.request_body import ExecuteRequest, MalformedBody, parse_execute
from sentinel_rag.interceptor.responses import away_response, json_response, outcome_response, problem
from sentinel_rag.interceptor.session_routes import SessionRoutes
from sentinel_rag.interceptor.session_upkeep import SessionUpkeep
from sentinel_rag.interceptor.store import KeyRing, Principal, Scope, State, new_audit_id
from sentinel_rag.interceptor.telling import request_span, tell_records, tell_status, told_upstreams
from sentinel_rag.interceptor.upstream import Upstream

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry

DEFAULT_PAGE = 100
MAX_WANTED = 200

Handler = Callable[[Request], Awaitable[Response]]


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
    """The Interceptor as an ASGI application. It closes the upstreams when it stops; the state is its owner's.

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
    )
    tell_records(state, gate, policies, upstreams, registry)
    refusals = Refusals(journal, new_audit_id, time.monotonic)
    doorkeeper = Doorkeeper(keys, refusals, rates, state.key_journal)
    routes = _Routes(gate, policies, doorkeeper, journal, upstreams, pins, limits, switched_off)
    sessions = SessionRoutes(
        doorkeeper, state.sessions, state.handles, journal, upstreams, limits, new_audit_id, policies
    )

    clients = ClientSessions()
    mcp = McpEndpoint(
        doorkeeper=doorkeeper,
        calls=ToolCalls(gate, state.approvals, clients, limits, approvals_page),
        clients=clients,
        sessions=SessionDoor(state.sessions, state.standing, clients, upstreams, limits, rates),
        limits=limits,
        offered=routes.offered,
    )

    execute = Route("/v1/proxy-execute", routes.execute, methods=["POST"])

    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refusal)
        return await refusals.unread(request, refusal) if isinstance(refusal, Unread) else refusal.response

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await state.key_journal.catch_up()
        try:
            async with (
                notifying(state.approvals, webhook),
                watching(policies),
                anyio.create_task_group() as background,
            ):
                background.start_soon(pins.watch)
                background.start_soon(SessionUpkeep(mcp.sessions.end_unused, state.handles, clock=utc_now).watch)
                yield
                background.cancel_scope.cancel()
        finally:
            for upstream in upstreams.values():
                await upstream.aclose()

    app = Starlette(
        routes=[
            execute,
            *mcp.routes(),
            Route("/v1/tools", routes.tools, methods=["GET"]),
            Route("/v1/look", routes.look, methods=["POST"]),
            Route("/v1/look", routes.tools_to_look_with, methods=["GET"]),
            *sessions.routes(),
            *metadata_routes(),
            *PinRoutes(doorkeeper, pins, limits).routes(),
            *policy_routes(policies, doorkeeper),
            Route("/v1/audit", routes.audit_page, methods=["GET"]),
            Route("/v1/audit/{audit_id}", routes.audit_record, methods=["GET"]),
            Route(openapi.PATH, openapi.show, methods=["GET"]),
            *served_routes(
                state.approvals, webhook, doorkeeper=doorkeeper, refusals=refusals, policies=policies, limits=limits
            ),
            Route("/healthz", routes.health, methods=["GET"]),
            Route("/readyz", routes.ready, methods=["GET"]),
        ],
        middleware=[
            Middleware(HostGuard, allowed_hosts=allowed_hosts, limits=limits, refusals=refusals),
            Middleware(ExpressWay, route=execute, refused=refused, not_possible=_not_possible),
        ],
        exception_handlers={
            404: _no_route,
            405: _no_method,
            Refusal: refused,
            SentinelError: _not_possible,
            Exception: _broken,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


class _Routes:
    """The routes as methods, so that each sees the parts it needs."""

    def __init__(
        self,
        gate: Gate,
        policies: Policies,
        doorkeeper: Doorkeeper,
        journal: Journal,
        upstreams: Mapping[str, Upstream],
        pins: Pins,
        limits: Limits,
        switched_off: Collection[str],
    ) -> None:
        self._gate = gate
        self._policies = policies
        self._doorkeeper = doorkeeper
        self._journal = journal
        self._upstreams = upstreams
        self._pins = pins
        self._limits = limits
        self._switched_off = switched_off

    async def execute(self, request: Request) -> Response:
        principal = await self._doorkeeper.admit(request, Scope.EXECUTE, counts=False)
        return await self._called(request, principal, self._gate.execute)

    async def look(self, request: Request) -> Response:
        """A call of the person's own, which only reads, in a session that no agent's key enters."""
        principal = await self._doorkeeper.admit(request, Scope.USER, counts=False)
        return await self._called(request, principal, self._gate.look)

    async def _called(
        self,
        request: Request,
        principal: Principal,
        call: Callable[[Principal, ExecuteRequest, Departure | None], Awaitable[Outcome]],
    ) -> Response:
        with request_span(request) as span:
            body = await read_json_body(request, self._limits)
            try:
                wish = parse_execute(body)
            except MalformedBody as fault:
                self._doorkeeper.rates.take(principal.key_id, principal.rate)
                outcome: Outcome = await self._gate.refuse_body(principal, str(fault))
            else:
                outcome = await call(principal, wish, departure_of(request.scope))
            response = outcome_response(outcome)
            tell_status(span, request.scope["route"].path, response.status_code)
            return response

    async def tools(self, request: Request) -> Response:
        await self._doorkeeper.admit(request, Scope.EXECUTE)
        return await self._offered(tuple(Effect))

    async def tools_to_look_with(self, request: Request) -> Response:
        await self._doorkeeper.admit(request, Scope.USER)
        return await self._offered((Effect.READ,))

    async def _offered(self, effects: Sequence[Effect]) -> Response:
        sha256 = self._policies.current.sha256
        return json_response({"tools": await self.offered(effects), "policy": sha256})

    async def offered(self, effects: Sequence[Effect]) -> list[dict[str, Any]]:
        """The tools with these effects that can be called now, in the catalogue's wire form."""
        catalogue = await survey(self._policies.current, self._upstreams, self._pins, self._switched_off)
        return [tool for tool in catalogue.offered if tool["effect"] in effects]

    async def audit_page(self, request: Request) -> Response:
        await self._doorkeeper.admit(request, Scope.AUDIT)
        after = _whole_number(request, "after", 0, 2**62)
        limit = _whole_number(request, "limit", DEFAULT_PAGE, MAX_PAGE)
        if "before" in request.query_params:
            before = _whole_number(request, "before", 0, 2**62)
            found = await self._journal.back(_wanted(request), before or None, limit)
            told = [entry.to_dict() for entry in found.entries]
            return json_response({"records": told, "next_before": found.next_before})
        entries = await self._journal.read(after, limit)
        last = entries[-1].seq if entries else after
        return json_response({"records": [entry.to_dict() for entry in entries], "next_after": last})

    async def audit_record(self, request: Request) -> Response:
        await self._doorkeeper.admit(request, Scope.AUDIT)
        entries = await self._journal.find(request.path_params["audit_id"])
        if not entries:
            return problem(Reason.NOT_FOUND, "There is no record with this id.")
        return json_response({"records": [entry.to_dict() for entry in entries]})

    async def health(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Ready means: a call would be recorded, and every tool of the policy that is not switched off is served. With
        `part`, that part decides: where one tool server is down, calls of the others are not to be turned away."""
        try:
            await self._journal.head()
            journal = "ok"
        except UnavailableError:
            journal = "not writable"
        catalogue = await survey(self._policies.current, self._upstreams, self._pins, self._switched_off)
        tools = "ok" if not catalogue.withheld else f"{len(catalogue.withheld)} not available"
        upstreams = "ok" if not catalogue.unreachable else f"{len(catalogue.unreachable)} not reachable"
        ready = journal == tools == upstreams == "ok"
        refused = self._policies.refused if isinstance(self._policies, PolicyBook) else None
        # A file that was refused does not stop the calls: the last good policy judges them.
        policy = "ok" if refused is None else f"last good; the file was refused ({len(refused.problems)} problems)"
        checks = {"policy": policy, "journal": journal, "upstreams": upstreams, "tools": tools}
        part = request.query_params.get("part")
        if part is not None:
            if part not in checks:
                return problem(Reason.INVALID_ARGUMENT, f"part must be one of {', '.join(checks)}.")
            ready = checks[part] == "ok"
        return json_response({"status": "ready" if ready else "not_ready", "checks": checks}, 200 if ready else 503)


def _wanted(request: Request) -> RecordFilter:
    """What is asked for of the journal. Raises Refusal for a text that no record holds."""
    given = {name: request.query_params.get(name) for name in ("kind", "tool", "session_id", "key_id")}
    for name, text in given.items():
        if text is not None and not 1 <= len(text) <= MAX_WANTED:
            raise Refusal(problem(Reason.INVALID_ARGUMENT, f"{name} must have 1 to {MAX_WANTED} characters."))
    return RecordFilter(kind=given["kind"], tool=given["tool"], session_id=given["session_id"], key_id=given["key_id"])


def _whole_number(request: Request, name: str, default: int, largest: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= largest):
        raise Refusal(problem(Reason.INVALID_ARGUMENT, f"{name} must be a whole number from 0 to {largest}."))
    return int(text)


async def _not_possible(_: Request, error: Exception) -> Response:
    # The sentence of such an error may name files; callers learn only that nothing is pretended.
    if isinstance(error, UnavailableError):
        return away_response(may_have_run=isinstance(error, OutcomeLost), is_database=isinstance(error, StateAway))
    return problem(Reason.INTERNAL, "The Interceptor could not record this call, so there is no result.")


async def _no_route(_: Request, __: Exception) -> Response:
    return problem(Reason.NOT_FOUND, "There is no such route.")


async def _no_method(request: Request, _: Exception) -> Response:
    response = problem(Reason.METHOD_NOT_ALLOWED, "This route does not take that method.")
    # Starlette names the methods of the first route with this path, and some paths have several.
    at_path = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    response.headers["Allow"] = ", ".join(sorted({method for route in at_path for method in route.methods}))
    return response


async def _broken(_: Request, __: Exception) -> Response:
    return problem(Reason.INTERNAL, "The Interceptor failed; the call may have no result.")
