"""The OpenAPI document says of every route who may call it and how it can end; what it says is what is served."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.openapi import OPERATIONS, PATH, document_of
from sentinel_rag.gateway.policy import FixedPolicy, Policy
from sentinel_rag.gateway.request_body import MAX_TOOL_NAME
from sentinel_rag.gateway.responses import HTTP_STATUS
from sentinel_rag.gateway.store import Scope, open_state
from sentinel_rag_testing.running_gateway import RunningGateway

ONLY_IF_CONFIGURED = {
    ("POST", "/v1/approvals/{approval_id}/decision"),  # with a webhook that decides
}


@pytest.fixture(scope="module")
def app(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with open_state(tmp_path_factory.mktemp("state")) as state:
        yield create_app(policies=FixedPolicy(shipped_policy), keys=state.keys, state=state, upstreams={})


def served(app: Starlette) -> set[tuple[str, str]]:
    return {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }


def test_every_route_is_described_and_nothing_else(app: Starlette) -> None:
    described = {(operation.method, operation.path) for operation in OPERATIONS}
    assert served(app) - described == set()
    assert described - served(app) <= ONLY_IF_CONFIGURED
    assert len(described) == len(OPERATIONS)
    paths = document_of(app.routes)["paths"]
    assert {(method.upper(), path) for path, found in paths.items() for method in found} == served(app)


@pytest.mark.requirement("GATE-1")
def test_every_reason_stands_somewhere_with_its_own_status(app: Starlette) -> None:
    named = {
        (reason, status)
        for operation in OPERATIONS
        for status, reasons in operation.reasons().items()
        for reason in reasons
    }
    unnamed = {reason.value for reason, status in HTTP_STATUS.items() if (reason, status) not in named}
    # Said where no operation is: a path or a method that does not exist.
    assert unnamed == {"method_not_allowed"}


def test_every_operation_says_who_may_call_it() -> None:
    without_key = {operation.path for operation in OPERATIONS if not operation.scopes}
    assert without_key == {PATH, "/healthz", "/readyz", "/v1/approvals/{approval_id}/decision"}
    for operation in OPERATIONS:
        statuses = operation.reasons()
        assert (401 in statuses) == (403 in statuses) == bool(operation.scopes) or operation.path.endswith("/decision")
        assert ((413 in statuses) and (415 in statuses) and (408 in statuses)) == bool(operation.body)
        assert {414, 421, 431, 500} <= statuses.keys()
        assert not set(operation.answers) & {status for status in statuses if status < 500}


def test_the_document_is_valid_and_every_reference_leads_somewhere(app: Starlette) -> None:
    document = document_of(app.routes)
    import jsonschema

    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"]
    assert document["openapi"].startswith("3.1")
    execute = document["components"]["schemas"]["Execute"]["properties"]
    assert execute["tool_name"]["maxLength"] == MAX_TOOL_NAME
    identifiers = [found["operationId"] for each in document["paths"].values() for found in each.values()]
    assert len(set(identifiers)) == len(identifiers)


def test_it_is_served_without_a_key_and_names_no_secret(gateway: RunningGateway) -> None:
    answer = gateway.request("GET", PATH)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.body["paths"]["/v1/proxy-execute"]["post"]["security"] == [{"key": [Scope.EXECUTE.value]}]
    for secret in (gateway.key, gateway.auditor, gateway.executor.token, str(gateway.state.database.path.parent)):
        assert secret not in answer.content.decode()


def test_what_is_answered_fits_what_the_document_says(gateway: RunningGateway) -> None:
    import jsonschema

    document = gateway.request("GET", PATH).body
    requests: list[tuple[str, str, str, str | None, bytes | None]] = [
        ("POST", "/v1/sessions", "/v1/sessions", gateway.key, None),
        ("GET", "/v1/sessions/{session_id}", "/v1/sessions/s", gateway.key, None),
        ("GET", "/v1/tools", "/v1/tools", gateway.key, None),
        ("GET", "/v1/tools", "/v1/tools?session_id=s", gateway.key, None),
        ("GET", "/v1/tools", "/v1/tools?session_id=none", gateway.key, None),
        ("GET", "/v1/audit", "/v1/audit", gateway.auditor, None),
        ("GET", "/v1/audit", "/v1/audit?limit=x", gateway.auditor, None),
        ("GET", "/v1/audit/{audit_id}", "/v1/audit/none", gateway.auditor, None),
        ("GET", "/healthz", "/healthz", None, None),
        ("GET", "/readyz", "/readyz", None, None),
        ("POST", "/v1/proxy-execute", "/v1/proxy-execute", gateway.key, b"{"),
        ("POST", "/v1/proxy-execute", "/v1/proxy-execute", None, b"{"),
        ("DELETE", "/v1/sessions/{session_id}", "/v1/sessions/s", gateway.auditor, None),
    ]
    for tool, arguments in [("list_tables", {}), ("nothing", {}), ("query_incidents", {"limit": "x"})]:
        body = json.dumps({"session_id": "s", "tool_name": tool, "args": arguments}).encode()
        requests.insert(0, ("POST", "/v1/proxy-execute", "/v1/proxy-execute", gateway.key, body))
    statuses = set()
    for method, pattern, path, key, body in requests:
        answer = gateway.request(method, path, key=key, body=body)
        statuses.add(answer.status)
        described = document["paths"][pattern][method.lower()]["responses"][str(answer.status)]
        schema = described["content"]["application/json"]["schema"]
        jsonschema.validate(answer.body, {**schema, "components": document["components"]})
    assert statuses == {200, 201, 401, 403, 404, 422}
