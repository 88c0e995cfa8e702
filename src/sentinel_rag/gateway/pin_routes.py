"""The routes of pinned tools, for keys with the scope `admin`: which there are, and accepting a new or changed one.

Definitions are shown whole: whoever accepts one has to be able to read what it says.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.gateway.admission import Authenticator, read_json_body
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.pins import Definition, NotWaiting, Pin, Pins
from sentinel_rag.gateway.request_body import MalformedBody, parse_object
from sentinel_rag.gateway.responses import json_response, problem
from sentinel_rag.gateway.store import Scope


class PinRoutes:
    """`GET /v1/pins` and `POST /v1/pins/{server}/{tool}` with `{"sha256": ...}`."""

    def __init__(self, authenticator: Authenticator, pins: Pins, limits: Limits) -> None:
        self._authenticator = authenticator
        self._pins = pins
        self._limits = limits

    def routes(self) -> list[Route]:
        return [
            Route("/v1/pins", self.all, methods=["GET"]),
            Route("/v1/pins/{server}/{tool}", self.accept, methods=["POST"]),
        ]

    async def all(self, request: Request) -> Response:
        await self._authenticator.admit(request, Scope.ADMIN)
        return json_response({"pins": [wire_form(pin) for pin in self._pins.all()]})

    async def accept(self, request: Request) -> Response:
        principal = await self._authenticator.admit(request, Scope.ADMIN)
        body = await read_json_body(request, self._limits)
        try:
            document = parse_object(body)
        except MalformedBody as fault:
            return problem(Reason.MALFORMED_BODY, f"The request was refused: {fault}.")
        sha256 = document.get("sha256")
        if document.keys() != {"sha256"} or not isinstance(sha256, str):
            return problem(Reason.MALFORMED_BODY, "The body must hold sha256, a text, and nothing else.")
        server, tool = request.path_params["server"], request.path_params["tool"]
        try:
            pin = await self._pins.accept(server, tool, sha256, key_id=principal.key_id)
        except NotWaiting as fault:
            return problem(Reason.CONFLICT, f"{fault} {fault.next_step}")
        return json_response(wire_form(pin))


def wire_form(pin: Pin) -> JsonObject:
    """`state` is `pinned` or `quarantined`; `waiting` is there for the latter. `vouched`: the agent is shown the words
    of the accepted definition."""
    return {
        "server": pin.server,
        "tool": pin.tool,
        "state": "pinned" if pin.waiting is None else "quarantined",
        "vouched": pin.vouched,
        "accepted": _definition(pin.accepted),
        "waiting": None if pin.waiting is None else _definition(pin.waiting),
    }


def _definition(definition: Definition) -> JsonObject:
    return {"sha256": definition.sha256, "definition": definition.document}
