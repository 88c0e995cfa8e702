"""Sign-in at an identity provider. The attacker controls an account there, the browser's way back, another browser, or
the provider's answer on the wire; none of that signs anybody in as somebody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from running_web import RunningWeb, running_web
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.web_client import signed_in

from sentinel_rag.surfaces.web import Provider
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway

COOKIE = "sentinel-oidc"


@pytest.fixture(scope="module")
def served(
    web_gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningWeb, OidcProvider]]:
    with OidcProvider().running() as provider:
        known = Provider(provider.issuer, CLIENT_ID, CLIENT_SECRET, "email")
        with running_web(web_gateway, tmp_path_factory.mktemp("oidc"), provider=known) as web:
            yield web, provider


@pytest.fixture
def web(served: tuple[RunningWeb, OidcProvider]) -> RunningWeb:
    return served[0]


@pytest.fixture
def provider(served: tuple[RunningWeb, OidcProvider]) -> Iterator[OidcProvider]:
    made = served[1]
    yield made
    made.change, made.sign, made.answer = (lambda claims: claims), made.sign_honestly, {}
    served[0].clock.ahead += timedelta(minutes=2)  # the next test may begin flows anew


def come_back(web: RunningWeb, cookie: str, path: str) -> HttpAnswer:
    return web.stranger().request("GET", path, None, {"Cookie": cookie} if cookie else {})


def sign_in(web: RunningWeb, provider: OidcProvider) -> HttpAnswer:
    return provider.bring_back(web.stranger())


def refused(answer: HttpAnswer, status: int = 401, reason: str = "not_signed_in") -> None:
    assert (answer.status, answer.body["reason"]) == (status, reason), answer.content
    assert "sentinel=" not in answer.headers.get("set-cookie", "")


@pytest.mark.requirement("SURF-3")
def test_a_person_signs_in_at_the_provider_and_is_bound_to_its_id(web: RunningWeb, provider: OidcProvider) -> None:
    web.add("dana", oidc_name="dana@example.com")
    provider.person = {"sub": "u-dana", "email": "Dana@Example.com", "email_verified": True}
    answer = sign_in(web, provider)
    assert answer.status == 200
    assert 'content="0;url=/"' in answer.content.decode()
    dana = signed_in(web.url, answer)
    assert dana.get("/session").body["name"] == "dana"
    assert dana.ask("say hello")["answer"] == "hello"
    provider.person = {"sub": "u-dana", "email": "married@example.com", "email_verified": True}
    assert signed_in(web.url, sign_in(web, provider)).get("/session").body["name"] == "dana"
    # Somebody else was given the old address at the provider.
    provider.person = {"sub": "u-other", "email": "dana@example.com", "email_verified": True}
    refused(sign_in(web, provider), 403, "no_account")
    assert provider.faults == []


def test_whoever_has_no_account_here_does_not_come_in(web: RunningWeb, provider: OidcProvider) -> None:
    provider.person = {"sub": "u-stranger", "email": "stranger@example.com", "email_verified": True}
    answer = sign_in(web, provider)
    refused(answer, 403, "no_account")
    assert "sentinel users add NAME --oidc" in answer.body["next_step"]


def test_a_disabled_person_does_not_come_back(web: RunningWeb, provider: OidcProvider) -> None:
    account = web.add("erin", oidc_name="erin@example.com")
    provider.person = {"sub": "u-erin", "email": "erin@example.com", "email_verified": True}
    assert sign_in(web, provider).status == 200
    web.web.people.disable(account.user_id)
    refused(sign_in(web, provider), 403, "account_disabled")


def test_whoever_is_bound_to_a_disabled_account_is_told_so_also_with_a_new_one(
    web: RunningWeb, provider: OidcProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """The person who came back got a second account; the provider's id of theirs belongs to the first."""
    first = web.add("farid", oidc_name="farid@example.com")
    provider.person = {"sub": "u-farid", "email": "farid@example.com", "email_verified": True}
    assert sign_in(web, provider).status == 200
    web.web.people.disable(first.user_id)
    web.add("farid.new", oidc_name="farid.new@example.com")
    provider.person = {"sub": "u-farid", "email": "farid.new@example.com", "email_verified": True}
    caplog.clear()
    answer = sign_in(web, provider)
    refused(answer, 403, "account_disabled")
    assert "Your account here, farid, is disabled" in answer.body["detail"]
    assert "sentinel users change farid --role" in answer.body["next_step"]
    assert "the account farid is disabled" in caplog.text
    provider.person = {"sub": "u-farid-other", "email": "farid.new@example.com", "email_verified": True}
    assert signed_in(web.url, sign_in(web, provider)).get("/session").body["name"] == "farid.new"


def test_an_account_that_was_disabled_before_its_first_sign_in_says_so(web: RunningWeb, provider: OidcProvider) -> None:
    account = web.add("gus", oidc_name="gus@example.com")
    web.web.people.disable(account.user_id)
    provider.person = {"sub": "u-gus", "email": "gus@example.com", "email_verified": True}
    refused(sign_in(web, provider), 403, "account_disabled")


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_the_provider_has_not_verified_is_nobodys(
    web: RunningWeb, provider: OidcProvider, verified: object
) -> None:
    name = f"finn-{verified}".lower()
    web.add(name, oidc_name=f"{name}@example.com")
    provider.person = {"sub": f"u-{name}", "email": f"{name}@example.com", "email_verified": verified}
    refused(sign_in(web, provider))


