"""The OpenAPI 3.1 document of the gateway: which operations there are, who may call them and how each can end.

The list below is the one place where that is written down; the document is made from it for the routes that this
gateway serves, and tests hold routes, statuses and bodies to it. It is served without a key: it says nothing that
the documentation does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from sentinel_rag import __version__
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.downstream.endpoint import PATHS as MCP_PATHS
from sentinel_rag.gateway.openapi_schemas import SCHEMAS, WHOLE, ref
from sentinel_rag.gateway.responses import HTTP_STATUS, json_response
from sentinel_rag.gateway.store import Scope

PATH = "/v1/openapi.json"
KEY = "key"

Ending = Reason | tuple[Reason, int]
"""A reason, with the status where it is not the reason's own."""

ANYWHERE: tuple[Ending, ...] = (
    Reason.MISDIRECTED,
    (Reason.TOO_LARGE, 414),
    (Reason.TOO_LARGE, 431),
    Reason.INTERNAL,
)
WITH_KEY: tuple[Ending, ...] = (Reason.UNAUTHENTICATED, Reason.MISSING_SCOPE, Reason.RATE_LIMITED)
WITH_BODY: tuple[Ending, ...] = (
    Reason.MALFORMED_BODY,
    (Reason.MALFORMED_BODY, 400),
    (Reason.MALFORMED_BODY, 408),
    Reason.TOO_LARGE,
    Reason.UNSUPPORTED_MEDIA_TYPE,
)
OF_A_CALL: tuple[Ending, ...] = (
    Reason.NO_RULE_MATCHED,
    Reason.RULE_DENIES,
    Reason.APPROVAL_REQUIRED,
    Reason.CONDITION_UNDECIDED,
    Reason.SINK_LABEL,
    Reason.UNKNOWN_TOOL,
    Reason.TOOL_QUARANTINED,
    Reason.TOOL_SWITCHED_OFF,
    Reason.NOT_FOUND,
    Reason.CONFLICT,
    Reason.INVALID_ARGUMENT,
    Reason.OVERLOADED,
    Reason.CALLER_LEFT,
    Reason.UPSTREAM_FAILED,
    Reason.UPSTREAM_TIMEOUT,
)
OF_A_DECISION: tuple[Ending, ...] = (
    Reason.INVALID_ARGUMENT,
    Reason.OWN_APPROVAL,
    Reason.NOT_AN_APPROVER,
    Reason.APPROVAL_DECIDED,
    Reason.APPROVAL_EXPIRED,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `scopes` are alternatives; none means that no key is asked for. `answers` maps each
    status that has a body of its own to its schema, empty for none. `problem` is the schema of every other body, and
    `streams` says that an answer may be server-sent events instead."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, str]
    scopes: tuple[Scope, ...] = ()
    body: str = ""
    body_required: bool = True
    query: tuple[str, ...] = ()
    endings: tuple[Ending, ...] = ()
    headers: tuple[str, ...] = ()
    problem: str = "Problem"
    streams: bool = False

    def reasons(self) -> Mapping[int, tuple[Reason, ...]]:
        """Every way in which the operation does not succeed: the reasons of each status."""
        endings = (
            *self.endings,
            *((Reason.NOT_FOUND,) if "{" in self.path else ()),
            *(WITH_KEY if self.scopes else ()),
            *(WITH_BODY if self.body else ()),
            *ANYWHERE,
        )
        found: dict[int, list[Reason]] = {}
        for ending in endings:
            reason, status = ending if isinstance(ending, tuple) else (ending, HTTP_STATUS[ending])
            if reason not in found.setdefault(status, []):
                found[status].append(reason)
        return {status: tuple(found[status]) for status in sorted(found)}


_SESSION, _DECIDER = (Scope.EXECUTE, Scope.USER), (Scope.APPROVE, Scope.USER)
_AGENT, _PERSON, _AUDITOR, _ADMIN = (Scope.EXECUTE,), (Scope.USER,), (Scope.AUDIT,), (Scope.ADMIN,)


def _mcp(path: str) -> tuple[Operation, ...]:
    """What MCP clients may do at one of the two spellings of the address."""
    return (
        Operation(
            "POST",
            path,
            "One message of an MCP client; docs/mcp.md",
            {200: "McpMessage", 202: ""},
            _SESSION,
            body="McpRequest",
            headers=("Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"),
            endings=(Reason.NOT_FOUND, (Reason.UNSUPPORTED_MEDIA_TYPE, 406)),
            problem="McpProblem",
            streams=True,
        ),
        Operation(
            "DELETE",
            path,
            "End a session of an MCP client",
            {204: ""},
            _SESSION,
            headers=("Mcp-Session-Id",),
            endings=(Reason.NOT_FOUND, (Reason.MALFORMED_BODY, 400)),
            problem="McpProblem",
        ),
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/proxy-execute",
        "Run a tool, if the policy lets it",
        {200: "Executed"},
        _AGENT,
        body="Execute",
        endings=OF_A_CALL,
    ),
    Operation(
        "GET",
        "/v1/tools",
        "The tools that can be called now",
        {200: "Tools"},
        _AGENT,
        query=("session_id",),
        endings=(Reason.NOT_FOUND, Reason.CONFLICT),
    ),
    Operation(
        "POST",
        "/v1/look",
        "Run a tool that only reads, for a person and in a session of the person's own",
        {200: "Executed"},
        _PERSON,
        body="Execute",
        endings=OF_A_CALL,
    ),
    Operation("GET", "/v1/look", "The tools that a person may look with", {200: "Tools"}, _PERSON),
    Operation("POST", "/v1/sessions", "Open a session", {201: "SessionOpened"}, _SESSION, endings=(Reason.CONFLICT,)),
    Operation(
        "GET", "/v1/sessions/{session_id}", "A session's context label and what raised it", {200: "Session"}, _SESSION
    ),
    Operation(
        "DELETE", "/v1/sessions/{session_id}", "Close a session; its hidden values end with it", {204: ""}, _SESSION
    ),
    Operation(
        "POST",
        "/v1/sessions/{session_id}/words",
        "Take a person's own words, which may name values",
        {200: "WordsNamed"},
        _PERSON,
        body="Words",
    ),
    Operation(
        "POST",
        "/v1/sessions/{session_id}/plan",
        "Take the plan that a person commits to",
        {200: "PlanTaken"},
        _PERSON,
        body="Plan",
        endings=(Reason.INVALID_ARGUMENT, Reason.CONFLICT),
    ),
    Operation(
        "POST",
        "/v1/sessions/{session_id}/resolve",
        "The hidden values that a person is cleared to see",
        {200: "HandleValues"},
        _PERSON,
        body="Handles",
    ),
    Operation(
        "GET",
        "/v1/sessions/{session_id}/records",
        "What became of the calls of a person's own session, without their arguments",
        {200: "SessionRecords"},
        _PERSON,
    ),
    Operation(
        "GET",
        "/v1/approvals",
        "The approvals, oldest first",
        {200: "ApprovalPage"},
        _DECIDER,
        query=("state", "limit", "mark"),
        endings=(Reason.INVALID_ARGUMENT,),
    ),
    Operation("GET", "/v1/approvals/{approval_id}", "One approval, whole", {200: "Approval"}, _DECIDER),
    *(
        Operation(
            "POST",
            f"/v1/approvals/{{approval_id}}/{verdict}",
            summary,
            {200: "Approval"},
            _DECIDER,
            body="Comment",
            body_required=False,
            endings=OF_A_DECISION,
        )
        for verdict, summary in (
            ("approve", "Let the call pass, once"),
            ("deny", "Refuse the call, and what reads alike"),
            ("lift", "Take a denial back: the call may be asked about again"),
        )
    ),
    Operation(
        "POST",
        "/v1/approvals/{approval_id}/decision",
        "A decision that the webhook's receiver has signed",
        {200: "Decided"},
        body="Decision",
        endings=(Reason.UNAUTHENTICATED, *OF_A_DECISION),
    ),
    Operation(
        "GET",
        "/v1/audit",
        "The journal in pages, oldest first; with `before` newest first, and filtered",
        {200: "AuditPage"},
        _AUDITOR,
        query=("after", "limit", "before", "kind", "tool", "session_id", "incident", "person"),
        endings=(Reason.INVALID_ARGUMENT,),
    ),
    Operation("GET", "/v1/audit/{audit_id}", "All records of one call", {200: "AuditRecords"}, _AUDITOR),
    Operation("GET", "/v1/policy", "The policy in force", {200: "Policy"}, _ADMIN),
    Operation(
        "POST",
        "/v1/policy/reload",
        "Load the policy file now; a wrong one leaves the last good one in force",
        {200: "PolicyReloaded", 422: "PolicyNotLoaded"},
        _ADMIN,
    ),
    Operation("GET", "/v1/pins", "The pinned definitions of tools", {200: "Pins"}, _ADMIN),
    Operation(
        "POST",
        "/v1/pins/{server}/{tool}",
        "Accept the changed definition of a tool",
        {200: "Pin"},
        _ADMIN,
        body="Accept",
        endings=(Reason.CONFLICT,),
    ),
    Operation(
        "POST",
        "/v1/keys",
        "Make the key of a person, in the place of another where `replaces` names one",
        {201: "NewKey"},
        _ADMIN,
        body="KeyTerms",
        endings=(Reason.INVALID_ARGUMENT, Reason.NOT_FOUND),
    ),
    Operation(
        "POST",
        "/v1/keys/{key_id}/rotate",
        "Give a person's key another secret",
        {200: "NewKey"},
        _ADMIN,
        endings=(Reason.CONFLICT,),
    ),
    Operation("DELETE", "/v1/keys/{key_id}", "End a person's key", {204: ""}, _ADMIN),
    Operation(
        "POST",
        "/v1/store-changes",
        "Put on record what a surface changes in a store: `asked` before it is done, then how it ended",
        {201: "StoreChangeRecord"},
        _ADMIN,
        body="StoreChange",
    ),
    *(operation for path in MCP_PATHS for operation in _mcp(path)),
    Operation("GET", PATH, "This document", {200: "Document"}),
    Operation("GET", "/healthz", "Whether the gateway serves", {200: "Health"}),
    Operation(
        "GET",
        "/readyz",
        "Whether calls would be recorded and every tool is served; of one part, if it is named",
        {200: "Ready", 503: "Ready"},
        query=("part",),
        endings=(Reason.INVALID_ARGUMENT,),
    ),
)

