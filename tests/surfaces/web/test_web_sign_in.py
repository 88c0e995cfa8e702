"""Signing in and out: what a guesser learns, how long a sign-in lasts, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from http.cookies import SimpleCookie

import pytest
from argon2 import PasswordHasher
from running_web import CHEAP, OWNER_SECRET, RunningWeb, password_of, running_web
from tests.support.web_client import Client, signed_in

from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.surfaces.users import Passwords, Role, owner_link
from sentinel_rag.surfaces.web import PersonLimits, SignInTerms
from sentinel_rag_testing.running_gateway import RunningGateway


@pytest.fixture(scope="module")
def narrow(web_gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """A surface that checks few attempts, lets a person ask little, and is reached at a public address."""
    limits = PersonLimits(requests=Rate(40, 60.0), questions=Rate(2, 60.0), attempts=Rate(3, 300.0))
    terms = SignInTerms(public_url="https://sentinel.example.com:8443")
    with running_web(web_gateway, tmp_path_factory.mktemp("narrow"), limits=limits, terms=terms) as running:
        yield running


def cookie_of(headers: object) -> tuple[str, SimpleCookie]:
    text = str(headers["set-cookie"])  # type: ignore[index]
    return text, SimpleCookie(text)


@pytest.mark.requirement("SURF-3")
def test_a_wrong_password_and_an_unknown_name_are_answered_alike(web: RunningWeb) -> None:
    web.add("jane")
    web.add("by-provider", oidc_name="jane@example.com")
    answers = [
        web.stranger().post("/sign-in", {"name": name, "password": "a wrong password"})
        for name in ("jane", "nobody-has-this", "by-provider", "owner", "JANE", "' OR 1=1 --")
    ]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert all("set-cookie" not in answer.headers for answer in answers)
    assert web.stranger().post("/sign-in", {"name": " Jane ", "password": password_of("jane")}).status == 200


def test_guessing_is_slowed_down_for_a_name_before_a_password_is_looked_at(narrow: RunningWeb) -> None:
    narrow.add("kim")

    def attempt(password: str) -> int:
        return narrow.stranger().post("/sign-in", {"name": "kim", "password": password}).status

    assert [attempt("a wrong password") for _ in range(4)] == [401, 401, 401, 429]
    answer = narrow.stranger().post("/sign-in", {"name": "kim", "password": password_of("kim")})
    assert (answer.status, answer.body["reason"]) == (429, "rate_limited")
    assert int(answer.headers["retry-after"]) <= 301
    narrow.add("lou")
    assert narrow.stranger().post("/sign-in", {"name": "lou", "password": password_of("lou")}).status == 200
    narrow.clock.ahead += timedelta(minutes=6)
    assert attempt(password_of("kim")) == 200


def test_a_person_asks_so_often_and_no_more(narrow: RunningWeb) -> None:
    mia = narrow.browser("mia")
    assert [mia.post("/chat", {"message": "say x"}).status for _ in range(3)] == [200, 200, 429]
    statuses = [mia.get("/session").status for _ in range(45)]
    assert statuses[0] == 200
    assert statuses[-1] == 429
    assert narrow.browser("nia").get("/session").status == 200


def test_a_cookie_is_out_of_reach_of_scripts_and_other_sites(web: RunningWeb, narrow: RunningWeb) -> None:
    web.add("olga")
    narrow.add("olga")
    body = {"name": "olga", "password": password_of("olga")}
    text, cookie = cookie_of(web.stranger().post("/sign-in", body).headers)
    assert set(cookie) == {"sentinel"}
    assert "HttpOnly" in text
    assert "samesite=strict" in text.lower()
    assert "secure" not in text.lower().split("samesite")[0]  # loopback has no TLS
    answer = narrow.stranger().request("POST", "/sign-in", body, {"Host": "sentinel.example.com:8443"})
    text, cookie = cookie_of(answer.headers)
    assert set(cookie) == {"__Host-sentinel"}
    assert {"HttpOnly", "Secure", "Path=/"} <= set(text.split("; "))
    assert "Domain" not in text
    assert answer.headers["strict-transport-security"]
    assert narrow.stranger().request("GET", "/session", None, {"Host": "evil.example.com"}).status == 421


def test_a_sign_in_ends_after_its_time_however_much_it_is_used(web: RunningWeb) -> None:
    paul = web.browser("paul")
    try:
        for _ in range(7):
            assert paul.get("/session").status == 200
            web.clock.ahead += timedelta(hours=1.7)
        web.clock.ahead += timedelta(minutes=10)
        assert paul.get("/session").status == 401
    finally:
        web.clock.ahead = timedelta(0)


def test_signing_out_ends_this_sign_in_and_no_other(web: RunningWeb) -> None:
    here = web.browser("quin")
    there = web.browser("quin")
    assert here.delete("/session").status == 204
    assert here.get("/session").status == 401
    assert there.get("/session").body["name"] == "quin"


def test_a_new_password_ends_every_other_sign_in_and_token(web: RunningWeb) -> None:
    here, there = web.browser("rosa"), web.browser("rosa")
    program = web.program(there)
    wrong = here.request("PUT", "/password", {"password": "not the old one", "new_password": "brook under the bridge"})
    assert (wrong.status, wrong.body["reason"]) == (401, "wrong_credentials")
    weak = here.request("PUT", "/password", {"password": password_of("rosa"), "new_password": "rosa-rosa-rosa"})
    assert weak.status == 422
    done = here.request("PUT", "/password", {"password": password_of("rosa"), "new_password": "brook under the bridge"})
    assert done.status == 204
    assert signed_in(web.url, done).get("/session").body["name"] == "rosa"
    assert [client.get("/session").status for client in (here, there, program)] == [401, 401, 401]
    assert web.stranger().post("/sign-in", {"name": "rosa", "password": password_of("rosa")}).status == 401


def test_a_token_is_shown_once_ends_by_itself_and_can_be_ended(web: RunningWeb) -> None:
    sara = web.browser("sara")
    made = sara.post("/tokens", {"name": "shift-report", "days": 1}).body
    program = Client(web.url, token=made["token"])
    assert program.ask("say by a program")["answer"] == "by a program"
    assert program.get("/session").body["csrf_token"] is None
    listed = sara.get("/tokens")
    assert [token["name"] for token in listed.body["tokens"]] == ["shift-report"]
    assert made["token"] not in listed.content.decode()
    web.clock.ahead += timedelta(hours=25)
    try:
        assert program.get("/session").status == 401
    finally:
        web.clock.ahead = timedelta(0)
    assert sara.delete(f"/tokens/{made['token_id']}").status == 204
    assert program.get("/session").status == 401
    assert sara.get("/tokens").body == {"tokens": []}
    for wrong in (
        {"name": ""},
        {"name": "x", "days": 0},
        {"name": "x", "days": 400},
        {"name": "x", "roles": ["admin"]},
    ):
        assert sara.post("/tokens", wrong).status == 422


def test_a_link_of_the_owner_signs_in_once_and_for_an_hour(narrow: RunningWeb) -> None:
    stranger = narrow.stranger()
    link, later = owner_link(OWNER_SECRET, narrow.clock()), owner_link(OWNER_SECRET, narrow.clock())
    ends, nonce, mac = link.removeprefix("/sign-in/once/").split("-")
    other = owner_link("another secret", narrow.clock())
    forged = f"/sign-in/once/{int(ends, 16) + 9_999:08x}-{nonce}-{mac}"
    for wrong in ("/sign-in/once/" + "x" * 32, other, forged, f"{link}0", link[:-1]):
        assert {stranger.get(wrong).status, stranger.post(wrong).status} <= {404, 422}, wrong
    page = stranger.get(link)
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.content.decode()
    assert "<h1>Sentinel RAG</h1>" in page.content.decode()
    answer = stranger.post(link)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    owner = Client(narrow.url, cookie=answer.headers["set-cookie"].partition(";")[0])
    told = owner.get("/session").body
    assert (told["name"], told["roles"]) == ("owner", ["admin", "analyst", "approver", "auditor"])
    again = stranger.post(link)
    assert (again.status, "set-cookie" in again.headers) == (404, False)
    narrow.clock.ahead += timedelta(minutes=61)
    assert stranger.post(later).status == 404
    assert stranger.post(owner_link(OWNER_SECRET, narrow.clock())).status == 303


def test_a_password_hashed_with_less_is_hashed_anew_when_it_is_used(web: RunningWeb) -> None:
    account = web.add("tara")
    weak = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1, hash_len=16))
    web.web.people.set_password(account.user_id, weak.hash(password_of("tara")))
    other = web.browser("tara")
    found = web.web.people.password_of("tara")
    assert found is not None
    assert not CHEAP.check_needs_rehash(found[1])
    assert other.get("/session").status == 200


def test_whoever_lost_the_key_at_the_interceptor_is_told_so(web: RunningWeb) -> None:
    uma = web.browser("uma")
    web.gateway.state.keys.revoke(web.accounts["uma"].key_id)
    answer = uma.post("/chat", {"message": "say x"})
    assert (answer.status, answer.body["reason"]) == (403, "key_ended")


@pytest.mark.requirement("SURF-3")
def test_a_page_that_only_waits_for_approvals_does_not_keep_its_person_signed_in(web: RunningWeb) -> None:
    finn = web.browser("finn-away", Role.APPROVER)
    try:
        for _ in range(2):
            web.clock.ahead += timedelta(minutes=55)
            assert finn.get(f"/approvals?mark={'0' * 16}").status == 200
        web.clock.ahead += timedelta(minutes=55)
        assert finn.get(f"/approvals?mark={'0' * 16}").status == 401
        there = web.browser("finn-there", Role.APPROVER)
        for _ in range(3):
            web.clock.ahead += timedelta(minutes=55)
            assert there.get("/approvals").status == 200
    finally:
        web.clock.ahead = timedelta(0)
