"""A call over HTTP, by an agent or by a person who looks, and the tools that can be called.

The body becomes a request to the gate, whose outcome becomes a response; what is refused before that is admission's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.servers import ClientDisconnect, disconnect_of
from sentinel_rag.gateway.admission import Authenticator, read_json_body
from sentinel_rag.gateway.catalogue import Catalogue
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.gate.call import CLOSED
from sentinel_rag.gateway.limits import GatewayLimits
from sentinel_rag.gateway.outcomes import Outcome
from sentinel_rag.gateway.policy import Effect, Policies
from sentinel_rag.gateway.request_body import ExecuteRequest, MalformedBody, parse_execute
from sentinel_rag.gateway.responses import json_response, outcome_response, problem
from sentinel_rag.gateway.store import Principal, Scope, SessionStore
from sentinel_rag.gateway.telemetry import request_span, tell_status

Surveying = Callable[[], Awaitable[Catalogue]]
"""Asks which tools of the policy can be called now."""


@dataclass(frozen=True, slots=True)
class CallRoutes:
    """`survey` asks the tool servers. A call is counted by the gate, and here only where its body never gets there."""

    gate: Gate
    policies: Policies
    authenticator: Authenticator
    sessions: SessionStore
    limits: GatewayLimits
    survey: Surveying

    def execute_route(self) -> Route:
        """The route that is asked all day; the application also answers it by `fast_path`."""
        return Route("/v1/proxy-execute", self.execute, methods=["POST"])

    def routes(self) -> list[Route]:
        """All others."""
        return [
            Route("/v1/tools", self.tools, methods=["GET"]),
            Route("/v1/look", self.look, methods=["POST"]),
            Route("/v1/look", self.tools_to_look_with, methods=["GET"]),
        ]

    async def execute(self, request: Request) -> Response:
        principal = await self.authenticator.admit(request, Scope.EXECUTE, counts=False)
        return await self._called(request, principal, self.gate.execute)

    async def look(self, request: Request) -> Response:
        """A call of the person's own, which only reads, in a session that no agent's key enters."""
        principal = await self.authenticator.admit(request, Scope.USER, counts=False)
        return await self._called(request, principal, self.gate.look)

    async def _called(
        self,
        request: Request,
        principal: Principal,
        call: Callable[[Principal, ExecuteRequest, ClientDisconnect | None], Awaitable[Outcome]],
    ) -> Response:
        with request_span(request) as span:
            body = await read_json_body(request, self.limits)
            try:
                execute = parse_execute(body)
            except MalformedBody as fault:
                self.authenticator.rates.take(principal.key_id, principal.rate)
                outcome: Outcome = await self.gate.refuse_body(principal, str(fault))
            else:
                outcome = await call(principal, execute, disconnect_of(request.scope))
            response = outcome_response(outcome)
            tell_status(span, request.scope["route"].path, response.status_code)
            return response

    async def tools(self, request: Request) -> Response:
        """The tools that the key may call; with `session_id` also which of them this session refuses as a whole."""
        principal = await self.authenticator.admit(request, Scope.EXECUTE)
        session_id = request.query_params.get("session_id")
        if session_id is None:
            return await self._offered(tuple(Effect))
        session = await self.sessions.find(session_id, principal.key_id)
        # A person's key opens sessions, and only the agent's calls in them.
        if session is None or session.key_id != principal.key_id:
            return problem(Reason.NOT_FOUND, "There is no such session.")
        if session.closed:
            return problem(Reason.CONFLICT, CLOSED)
        offered = await self.offered(tuple(Effect))
        refused = await self.gate.refused_now(principal, session)
        tools = [{**tool, **_refusal(tool["name"], refused)} for tool in offered]
        return json_response({"tools": tools, "policy": self.policies.current.sha256})

    async def tools_to_look_with(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.USER)
        return await self._offered((Effect.READ,))

    async def _offered(self, effects: Sequence[Effect]) -> Response:
        sha256 = self.policies.current.sha256
        return json_response({"tools": await self.offered(effects), "policy": sha256})

    async def offered(self, effects: Sequence[Effect]) -> list[dict[str, Any]]:
        """The tools with these effects that can be called now, in the catalogue's wire form."""
        catalogue = await self.survey()
        return [tool for tool in catalogue.offered if tool["effect"] in effects]


def _refusal(tool: str, refused: Mapping[str, tuple[Violation, ...]]) -> dict[str, Any]:
    violations = refused.get(tool)
    if not violations:
        return {"refused_now": False}
    first = violations[0]
    what = "The call" if not first.parameter else f"Its argument {first.parameter}"
    why = (
        f"This session, or another one of this agent, has read what is {_label(first.label)}. {what} may carry at "
        f"most what is {_label(first.accepts)}, so every call is refused."
    )
    return {"refused_now": True, "reason": Reason.SINK_LABEL.value, "why": why}


def _label(label: Label) -> str:
    return f"{label.sensitivity.name} and {label.integrity.name}"