_WANTED = {"type": "string", "minLength": 1, "maxLength": 200}
_QUERY: Mapping[str, Mapping[str, Any]] = {
    "after": {**WHOLE, "maximum": 2**62, "default": 0},
    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 100},
    "part": {"type": "string", "enum": ["policy", "journal", "upstreams", "tools"]},
    "state": {"type": "string"},
    "before": {**WHOLE, "maximum": 2**62, "description": "Records before this number; 0: from the newest on."},
    **dict.fromkeys(("kind", "tool", "session_id", "incident"), _WANTED),
    "person": {
        **_WANTED,
        "description": "The name or the id of keys: their records, and those of the sessions that they opened.",
    },
    "mark": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "Answer once there is another."},
}


async def show(request: Request) -> Response:
    """The route of the document: it describes the application that serves it."""
    return json_response(document_of(request.app.routes))


def document_of(served: Iterable[BaseRoute]) -> dict[str, Any]:
    """The document of the operations that `served` really has."""
    methods = {(method, route.path) for route in served if isinstance(route, Route) for method in route.methods or ()}
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        if (operation.method, operation.path) in methods:
            paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sentinel RAG gateway",
            "version": __version__,
            "description": "Every tool call is authenticated, labelled, judged and recorded here; it runs elsewhere.",
        },
        "paths": paths,
        "components": {
            "schemas": {**SCHEMAS, "Document": {"type": "object", "required": ["openapi", "paths"]}},
            "securitySchemes": {KEY: {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]
    parameters += [{"name": name, "in": "query", "schema": dict(_QUERY[name])} for name in operation.query]
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()} {operation.path}",
        "summary": operation.summary,
        "responses": {
            **{
                str(status): _problem(status, reasons, operation.problem)
                for status, reasons in operation.reasons().items()
            },
            **{str(status): _answer(status, schema, operation.streams) for status, schema in operation.answers.items()},
        },
        # Scopes of one key are alternatives, so each is a requirement of its own.
        "security": [{KEY: [scope.value]} for scope in operation.scopes],
    }
    parameters += [{"name": name, "in": "header", "schema": {"type": "string"}} for name in operation.headers]
    if parameters:
        described["parameters"] = parameters
    if operation.body:
        described["requestBody"] = {
            "required": operation.body_required,
            "content": {"application/json": {"schema": ref(operation.body)}},
        }
    return described


def _answer(status: int, schema: str, streams: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if schema:
        answer["content"] = {"application/json": {"schema": ref(schema)}}
        if streams:
            answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return answer


def _problem(status: int, reasons: Sequence[Reason], schema: str) -> dict[str, Any]:
    problem = {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(reasons)}",
        "content": {"application/json": {"schema": ref(schema)}},
    }
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        seconds = {"type": "integer", "minimum": 1}
        problem["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": seconds}}
    return problem
