"""Requests made from the API's own OpenAPI document: each ends as the document says, and none in a fault of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from running_stores import running_stores
from running_web import RunningWeb, running_web

from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.surfaces.users import Role
from sentinel_rag.surfaces.web import PersonLimits
from sentinel_rag.surfaces.web._app import REFUSALS
from sentinel_rag.surfaces.web.turns.events import TYPES
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

SEED = 20_261_128
OPERATIONS = [
    "POST /chat",
    "GET /turns/{turn_id}",
    "DELETE /turns/{turn_id}",
    "GET /turns/{turn_id}/events",
    "GET /turns/{turn_id}/evidence/{number}",
    "PUT /turns/{turn_id}/opinion",
    "DELETE /turns/{turn_id}/opinion",
    "GET /conversations",
    "GET /conversations/{session_id}",
    "GET /conversations/{session_id}/export",
    "GET /reports",
    "GET /usage",
    "GET /state",
    "GET /conversations/{session_id}/requests",
    "PATCH /conversations/{session_id}",
    "POST /conversations/{session_id}/clear",
    "DELETE /conversations/{session_id}",
    "GET /approvals",
    "GET /approvals/{approval_id}",
    "POST /approvals/{approval_id}/decision",
    "GET /audit",
    "GET /audit/{audit_id}",
    "POST /audit/verify",
    "GET /policy",
    "POST /policy/explain",
    "GET /knowledge/playbooks",
    "PUT /knowledge/playbooks",
    "DELETE /knowledge/playbooks",
    "POST /knowledge/incidents",
    "GET /data",
    "PUT /data",
    "GET /data/watchlists",
    "PUT /data/watchlists",
    "DELETE /data/watchlists",
    "GET /tools",
    "POST /tools/{tool}",
    "POST /sign-in",
    "GET /sign-in/once/{token}",
    "POST /sign-in/once/{token}",
    "GET /sign-in/oidc",
    "GET /sign-in/oidc/callback",
    "GET /users",
    "POST /users",
    "PUT /users/{name}",
    "DELETE /users/{name}",
    "POST /users/{name}/reset",
    "GET /users/{name}/tokens",
    "DELETE /users/{name}/tokens/{token_id}",
    "POST /sign-in/invitation",
    "GET /session",
    "DELETE /session",
    "DELETE /sessions",
    "PUT /password",
    "GET /tokens",
    "POST /tokens",
    "DELETE /tokens/{token_id}",
]
NEVER_FULFILLED = (
    "/sign-in",
    "/password",
    "/tokens/{token_id}",
    "/knowledge/playbooks",
    "/data",
    "/data/watchlists",
    "/users/{name}",
)
"""What takes a secret or a name that nobody guesses, or an id that a generated request uses up."""


@pytest.fixture(scope="module")
def wide(web_gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """A surface whose rates no test reaches."""
    often = Rate(1_000_000, 60.0)
    limits = PersonLimits(requests=often, questions=often, attempts=often, all_attempts=often)
    with (
        running_stores(tmp_path_factory.mktemp("home")) as stores,
        running_web(web_gateway, tmp_path_factory.mktemp("wide"), limits=limits, stores=stores) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def waiting(wide: RunningWeb) -> str:
    """A call that waits: an agent may ask a few times only."""
    return str(wide.person("fuzz-asker").ask('call isolate {"host": "ws-1"}')["answer"].split()[-1])


def test_every_operation_is_tried(wide: RunningWeb) -> None:
    document = wide.stranger().get("/openapi.json").body
    served = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    assert served == set(OPERATIONS)


def test_every_body_and_refusal_of_the_document_has_an_example(wide: RunningWeb) -> None:
    schemas = wide.stranger().get("/openapi.json").body["components"]["schemas"]
    bodies = ("ApprovalDecision", "ChatRequest", "Credentials", "Explain", "Look", "NewToken", "Rename")
    for name in (*bodies, "Looked", "Refusal"):
        assert any("examples" in str(field) for field in schemas[name]["properties"].values()), name
    for path, item in wide.stranger().get("/openapi.json").body["paths"].items():
        for operation in item.values():
            assert operation["responses"]["401"]["content"]["application/json"]["schema"]["$ref"].endswith("/Refusal")
            assert operation["summary"], path


def test_every_route_event_and_status_is_in_the_page_of_the_api() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "http-api.md").read_text()
    for operation in OPERATIONS:
        method, _, path = operation.partition(" ")
        lines = [line for line in page.splitlines() if f"{path}`" in line and line.startswith("| `")]
        assert any(method in line.split("|")[1] for line in lines), operation
    assert [kind for kind in TYPES if f"| `{kind}` |" not in page] == []
    assert [status for status in REFUSALS if str(status) not in page] == []


@pytest.mark.requirement("SURF-3")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_generated_requests_end_as_the_document_says(wide: RunningWeb, waiting: str, operation: str) -> None:
    import schemathesis  # here, because every worker of the suite would pay for it at module level
    from schemathesis.checks import CHECKS

    method, _, path = operation.partition(" ")
    described = schemathesis.openapi.from_dict(wide.stranger().get("/openapi.json").body)[path][method]
    person = wide.person("fuzz", *Role)
    if (method, path) == ("DELETE", "/session"):
        person = wide.browser("fuzz")
    if (method, path) == ("DELETE", "/sessions"):
        person = wide.browser("fuzz-everywhere")
    answer = person.ask("say severity=High")
    known = {
        "turn_id": answer["turn_id"],
        "session_id": answer["session_id"],
        "number": 1,
        "audit_id": wide.gateway.records()[-1]["audit_id"],
        "approval_id": waiting,
        "tool": "read_alert",
    }
    checks = [
        CHECKS.get_one(name)
        for name in (
            *("not_a_server_error", "status_code_conformance"),
            *("content_type_conformance", "response_schema_conformance"),
        )
    ]
    headers = {"Cookie": person.cookie, "X-CSRF-Token": person.csrf}
    seen: Counter[int] = Counter()

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=described.as_strategy(), existing=hypothesis.strategies.booleans())
    def generated(case: Any, existing: bool) -> None:
        if existing:
            case.path_parameters = {
                name: known.get(name, value) for name, value in (case.path_parameters or {}).items()
            }
        for generated_secret in (case.headers, case.cookies):  # it makes up sign-ins too
            for name in ("Authorization", "sentinel"):
                generated_secret.pop(name, None)
        response = case.call(base_url=wide.url, headers=headers, allow_redirects=False, timeout=WAIT_S)
        seen[response.status_code] += 1
        case.validate_response(response, checks=checks)

    generated()
    if not path.startswith(NEVER_FULFILLED):
        assert any(status < 300 for status in seen), seen
