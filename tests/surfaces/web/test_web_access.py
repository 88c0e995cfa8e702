"""Every route of the people's API against whoever may not use it. The attacker is a stranger, somebody else who is
signed in, somebody whose sign-in is over, or another site's page in a person's browser; each gets a refusal of one form
and nothing of what is there. A route that is in no table here fails the first test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from running_web import RunningWeb
from tests.support.web_client import Client

from sentinel_rag.surfaces.users import Role
from sentinel_rag.surfaces.web import create_api
from sentinel_rag_testing.running_gateway import HttpAnswer

SECRET = "the-words-of-dana"
CHAT = {"message": "say hello"}
PASSWORDS = {"password": "x" * 12, "new_password": "y" * 12}

ROUTES: dict[tuple[str, str], Any] = {
    ("POST", "/chat"): CHAT,
    ("GET", "/turns/{turn_id}"): None,
    ("DELETE", "/turns/{turn_id}"): None,
    ("GET", "/turns/{turn_id}/events"): None,
    ("GET", "/turns/{turn_id}/evidence/{number}"): None,
    ("PUT", "/turns/{turn_id}/opinion"): {"good": False, "reason": "not mine"},
    ("DELETE", "/turns/{turn_id}/opinion"): None,
    ("GET", "/conversations"): None,
    ("GET", "/conversations/{session_id}"): None,
    ("PATCH", "/conversations/{session_id}"): {"title": "mine now"},
    ("DELETE", "/conversations/{session_id}"): None,
    ("GET", "/conversations/{session_id}/export"): None,
    ("GET", "/reports"): None,
    ("GET", "/usage"): None,
    ("GET", "/state"): None,
    ("GET", "/conversations/{session_id}/requests"): None,
    ("POST", "/conversations/{session_id}/clear"): {"carry": True},
    ("GET", "/approvals"): None,
    ("GET", "/approvals/{approval_id}"): None,
    ("POST", "/approvals/{approval_id}/decision"): {"decision": "approve"},
    ("GET", "/audit"): None,
    ("GET", "/audit/{audit_id}"): None,
    ("POST", "/audit/verify"): None,
    ("GET", "/policy"): None,
    ("POST", "/policy/explain"): {"tool": "isolate", "arguments": {"host": "ws-1"}},
    ("GET", "/knowledge/playbooks"): None,
    ("PUT", "/knowledge/playbooks"): None,
    ("DELETE", "/knowledge/playbooks"): None,
    ("POST", "/knowledge/incidents"): None,
    ("GET", "/data"): None,
    ("PUT", "/data"): None,
    ("GET", "/data/watchlists"): None,
    ("PUT", "/data/watchlists"): None,
    ("DELETE", "/data/watchlists"): None,
    ("GET", "/tools"): None,
    ("POST", "/tools/{tool}"): {"arguments": {}},
    ("GET", "/users"): None,
    ("POST", "/users"): {"name": "a-puppet", "roles": ["analyst"]},
    ("PUT", "/users/{name}"): {"roles": ["analyst"]},
    ("DELETE", "/users/{name}"): None,
    ("POST", "/users/{name}/reset"): None,
    ("GET", "/users/{name}/tokens"): None,
    ("DELETE", "/users/{name}/tokens/{token_id}"): None,
    ("GET", "/session"): None,
    ("DELETE", "/session"): None,
    ("DELETE", "/sessions"): None,
    ("PUT", "/password"): PASSWORDS,
    ("GET", "/tokens"): None,
    ("POST", "/tokens"): {"name": "report"},
    ("DELETE", "/tokens/{token_id}"): None,
}
"""Routes for people who are signed in, each with a body that is as documented."""

PUBLIC = {
    ("POST", "/sign-in"),
    ("POST", "/sign-in/invitation"),
    ("GET", "/sign-in/oidc"),
    ("GET", "/sign-in/oidc/callback"),
    ("GET", "/sign-in/once/{token}"),
    ("POST", "/sign-in/once/{token}"),
}
ROLES = {
    "/chat": Role.ANALYST,
    "/turns": Role.ANALYST,
    "/conversations": Role.ANALYST,
    "/reports": Role.ANALYST,
    "/approvals": Role.APPROVER,
    "/audit": Role.AUDITOR,
    "/policy": Role.ADMIN,
    "/users": Role.ADMIN,
    "/knowledge": Role.ADMIN,
    "/data": Role.ADMIN,
    "/tools": Role.ANALYST,
}
EACH = sorted(ROUTES)
CHANGES = [route for route in EACH if route[0] != "GET"]
OF_ROLES = [route for route in EACH if "/" + route[1].split("/")[1] in ROLES]
AT_BROWSER = [route for route in EACH if route[1].startswith(("/tokens", "/password", "/sessions"))]
OF_ONE = [
    route
    for route in EACH
    if any(name in route[1] for name in ("{turn_id}", "{session_id}", "{token_id}")) and "/users" not in route[1]
]


class Ground:
    """What dana has, and the people who want it."""

    def __init__(self, web: RunningWeb) -> None:
        self.web = web
        self.dana = web.browser("dana-access")
        answer = self.dana.ask(f"say {SECRET}=1")
        waiting = self.dana.ask('call isolate {"host": "ws-1"}')
        token = self.dana.post("/tokens", {"name": SECRET}).body
        self.ids = {
            "turn_id": answer["turn_id"],
            "session_id": answer["session_id"],
            "number": "1",
            "token_id": token["token_id"],
            "approval_id": waiting["answer"].split()[-1],
            "audit_id": waiting["tools"][0]["audit_id"],
            "tool": "read_alert",
            "name": "nobody-here",
        }

    def send(self, client: Client, route: tuple[str, str], headers: dict[str, str] | None = None) -> HttpAnswer:
        method, path = route
        return client.request(method, path.format(**self.ids), ROUTES[route], headers)


@pytest.fixture(scope="module")
def ground(web: RunningWeb) -> Ground:
    return Ground(web)


@contextmanager
def later(web: RunningWeb, hours: float) -> Iterator[None]:
    web.clock.ahead += timedelta(hours=hours)
    try:
        yield
    finally:
        web.clock.ahead -= timedelta(hours=hours)


def refused(answer: HttpAnswer, status: int, reason: str) -> None:
    assert (answer.status, answer.body["reason"]) == (status, reason), answer.content
    assert set(answer.body) <= {"detail", "reason", "next_step", "problems"}
    assert SECRET not in answer.content.decode()
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


def test_no_route_is_left_out_of_these_tables(web: RunningWeb) -> None:
    document = create_api(web.web).openapi()
    served = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert served == set(ROUTES) | PUBLIC
    hidden = {getattr(route, "path", "/") for route in create_api(web.web).routes} - {path for _, path in served}
    assert hidden == {"/", "/healthz", "/openapi.json"}


def test_what_the_owner_of_it_all_gets_is_there(ground: Ground) -> None:
    """What the refusals below protect can be had."""
    assert SECRET in ground.send(ground.dana, ("GET", "/turns/{turn_id}")).content.decode()
    assert SECRET in ground.send(ground.dana, ("GET", "/turns/{turn_id}/evidence/{number}")).content.decode()
    assert SECRET in ground.send(ground.dana, ("GET", "/conversations/{session_id}")).content.decode()
    assert SECRET in ground.send(ground.dana, ("GET", "/tokens")).content.decode()


@pytest.mark.parametrize("route", EACH, ids=" ".join)
def test_a_stranger_gets_401(ground: Ground, route: tuple[str, str]) -> None:
    url, cookie = ground.web.url, ground.dana.cookie
    half = cookie[: len(cookie) // 2]
    for client in (
        Client(url),
        Client(url, cookie="sentinel=", csrf=ground.dana.csrf),
        Client(url, cookie=half, csrf=ground.dana.csrf),
        Client(url, token="0" * 43),
        Client(url, token=cookie.partition("=")[2]),  # a browser's secret is no program's
    ):
        refused(ground.send(client, route), 401, "unauthenticated")


@pytest.mark.parametrize("route", EACH, ids=" ".join)
def test_a_sign_in_that_is_over_gets_401(ground: Ground, route: tuple[str, str]) -> None:
    with later(ground.web, 2.1):  # unused for two hours
        refused(ground.send(ground.dana, route), 401, "unauthenticated")


@pytest.mark.parametrize("route", CHANGES, ids=" ".join)
def test_a_change_that_comes_from_another_page_gets_403(ground: Ground, route: tuple[str, str]) -> None:
    dana = ground.dana
    for csrf in ("", "wrong", dana.csrf[:-1]):
        refused(ground.send(Client(dana.url, cookie=dana.cookie, csrf=csrf), route), 403, "csrf")
    refused(ground.send(dana, route, {"Origin": "https://evil.example"}), 421, "misdirected")


@pytest.mark.parametrize("route", EACH, ids=" ".join)
def test_a_request_for_another_host_gets_421(ground: Ground, route: tuple[str, str]) -> None:
    refused(ground.send(ground.dana, route, {"Host": "evil.example"}), 421, "misdirected")


@pytest.mark.parametrize("route", OF_ROLES, ids=" ".join)
def test_somebody_without_the_role_gets_403(ground: Ground, route: tuple[str, str]) -> None:
    needed = ROLES["/" + route[1].split("/")[1]]
    name = f"no-{needed.value}"
    # An analyst confirms what their own conversations ask for, so they come in there too, and find nothing of others.
    also = {Role.ANALYST} if needed is Role.APPROVER else set()
    others = [role for role in Role if role is not needed and role not in also]
    refused(ground.send(ground.web.person(name, *others), route), 403, "missing_role")


@pytest.mark.parametrize("route", OF_ONE, ids=" ".join)
def test_somebody_else_gets_404_as_for_what_never_was(ground: Ground, route: tuple[str, str]) -> None:
    erin = ground.web.person("erin-access", *Role)
    answer = ground.send(erin, route)
    refused(answer, 404, "not_found")
    made_up = {**ground.ids, "turn_id": "0" * 24, "session_id": "0" * 32, "token_id": "0" * 16}
    never = erin.request(route[0], route[1].format(**made_up), ROUTES[route])
    assert (never.status, never.body) == (answer.status, answer.body)


def test_nothing_of_the_refused_was_done(ground: Ground) -> None:
    """The sign-in, the conversation, the token and the call that waits are as they were, whatever came before."""
    assert ground.dana.get("/session").status == 200
    shown = ground.send(ground.dana, ("GET", "/conversations/{session_id}")).body
    assert (shown["title"], len(shown["items"])) == (f"say {SECRET}=1", 1)
    assert [token["token_id"] for token in ground.dana.get("/tokens").body["tokens"]] == [ground.ids["token_id"]]
    assert ground.web.analyst.deleted == ground.web.analyst.cleared == []
    finn = ground.web.person("finn-access", Role.APPROVER)
    assert ground.send(finn, ("GET", "/approvals/{approval_id}")).body["state"] == "pending"


@pytest.mark.parametrize("route", AT_BROWSER, ids=" ".join)
def test_a_program_makes_no_tokens_and_changes_no_password(ground: Ground, route: tuple[str, str]) -> None:
    program = ground.web.program(ground.web.person("gwen-access"))
    refused(ground.send(program, route), 403, "browser_only")


def test_a_form_of_another_site_reaches_no_route(ground: Ground) -> None:
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""):
        answer = ground.dana.request("POST", "/chat", json.dumps(CHAT).encode(), {"Content-Type": kind})
        refused(answer, 415, "unsupported_media_type")


def test_too_much_of_anything_is_refused(ground: Ground) -> None:
    answer = ground.dana.request("POST", "/chat", b'{"message": "' + b"x" * 140_000 + b'"}')
    refused(answer, 413, "too_large")
    refused(ground.dana.get("/conversations?limit=5&x=" + "x" * 5_000), 414, "too_large")


def test_a_fault_of_ours_is_answered_like_every_other(ground: Ground) -> None:
    ground.web.web.verify, kept = (lambda: 1 / 0), ground.web.web.verify  # type: ignore[assignment,return-value]
    try:
        answer = ground.web.person("finn-fault", Role.AUDITOR).post("/audit/verify")
    finally:
        ground.web.web.verify = kept
    refused(answer, 500, "internal")
    assert b"division" not in answer.content
