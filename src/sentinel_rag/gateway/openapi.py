"""The OpenAPI 3.1 document of the gateway: which operations there are, who may call them and how each can end.

`openapi.yaml` is the one place where that is written down, with the schemas of all bodies; the document is made from
it for the routes that this gateway serves, and tests hold routes, statuses and bodies to it. It is served without a
key: it says nothing that the documentation does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from sentinel_rag import __version__
from sentinel_rag.contracts.labels import Integrity, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy.model import Effect
from sentinel_rag.gateway.responses import HTTP_STATUS, json_response
from sentinel_rag.gateway.store import Scope

Schema = Mapping[str, Any]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DATA: Mapping[str, Any] = yaml.load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"),
    Loader=_LOADER,  # noqa: S506  # either is a safe one, and the file is ours
)
_SIMPLE: Mapping[str, Schema] = {
    "text": {"type": "string"},
    "text or null": {"type": ["string", "null"]},
    "count": {"type": "integer", "minimum": 0},
    "integer or null": {"type": ["integer", "null"]},
    "flag": {"type": "boolean"},
    "object": {"type": "object"},
    "time": {"type": "string", "format": "date-time"},
    "any": {},
}
_VALUES: Mapping[str, Sequence[str]] = {
    "Sensitivity": [level.name for level in Sensitivity],
    "Integrity": [integrity.name for integrity in Integrity],
    "Effect": [effect.value for effect in Effect],
    "Reason": [reason.value for reason in Reason],
}
_OF_JSON_SCHEMA = frozenset({"type", "enum", "const", "oneOf"})
"""A map with one of these is JSON Schema already; any other names the fields of a body."""


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(told: Any) -> Any:
    """The JSON schema of what `openapi.yaml` says of a body or a field."""
    if isinstance(told, str):
        return _SIMPLE[told] if told in _SIMPLE else ref(told)
    if isinstance(told, list):
        return {"type": "array", "items": _schema(told[0])}
    if not told.keys() & _OF_JSON_SCHEMA:
        fields = {name.removesuffix("?"): _schema(field) for name, field in told.items()}
        required = [name for name in told if not name.endswith("?")]
        return {
            "type": "object",
            "properties": fields,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }
    return {key: _PARTS[key](part) if key in _PARTS else part for key, part in told.items()}


_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "items": _schema,
    "oneOf": lambda several: [_schema(each) for each in several],
    "properties": lambda fields: {name: _schema(field) for name, field in fields.items()},
    "additionalProperties": lambda part: part if isinstance(part, bool) else _schema(part),
    "enum": lambda values: [value for each in values for value in _VALUES.get(each, [each])],
}
"""The parts of JSON Schema that hold schemas or enumerations themselves."""

SCHEMAS: Mapping[str, Schema] = {name: _schema(told) for name, told in _DATA["schemas"].items()}

PATH = "/v1/openapi.json"
KEY = "key"

Ending = Reason | tuple[Reason, int]
"""A reason, with the status where it is not the reason's own."""


def _endings(names: Iterable[str]) -> tuple[Ending, ...]:
    """Reasons by name, with a status of their own behind it, and the groups of them."""
    found: list[Ending] = []
    for name in names:
        reason, _, status = name.partition(" ")
        if name in _DATA["endings"]:
            found += _endings(_DATA["endings"][name])
        else:
            found.append((Reason(reason), int(status)) if status else Reason(reason))
    return tuple(found)


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
            *_endings(["a key"] if self.scopes else []),
            *_endings(["a body"] if self.body else []),
            *_endings(["anything"]),
        )
        found: dict[int, list[Reason]] = {}
        for ending in endings:
            reason, status = ending if isinstance(ending, tuple) else (ending, HTTP_STATUS[ending])
            if reason not in found.setdefault(status, []):
                found[status].append(reason)
        return {status: tuple(found[status]) for status in sorted(found)}


OPERATIONS: tuple[Operation, ...] = tuple(
    Operation(
        *place.split(" "),
        **{
            **row,
            "scopes": tuple(map(Scope, row.get("scopes", ()))),
            "query": tuple(row.get("query", ())),
            "headers": tuple(row.get("headers", ())),
            "endings": _endings(row.get("endings", ())),
        },
    )
    for place, row in _DATA["operations"].items()
)


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
    parameters += [{"name": name, "in": "query", "schema": _schema(_DATA["query"][name])} for name in operation.query]
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
