"""Whether the process lives, and whether calls can be taken: the two routes that need no key."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.audit import Journal
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.call_routes import Surveying
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.policy.book import PolicyBook
from sentinel_rag.gateway.responses import json_response, problem


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
