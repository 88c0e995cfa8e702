"""The OpenAPI 3.1 document of the gateway: which operations there are, who may call them and how each can end.

The list below is the one place where that is written down; the document is made from it for the routes that this
gateway serves, and tests hold routes, statuses and bodies to it. It is served without a key: it says nothing that
the documentation does not.

The JSON schemas of the gateway's bodies, by name, as the OpenAPI document refers to them. Data only.
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
from sentinel_rag.contracts.labels import Integrity, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.downstream.endpoint import PATHS as MCP_PATHS
from sentinel_rag.gateway.policy.model import Effect
from sentinel_rag.gateway.request_body import MAX_TOOL_NAME
from sentinel_rag.gateway.responses import HTTP_STATUS, json_response
from sentinel_rag.gateway.store import Scope

Schema = Mapping[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def exactly(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    """An object with these properties and no others, all but `optional` required."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
WHOLE: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}

POLICY_STATE: Mapping[str, Schema] = {
    "policy": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "source": TEXT,
    "loaded_at": {"type": ["string", "null"], "format": "date-time"},
    "refused": {
        "oneOf": [{"type": "null"}, exactly({"sha256": MAYBE_TEXT, "problems": listed(TEXT), "at": TIME})],
        "description": "The newest version of the file, if it did not load.",
    },
}
DEFINITION = exactly({"sha256": TEXT, "definition": OBJECT})

NAMED = listed(exactly({"kind": TEXT, "text": TEXT}))

NAMES: Schema = {"type": "object", "description": "Names of keys in these records, by their ids."}

