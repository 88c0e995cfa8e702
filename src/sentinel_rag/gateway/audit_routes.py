"""The journal over HTTP, for keys with the scope `audit`: page by page, either way, and the records of one call."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.audit import Journal
from sentinel_rag.audit.reader import MAX_PAGE, RecordFilter
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.gateway.admission import Authenticator
from sentinel_rag.gateway.refusals import Refusal
from sentinel_rag.gateway.responses import json_response, problem
from sentinel_rag.gateway.store import Scope

DEFAULT_PAGE = 100
MAX_WANTED = 200


@dataclass(frozen=True, slots=True)
class AuditRoutes:
    """What is on record, as it stands there; nothing is changed here."""

    authenticator: Authenticator
    journal: Journal

    def routes(self) -> list[Route]:
        return [
            Route("/v1/audit", self.page, methods=["GET"]),
            Route("/v1/audit/{audit_id}", self.record, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.AUDIT)
        after = _whole_number(request, "after", 0, 2**62)
        limit = _whole_number(request, "limit", DEFAULT_PAGE, MAX_PAGE)
        if "before" in request.query_params:
            before = _whole_number(request, "before", 0, 2**62)
            found = await self.journal.back(_wanted(request), before or None, limit)
            told = [entry.to_dict() for entry in found.entries]
            return json_response({"records": told, "next_before": found.next_before})
        entries = await self.journal.read(after, limit)
        last = entries[-1].seq if entries else after
        return json_response({"records": [entry.to_dict() for entry in entries], "next_after": last})

    async def record(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.AUDIT)
        entries = await self.journal.find(request.path_params["audit_id"])
        if not entries:
            return problem(Reason.NOT_FOUND, "There is no record with this id.")
        return json_response({"records": [entry.to_dict() for entry in entries]})


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