def test_a_flow_is_for_one_browser_once_and_for_ten_minutes(web: RunningWeb, provider: OidcProvider) -> None:
    web.add("gwen", oidc_name="gwen@example.com")
    provider.person = {"sub": "u-gwen", "email": "gwen@example.com", "email_verified": True}
    cookie, path = provider.sent_back(web.stranger())
    other, _ = provider.sent_back(web.stranger())
    refused(come_back(web, other, path))  # another browser: somebody sent a person this address
    refused(come_back(web, cookie, path))  # and now it is spent
    cookie, path = provider.sent_back(web.stranger())
    refused(come_back(web, "", path))
    cookie, path = provider.sent_back(web.stranger())
    assert come_back(web, cookie, path).status == 200
    refused(come_back(web, cookie, path))
    cookie, path = provider.sent_back(web.stranger())
    web.clock.ahead += timedelta(minutes=11)
    refused(come_back(web, cookie, path))
    refused(come_back(web, cookie, "/sign-in/oidc/callback?code=x&state=made-up"))
    refused(come_back(web, cookie, "/sign-in/oidc/callback"))


def test_a_cookie_of_strange_signs_is_another_browsers_and_no_fault(web: RunningWeb, provider: OidcProvider) -> None:
    """Attacker controls: the cookie, of a flow that they have begun themselves."""
    cookie, path = provider.sent_back(web.stranger())
    refused(come_back(web, f"{cookie.partition('=')[0]}=\u00e9\u00ff", path))


def test_an_answer_without_a_code_or_of_another_provider_is_refused(web: RunningWeb, provider: OidcProvider) -> None:
    provider.answer = {"error": "access_denied"}
    refused(sign_in(web, provider))
    provider.answer = {"iss": "https://evil.example"}
    refused(sign_in(web, provider))
    provider.answer = {"code": "a-code-of-somebody-else"}
    refused(sign_in(web, provider), 503, "provider_unavailable")
    provider.faults.clear()


def claim(**changed: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The claims with some changed; those that are None are left out."""
    return lambda claims: {name: value for name, value in {**claims, **changed}.items() if value is not None}


@pytest.mark.parametrize(
    "change",
    [
        claim(aud="another-application"),
        claim(aud=[CLIENT_ID, "another-application"]),
        claim(azp="another-application"),
        claim(iss="https://evil.example"),
        claim(exp=int(time.time()) - 3_600),
        claim(exp=None),
        claim(iat=None),
        claim(sub=None),
        claim(nonce=None),
        claim(nonce="of another sign-in"),
        claim(nonce="\u00e9\u20ac"),
        claim(email=None),
        claim(email=["hana@example.com"]),
        claim(nbf=int(time.time()) + 36_000),
    ],
    ids=[
        *("aud", "two aud", "azp", "iss", "over", "no exp", "no iat", "no sub", "no nonce", "nonce"),
        *("strange nonce", "no email", "a list", "not yet"),
    ],
)
def test_a_token_whose_claims_do_not_hold_is_refused(
    web: RunningWeb, provider: OidcProvider, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    if "hana" not in web.accounts:
        web.add("hana", oidc_name="hana@example.com")
    provider.person = {"sub": "u-hana", "email": "hana@example.com", "email_verified": True}
    provider.change = change
    refused(sign_in(web, provider))


@pytest.mark.parametrize("forged", ["other key", "none", "HS256 with the public key", "unknown kid", "no token"])
def test_a_token_that_the_provider_did_not_sign_is_refused(
    web: RunningWeb, provider: OidcProvider, forged: str
) -> None:
    name = "forged-" + forged.replace(" ", "-").lower()
    web.add(name, oidc_name=f"{name}@example.com")
    provider.person = {"sub": f"u-{name}", "email": f"{name}@example.com", "email_verified": True}

    def sign(claims: dict[str, Any]) -> str:
        if forged == "no token":
            return ""
        if forged == "none":
            return jwt.encode(claims, None, algorithm="none", headers={"kid": "k1"})
        if forged == "HS256 with the public key":
            return jwt.encode(
                claims, b"the text of a public key, which all know", algorithm="HS256", headers={"kid": "k1"}
            )
        if forged == "unknown kid":
            return jwt.encode(claims, provider._key, algorithm="RS256", headers={"kid": "k2"})
        mine = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return jwt.encode(claims, mine, algorithm="RS256", headers={"kid": "k1"})

    provider.sign = sign
    refused(sign_in(web, provider))


def test_the_question_asks_for_a_code_with_pkce_and_tells_no_secret(web: RunningWeb, provider: OidcProvider) -> None:
    begun = web.stranger().get("/sign-in/oidc")
    assert {"HttpOnly", "Path=/sign-in/oidc", "SameSite=lax"} <= set(begun.headers["set-cookie"].split("; "))
    query = parse_qs(urlsplit(begun.headers["location"]).query)
    assert query["response_type"] == ["code"]
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == [f"{web.url}/sign-in/oidc/callback"]
    assert CLIENT_SECRET not in str(query)


def test_without_a_provider_the_routes_say_so(web_gateway: RunningGateway, tmp_path: Any) -> None:
    with running_web(web_gateway, tmp_path) as plain:
        refused(plain.stranger().get("/sign-in/oidc"), 404, "not_found")
        refused(plain.stranger().get("/sign-in/oidc/callback?code=x&state=y"), 404, "not_found")


def test_a_provider_that_is_away_or_is_another_is_told_of(web_gateway: RunningGateway, tmp_path: Any) -> None:
    with OidcProvider().running() as provider:
        url = provider.issuer
        provider.issuer = "https://evil.example"  # what it says of itself
        known = Provider(url, CLIENT_ID, CLIENT_SECRET, "email")
        with running_web(web_gateway, tmp_path, provider=known) as web:
            refused(web.stranger().get("/sign-in/oidc"), 503, "provider_unavailable")