SCHEMAS: Mapping[str, Schema] = {
    "Label": exactly(
        {
            "sensitivity": {"enum": [level.name for level in Sensitivity]},
            "integrity": {"enum": [integrity.name for integrity in Integrity]},
        }
    ),
    "Execute": exactly(
        {
            "session_id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
            "tool_name": {"type": "string", "minLength": 1, "maxLength": MAX_TOOL_NAME},
            "args": {"type": "object", "description": "What the tool takes; a hidden value is passed by its handle."},
            "if_effect": {
                "enum": [None, *(effect.value for effect in Effect)],
                "description": "Run only if this is the tool's effect; else 409, and nothing ran.",
            },
        },
        optional=("if_effect",),
    ),
    "Policy": exactly({**POLICY_STATE, "text": MAYBE_TEXT}),
    "PolicyReloaded": exactly({"status": {"enum": ["loaded", "unchanged"]}, **POLICY_STATE}),
    "PolicyNotLoaded": exactly(
        {"detail": TEXT, "status": {"const": "error"}, "reason": {"const": "invalid_argument"}, **POLICY_STATE}
    ),
    "Executed": exactly({"result": ANY, "status": {"const": "success"}, "audit_id": TEXT}),
    "Problem": {
        **exactly(
            {
                "detail": {"type": "string", "description": "One sentence for people; it may change."},
                "status": {"enum": ["denied", "error"]},
                "reason": {"enum": [reason.value for reason in Reason], "description": "Stable, for programs."},
                "rule_id": MAYBE_TEXT,
                "audit_id": {"type": "string", "description": "Where the journal holds it; missing if nothing does."},
                "approval_id": {"type": "string", "description": "The approval that waits for a person."},
                "decided_by": {
                    "const": "asker",
                    "description": "The person who asked confirms it with their own key.",
                },
                "at_yes": {"const": "run", "description": "The call runs as soon as it is approved."},
                "note": TEXT,
                "error": ref("ToolError"),
            },
            optional=("rule_id", "audit_id", "approval_id", "decided_by", "at_yes", "note", "error"),
        ),
    },
    "ToolError": exactly(
        {
            "kind": {"const": "error"},
            "code": TEXT,
            "message": TEXT,
            "next_step": TEXT,
            "field": TEXT,
            "allowed": listed(TEXT),
            "retry_possible": FLAG,
            "retry_after_s": {"type": ["number", "null"]},
            "line": {"type": ["integer", "null"]},
            "position": {"type": ["integer", "null"]},
            "problems": listed(
                exactly(
                    {
                        "code": TEXT,
                        "message": TEXT,
                        "line": {"type": ["integer", "null"]},
                        "column": {"type": ["integer", "null"]},
                        "length": {"type": ["integer", "null"]},
                        "nearest": listed(TEXT),
                    }
                )
            ),
        }
    ),
    "Tools": exactly(
        {
            "tools": listed(
                exactly(
                    {
                        "name": TEXT,
                        "description": TEXT,
                        "parameters": {"type": "object", "description": "A JSON schema."},
                        "aliases": listed(TEXT),
                        "effect": {"enum": ["read", "write", "external"]},
                        "refused_now": {
                            "type": "boolean",
                            "description": "With session_id: whether every call of it would be refused there now.",
                        },
                        "reason": {"enum": [Reason.SINK_LABEL.value]},
                        "why": TEXT,
                    },
                    optional=("refused_now", "reason", "why"),
                )
            ),
            "policy": {"type": "string", "description": "SHA-256 of the policy file in force."},
        }
    ),
    "SessionOpened": exactly({"session_id": TEXT, "context": ref("Label")}),
    "Session": exactly(
        {
            "session_id": TEXT,
            "context": ref("Label"),
            "closed": FLAG,
            "raised_by": listed(exactly({"audit_id": TEXT, "tool": TEXT, "label": ref("Label"), "at": TIME})),
            "named": listed(exactly({"kind": TEXT, "text": TEXT, "by": TEXT})),
        },
        optional=("named",),
    ),
    "Words": exactly(
        {
            "text": {"type": "string", "description": "What the person wrote, as it was written."},
            "chosen": {"type": "string", "description": "The option shown that the words pick; it names nothing."},
        },
        optional=("chosen",),
    ),
    "WordsNamed": exactly({"named": NAMED}),
    "Plan": exactly(
        {
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": 50,
                "items": exactly({"tool": TEXT, "args": OBJECT}),
                "description": "Calls; an argument may be a slot, see docs/policy.md.",
            }
        }
    ),
    "PlanTaken": exactly({"steps": {"type": "integer", "minimum": 1}}),
    "Handles": exactly({"handles": {**listed(TEXT), "maxItems": 500}}),
    "HandleValues": exactly({"values": OBJECT, "refused": listed(TEXT)}),
    "AuditEntry": exactly(
        {
            "record": {"type": "object", "description": "As it was hashed; docs/audit.md lists the kinds."},
            "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "outcome": {"enum": ["success", "error", "unknown", None]},
        }
    ),
    "AuditPage": exactly(
        {
            "records": listed(ref("AuditEntry")),
            "names": NAMES,
            "next_after": WHOLE,
            "next_before": {"type": ["integer", "null"], "description": "With `before`; null: there are no more."},
        },
        optional=("next_after", "next_before"),
    ),
    "SessionRecords": exactly(
        {
            "records": listed(exactly({"record": {"type": "object"}, "outcome": {"type": ["string", "null"]}})),
            "whole": {"type": "boolean", "description": "False: the session has more than was looked at."},
            "head": exactly({"seq": WHOLE, "hash": {"type": "string"}}),
        }
    ),
    "AuditRecords": exactly({"records": listed(ref("AuditEntry")), "names": NAMES}),
    "Approval": {
        "type": "object",
        "description": "The exact call, its labels and what raised them; docs/approvals.md explains each field.",
        "required": ["approval_id", "state", "may_decide"],
    },
    "ApprovalPage": exactly(
        {
            "approvals": listed(ref("Approval")),
            "left_off": WHOLE,
            "pending_by_tool": {"type": "object", "additionalProperties": WHOLE},
            "mark": {"type": "string", "description": "For the next request, to wait for a change."},
        }
    ),
    "Comment": exactly({"comment": {"type": "string", "maxLength": 2_000}}, optional=("comment",)),
    "Decision": exactly(
        {
            "approval_id": TEXT,
            "decision": {"enum": ["approve", "deny"]},
            "token": {"type": "string", "description": "The one of the notice."},
            "actor": {"type": "string", "maxLength": 200},
            "comment": {"type": "string", "maxLength": 2_000},
        },
        optional=("actor", "comment"),
    ),
    "Decided": exactly({"approval_id": TEXT, "state": TEXT}),
    "Pin": exactly(
        {
            "server": TEXT,
            "tool": TEXT,
            "state": {"enum": ["pinned", "quarantined"]},
            "vouched": FLAG,
            "accepted": DEFINITION,
            "waiting": {"oneOf": [{"type": "null"}, DEFINITION]},
        }
    ),
    "Pins": exactly({"pins": listed(ref("Pin"))}),
    "Accept": exactly({"sha256": {"type": "string", "description": "The hash of the definition that waits."}}),
    "KeyTerms": exactly(
        {
            "name": TEXT,
            "scopes": listed({"enum": ["user", "approve", "audit", "admin"]}),
            "clearance": {"enum": [level.name for level in Sensitivity]},
            "readers": listed(TEXT),
            "replaces": {**MAYBE_TEXT, "description": "The key that ends with this one's beginning."},
        }
    ),
    "NewKey": exactly({"key": {**TEXT, "description": "Its text, shown this once."}, "key_id": TEXT}),
    "StoreChange": exactly(
        {
            "store": TEXT,
            "change": {"enum": ["put", "removed", "imported", "read"]},
            "name": TEXT,
            "state": {"enum": ["asked", "done", "refused"]},
            "bytes": {"type": ["integer", "null"], "minimum": 0},
            "sha256": {**MAYBE_TEXT, "description": "64 hexadecimal digits, of a file."},
            "audit_id": {**MAYBE_TEXT, "description": "That of the record before; null for the first."},
        }
    ),
    "StoreChangeRecord": exactly({"audit_id": TEXT}),
    "McpRequest": {
        "type": "object",
        "description": "A JSON-RPC 2.0 message of MCP, revision 2025-03-26 to 2025-11-25 or 2026-07-28.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 256}]},
            "method": {"enum": ["initialize", "notifications/initialized", "ping", "tools/list", "tools/call"]},
            "params": OBJECT,
        },
        "required": ["jsonrpc", "method"],
        "additionalProperties": False,
    },
    "McpMessage": {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}, "id": ANY, "result": OBJECT, "error": OBJECT},
        "required": ["jsonrpc", "id"],
        "additionalProperties": False,
    },
    "McpProblem": {"oneOf": [ref("Problem"), ref("McpMessage")]},
    "Health": exactly({"status": {"const": "ok"}}),
    "Ready": {
        "type": "object",
        "properties": {
            "status": {"enum": ["ready", "not_ready"]},
            "checks": {"type": "object", "additionalProperties": TEXT},
        },
        "required": ["status", "checks"],
    },
}


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
