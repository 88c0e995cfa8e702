"""Attacker controls: every byte of every request to every route, in any number.

Wanted: an answer of 5xx, a body that costs more than it is long, memory that grows with what was sent. Mutated bodies
go to the parser by the thousand and to a real server; requests are generated for each operation of the OpenAPI
document, right ones and wrong ones. The seeds are fixed; `bench/bench_fuzz.py` runs far more of the same.
"""

from __future__ import annotations

import gc
import http.client
import json
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from tests.support.body_mutations import VALID, mutated_bodies
from whole_gateway import whole_gateway

from law_examples import examples
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.gateway.openapi import OPERATIONS, PATH
from sentinel_rag.gateway.request_body import ExecuteRequest, MalformedBody, parse_execute
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway
from waiting import WAIT_S

SEED = 20_261_128
BODIES = examples(20_000, 2_000)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with (
        FakeToolServer().running() as executor,
        whole_gateway(tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


def read(body: bytes) -> ExecuteRequest | None:
    try:
        return parse_execute(body)
    except MalformedBody:
        return None


@pytest.mark.requirement("GATE-6")
def test_any_of_many_mutated_bodies_is_read_one_way_or_refused() -> None:
    outcomes: Counter[str] = Counter()
    for body in mutated_bodies(BODIES, SEED):
        wish = read(body)
        outcomes["refused" if wish is None else "read"] += 1
        if wish is not None:
            canonical = canonical_json(
                {"session_id": wish.session_id, "tool_name": wish.tool_name, "args": dict(wish.args)}
            )
            assert read(canonical) == wish
    assert all(read(body) is not None for body in VALID)
    assert min(outcomes.values()) > BODIES / 20  # the mutations reach both sides


def test_the_work_for_a_body_is_bounded_by_its_length() -> None:
    """Counted in calls of functions, Python's and C's: a loop that looks at bytes again and again would show."""
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for body in mutated_bodies(BODIES // 10, SEED + 1):
        calls = 0
        sys.setprofile(count)
        try:
            read(body)
        finally:
            sys.setprofile(None)
        assert calls <= 60 + 4 * len(body), body[:200]


def test_memory_does_not_grow_with_what_was_sent() -> None:
    # Only what was made on behalf of the reading: other tests' servers still run in this process, and tell their
    # webhook for minutes of every call that waits.
    kept = [tracemalloc.Filter(True, "*request_body.py", all_frames=True)]

    def a_round(seed: int) -> int:
        for body in mutated_bodies(400, seed):
            read(body)
        gc.collect()
        return sum(found.size for found in tracemalloc.take_snapshot().filter_traces(kept).statistics("filename"))

    tracemalloc.start(8)
    try:
        a_round(SEED)
        first = a_round(SEED + 2)
        rounds = [a_round(SEED + 3 + number) for number in range(3)]
    finally:
        tracemalloc.stop()
    # What is kept of bodies grows with every round. One round alone may catch another test's server at work.
    assert min(later - earlier for earlier, later in pairwise([first, *rounds])) < 4_000


@pytest.mark.requirement("GATE-6")
def test_a_real_server_answers_each_mutated_body_below_500(fuzzed: RunningGateway) -> None:
    address = urlsplit(fuzzed.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=WAIT_S)
    statuses: Counter[int] = Counter()
    headers = {"X-API-Key": fuzzed.key, "Content-Type": "application/json"}
    for body in mutated_bodies(BODIES // 10, SEED + 10):
        connection.request("POST", "/v1/proxy-execute", body=body, headers=headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        statuses[response.status] += 1
        assert response.status < 500, (answer, body[:300])
        assert response.status == 200 or answer["reason"]
    connection.close()
    assert statuses.keys() <= {200, 403, 404, 409, 413, 422, 429}  # a tool's own rate holds here too
    assert statuses[422] > BODIES / 40
    assert statuses[200] + statuses[403] > BODIES / 200
    assert fuzzed.request("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "operation", [f"{operation.method} {operation.path}" for operation in OPERATIONS], ids=lambda name: str(name)
)
def test_generated_requests_end_as_the_document_says(fuzzed: RunningGateway, operation: str) -> None:
    import schemathesis  # here, because every worker of the suite would pay for it at module level
    from schemathesis.checks import CHECKS

    method, _, path = operation.partition(" ")
    document = fuzzed.request("GET", PATH).body
    schema = schemathesis.openapi.from_dict(document)
    described = schema[path][method]
    keys = fuzzed.state.keys
    # An agent, its person and an approver of this test's own, with one of everything that an id can name.
    agent, info = keys.create([Scope.EXECUTE])
    person = keys.create([Scope.USER], for_key=info.key_id)[0]
    session = fuzzed.request("POST", "/v1/sessions", key=person).body["session_id"]
    waiting = fuzzed.call("run_kql_query", {"template": "raw_signins"}, session_id=session, key=agent).body
    known = {"session_id": session, "audit_id": waiting["audit_id"], "approval_id": waiting["approval_id"]}
    known["key_id"] = keys.create([Scope.USER])[1].key_id
    if path.endswith("/lift"):
        denied = f"/v1/approvals/{waiting['approval_id']}/deny"
        assert fuzzed.request("POST", denied, key=keys.create([Scope.APPROVE])[0]).status == 200
    scopes = next(each.scopes for each in OPERATIONS if (each.method, each.path) == (method, path))
    # What waits is decided by an approver, and a person's session is ended by the person.
    anybody = Scope.APPROVE in scopes or not {Scope.EXECUTE, Scope.USER} & {*scopes}
    its_own = Scope.EXECUTE in scopes and operation != "DELETE /v1/sessions/{session_id}"
    key = keys.create([*Scope])[0] if anybody else agent if its_own else person
    checks = [CHECKS.get_one(name) for name in ("not_a_server_error", "status_code_conformance")]
    checks += [CHECKS.get_one(name) for name in ("content_type_conformance", "response_schema_conformance")]
    seen: Counter[int] = Counter()

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=examples(40, 8),
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
        response = case.call(base_url=fuzzed.url, headers={"X-API-Key": key}, timeout=WAIT_S)
        seen[response.status_code] += 1
        case.validate_response(response, checks=checks)

    generated()
    # A decision needs a signature, a call and a step of a plan a tool that there is, a pin a definition that waits, the
    # end of an MCP session one that is open, a new key what its giver has.
    if not path.endswith(("decision", "proxy-execute", "/plan", "{tool}")) and operation not in (
        "POST /v1/look",
        "POST /v1/keys",
        "DELETE /mcp",
        "DELETE /mcp/",
    ):
        assert any(status < 300 for status in seen), seen
    assert all(status < 500 or path == "/readyz" for status in seen)
