"""Attacker controls: the key header of a request to any route, and knows the ids of live keys and of others' things.

Wanted: a route that forgets to ask. Every route of the application is tried with no key, with every kind of wrong one,
with each scope that it does not take and with a right key of another tenant; each is refused in its own way, on record,
and no tool server hears of it. A route that is not in the table below fails the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route
from whole_gateway import WEBHOOK, book_of, whole_gateway

from sentinel_rag.audit import JournalReader
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway

EXECUTE, USER, APPROVE, AUDIT, ADMIN = Scope.EXECUTE, Scope.USER, Scope.APPROVE, Scope.AUDIT, Scope.ADMIN


@dataclass(frozen=True)
class Entry:
    """How a route is asked, who may, and what a right key gets: its own, and one of another tenant."""

    scopes: tuple[Scope, ...]
    body: Any = None
    own: tuple[int, ...] = (200,)
    others: tuple[int, str] | None = None


CALL = {"session_id": "theirs", "tool_name": "list_tables", "args": {}}
TABLE: dict[tuple[str, str], Entry] = {
    ("POST", "/v1/proxy-execute"): Entry((EXECUTE,), CALL, (200,), (404, "not_found")),
    ("GET", "/v1/tools"): Entry((EXECUTE,)),
    ("POST", "/v1/look"): Entry((USER,), {**CALL, "session_id": "a-look"}, (200,)),
    ("GET", "/v1/look"): Entry((USER,)),
    ("POST", "/v1/sessions"): Entry((EXECUTE, USER), None, (201, 409)),
    ("GET", "/v1/sessions/{session_id}"): Entry((EXECUTE, USER), None, (200,), (404, "not_found")),
    ("DELETE", "/v1/sessions/{session_id}"): Entry((EXECUTE, USER), None, (204,), (404, "not_found")),
    ("GET", "/v1/sessions/{session_id}/records"): Entry((USER,), None, (200,), (404, "not_found")),
    ("POST", "/v1/sessions/{session_id}/words"): Entry((USER,), {"text": "713"}, (200,), (404, "not_found")),
    ("POST", "/v1/sessions/{session_id}/plan"): Entry((USER,), {"steps": []}, (422,), (404, "not_found")),
    ("POST", "/v1/sessions/{session_id}/resolve"): Entry((USER,), {"handles": []}, (200,), (404, "not_found")),
    ("GET", "/v1/audit"): Entry((AUDIT,)),
    ("GET", "/v1/audit/{audit_id}"): Entry((AUDIT,), None, (404,)),
    ("GET", "/v1/approvals"): Entry((APPROVE, USER)),
    ("GET", "/v1/approvals/{approval_id}"): Entry((APPROVE, USER), None, (404,)),
    ("POST", "/v1/approvals/{approval_id}/approve"): Entry((APPROVE, USER), {}, (404,)),
    ("POST", "/v1/approvals/{approval_id}/deny"): Entry((APPROVE, USER), {}, (404,)),
    ("POST", "/v1/approvals/{approval_id}/lift"): Entry((APPROVE, USER), {}, (404,)),
    ("POST", "/v1/approvals/{approval_id}/decision"): Entry((), {}, (401,)),
    ("GET", "/v1/policy"): Entry((ADMIN,)),
    ("POST", "/v1/policy/reload"): Entry((ADMIN,)),
    ("GET", "/v1/pins"): Entry((ADMIN,)),
    ("POST", "/v1/pins/{server}/{tool}"): Entry((ADMIN,), {"sha256": "0" * 64}, (409,)),
    ("POST", "/v1/keys"): Entry(
        (ADMIN,), {"name": "", "scopes": ["execute"], "clearance": "LOW", "readers": [], "replaces": None}, (403,)
    ),
    ("POST", "/v1/keys/{key_id}/rotate"): Entry((ADMIN,), None, (404,)),
    ("DELETE", "/v1/keys/{key_id}"): Entry((ADMIN,), None, (404,)),
    ("POST", "/v1/store-changes"): Entry((ADMIN,), {"store": "nowhere"}, (422,)),
    ("POST", "/mcp"): Entry((EXECUTE, USER), {"jsonrpc": "2.0", "id": 1, "method": "initialize"}, (200,)),
    ("DELETE", "/mcp"): Entry((EXECUTE, USER), None, (400,)),
    ("POST", "/mcp/"): Entry((EXECUTE, USER), {"jsonrpc": "2.0", "id": 1, "method": "initialize"}, (200,)),
    ("DELETE", "/mcp/"): Entry((EXECUTE, USER), None, (400,)),
    ("GET", "/v1/openapi.json"): Entry(()),
    ("GET", "/healthz"): Entry(()),
    ("GET", "/readyz"): Entry((), None, (200, 503)),
}
KEYED = [place for place, entry in TABLE.items() if entry.scopes]
OWNED = [place for place, entry in TABLE.items() if entry.others]


@dataclass(frozen=True)
class Tenants:
    """A gateway with sessions of one tenant (agent and person) and keys of another."""

    gateway: RunningGateway
    routes: frozenset[tuple[str, str]]
    agent: str
    person: str
    stranger: str
    other_person: str

    def ask(self, method: str, path: str, key: str | None, **more: Any) -> HttpAnswer:
        content = TABLE[method, path].body
        body = None if content is None else json.dumps(content).encode()
        filled = path.replace("{session_id}", "theirs").replace("{audit_id}", "none").replace("{approval_id}", "none")
        return self.gateway.request(method, filled, key=key, body=body, **more)

    def record(self, answer: HttpAnswer) -> dict[str, Any]:
        reader = JournalReader(self.gateway.state.database.path)
        [entry] = reader.find(answer.body["audit_id"])
        return entry.record


@contextmanager
def tenants(folder: Path) -> Iterator[Tenants]:
    with FakeToolServer().running() as executor, whole_gateway(folder, executor) as gateway:
        keys = gateway.state.keys
        agent, info = keys.create([EXECUTE], name="agent of one")
        other, other_info = keys.create([EXECUTE], name="agent of another")
        person = keys.create([USER], name="person of one", for_key=info.key_id)[0]
        other_person = keys.create([USER], name="person of another", for_key=other_info.key_id)[0]
        policies = book_of(gateway.state, folder)
        app = create_app(policies=policies, keys=keys, state=gateway.state, upstreams={}, webhook=WEBHOOK)
        routes = frozenset(
            (method, route.path)
            for route in app.routes
            if isinstance(route, Route)
            for method in (route.methods or set()) - {"HEAD"}
        )
        yield Tenants(gateway, routes, agent, person, other, other_person)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with tenants(tmp_path_factory.mktemp("state")) as made:
        assert made.gateway.call("list_tables", {}, session_id="theirs", key=made.agent).status == 200
        yield made


def wrong_keys(gateway: RunningGateway) -> dict[str, tuple[str | None, str]]:
    """A header of every kind that opens nothing, and the state that its record names."""
    keys = gateway.state.keys
    good, info = keys.create([*Scope], for_key="agent")
    prefix, key_id, secret = good.split("_")
    revoked, revoked_info = keys.create([*Scope])
    keys.revoke(revoked_info.key_id)
    expired = keys.create([*Scope], expires_in=timedelta(microseconds=1))[0]
    superseded, rotated = keys.create([*Scope])
    keys.rotate(rotated.key_id)
    assert info.key_id == key_id
    return {
        "no key": (None, "unknown"),
        "empty": ("", "unknown"),
        "text": ("secret", "unknown"),
        "right id, wrong secret": (f"{prefix}_{key_id}_{'0' * 64}", "wrong_secret"),
        "wrong id, right secret": (f"{prefix}_{'0' * 12}_{secret}", "unknown"),
        "no secret": (f"{prefix}_{key_id}_", "unknown"),
        "upper case": (good.upper(), "unknown"),
        "blank behind": (good + " x", "unknown"),
        "two in one": (f"{good},{good}", "unknown"),
        "Bearer": (f"Bearer {good}", "unknown"),
        "cut": (good[:-1], "unknown"),
        "longer": (good + "0", "unknown"),
        "sql": (f"sr_' OR 1=1 --_{secret}", "unknown"),
        "huge": ("sr_" + "a" * 5_000, "unknown"),
        "latin letters": ("sr_\xe9\xff", "unknown"),
        "revoked": (revoked, "revoked"),
        "expired": (expired, "expired"),
        "superseded": (superseded, "superseded"),
    }


def test_every_route_is_in_the_table(two: Tenants) -> None:
    assert two.routes == TABLE.keys()


@pytest.mark.requirement("GATE-7")
@pytest.mark.parametrize(("method", "path"), KEYED, ids=lambda value: str(value))
def test_every_wrong_key_is_401_on_every_route_and_on_record(two: Tenants, method: str, path: str) -> None:
    before = len(two.gateway.executor.calls)
    for name, (key, state) in wrong_keys(two.gateway).items():
        answer = two.ask(method, path, key)
        assert (answer.status, answer.body["reason"], answer.body["status"]) == (401, "unauthenticated", "error"), name
        record = two.record(answer)
        assert (record["kind"], record["method"], record["route"]) == ("authentication_failed", method, path), name
        assert (record["key_state"], record["reason"]) == (state, "unauthenticated"), name
        assert (record["key_id"] is None) == (state == "unknown"), name
        assert not key or key not in json.dumps(record)
    assert len(two.gateway.executor.calls) == before


@pytest.mark.requirement("GATE-7")
@pytest.mark.parametrize(("method", "path"), KEYED, ids=lambda value: str(value))
def test_every_scope_that_a_route_does_not_take_is_403_on_record(two: Tenants, method: str, path: str) -> None:
    entry = TABLE[method, path]
    wrong = [scope for scope in Scope if scope not in entry.scopes]
    assert wrong
    before = len(two.gateway.executor.calls)
    for scopes in ([scope] for scope in wrong), [wrong]:
        for each in scopes:
            key, info = two.gateway.state.keys.create(each)
            answer = two.ask(method, path, key)
            assert (answer.status, answer.body["reason"], answer.body["status"]) == (403, "missing_scope", "denied")
            record = two.record(answer)
            assert (record["kind"], record["reason"]) == ("authentication_failed", "missing_scope")
            assert (record["key_id"], record["key_state"]) == (info.key_id, None)
            assert (record["method"], record["route"]) == (method, path)
    assert len(two.gateway.executor.calls) == before


@pytest.mark.requirement("GATE-7")
@pytest.mark.parametrize(("method", "path"), OWNED, ids=lambda value: str(value))
def test_a_right_key_of_another_tenant_finds_nothing_and_changes_nothing(two: Tenants, method: str, path: str) -> None:
    entry = TABLE[method, path]
    before = len(two.gateway.executor.calls)
    strangers = {EXECUTE: two.stranger, USER: two.other_person}
    for scope in entry.scopes:
        answer = two.ask(method, path, strangers[scope])
        assert (answer.status, answer.body["reason"]) == entry.others
        nothing = two.gateway.request(
            method,
            path.replace("{session_id}", "nobodys"),
            key=strangers[scope],
            body=json.dumps(entry.body).encode() if entry.body is not None else None,
        )
        if path != "/v1/proxy-execute":  # there an id that nobody has opens a session
            assert (nothing.status, nothing.body["detail"]) == (answer.status, answer.body["detail"])
    assert len(two.gateway.executor.calls) == before
    mine = two.gateway.request("GET", "/v1/sessions/theirs", key=two.agent).body
    assert (mine["closed"], mine["session_id"]) == (False, "theirs")


@pytest.mark.parametrize(("method", "path"), sorted(TABLE), ids=lambda value: str(value))
def test_a_right_key_is_let_through(two: Tenants, tmp_path: Path, method: str, path: str) -> None:
    entry = TABLE[method, path]
    with nullcontext(two) if method == "GET" else tenants(tmp_path) as one:
        owner = one.gateway.request("POST", "/v1/sessions", key=one.person).body["session_id"]
        assert one.gateway.call("list_tables", {}, session_id="theirs", key=one.agent).status == 200
        for scope in entry.scopes or (None,):
            if scope is None:
                key = None
            elif scope in (EXECUTE, USER):
                key = one.agent if scope is EXECUTE else one.person
            else:
                key = one.gateway.state.keys.create([scope])[0]
            content = None if entry.body is None else json.dumps(entry.body).encode()
            mine = "theirs" if scope is not USER else owner
            filled = path.replace("{session_id}", mine).replace("{audit_id}", "none").replace("{approval_id}", "none")
            answer = one.gateway.request(method, filled, key=key, body=content)
            assert answer.status in entry.own, answer.content


def test_a_head_request_asks_for_the_key_too(two: Tenants) -> None:
    for method, path in KEYED:
        if method == "GET":
            assert two.gateway.request("HEAD", path.replace("{session_id}", "theirs")).status == 401


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "PROPFIND", "GET", "POST", "DELETE"])
def test_a_method_that_a_route_does_not_have_is_405_whatever_is_said_beside_it(two: Tenants, method: str) -> None:
    override = {"X-HTTP-Method-Override": "DELETE", "X-HTTP-Method": "DELETE", "X-Method-Override": "DELETE"}
    patterns: dict[str, set[str]] = {}
    for served, path in two.routes:
        patterns.setdefault(path, set()).add(served)
    for path, methods in patterns.items():
        if method not in methods:
            filled = path.replace("{session_id}", "theirs") + "?_method=DELETE"
            answer = two.gateway.request(method, filled, key=two.agent, headers=override)
            assert (answer.status, answer.body["reason"]) == (405, "method_not_allowed"), path
            assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == methods
    assert two.gateway.request("GET", "/v1/sessions/theirs", key=two.agent, headers=override).body["closed"] is False
