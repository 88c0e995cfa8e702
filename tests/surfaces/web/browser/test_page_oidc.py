"""Signing in at an identity provider, clicked through: the page, the provider, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb, running_web
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from visitor import Visit

from sentinel_rag.surfaces.web import Provider
from sentinel_rag_testing.running_gateway import RunningGateway


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider().running() as running:
        yield running


@pytest.fixture(scope="module")
def web(
    web_gateway: RunningGateway, provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWeb]:
    known = Provider(provider.issuer, CLIENT_ID, CLIENT_SECRET, "email")
    with running_web(web_gateway, tmp_path_factory.mktemp("provider"), provider=known) as running:
        yield running


@pytest.mark.requirement("SURF-3")
@pytest.mark.requirement("SURF-4")
def test_a_person_signs_in_at_the_provider_asks_and_signs_out(
    web: RunningWeb, provider: OidcProvider, visit: Visit
) -> None:
    web.add("dana-provider", oidc_name="dana@example.com")
    provider.person = {"sub": "u-1", "email": "dana@example.com", "email_verified": True}
    dana = visit(provider=provider.issuer)
    page = dana.page
    page.get_by_role("link", name="Sign in with your identity provider").click()
    expect(page.get_by_role("link", name="Account of dana-provider")).to_be_visible()
    assert page.url.startswith(f"{web.url}/")
    dana.ask("say hello")
    expect(page.locator("article.answered .markdown")).to_have_text("hello")
    [cookie] = [each for each in dana.context.cookies() if each["name"] == web.web.terms.cookie]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    page.get_by_role("link", name="Account of dana-provider").click()
    expect(page.get_by_role("region", name="Tokens")).to_be_visible()
    expect(page.get_by_role("region", name="Password")).to_have_count(0)  # it is the provider's
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_be_visible()
    assert provider.faults == []


@pytest.mark.requirement("SURF-3")
def test_somebody_without_an_account_is_told_so_on_a_page(
    web: RunningWeb, provider: OidcProvider, visit: Visit
) -> None:
    provider.person = {"sub": "u-2", "email": "<b>eve</b>@example.com", "email_verified": True}
    page = visit(provider=provider.issuer).page
    page.get_by_role("link", name="Sign in with your identity provider").click()
    expect(page.get_by_role("heading")).to_have_text("Not signed in")
    expect(page.locator("body")).to_contain_text("there is no account for you here")
    expect(page.locator("body")).to_contain_text("sentinel users add NAME --oidc <b>eve</b>@example.com")
    page.get_by_role("link", name="Sign in", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_be_visible()


@pytest.mark.requirement("SURF-3")
def test_a_link_that_was_used_is_told_so_on_a_page(web: RunningWeb, visit: Visit) -> None:
    page = visit(at=f"/sign-in/once/{'0' * 8}-{'0' * 16}-{'0' * 32}").page
    expect(page.locator("body")).to_contain_text("it was used or is over")
    expect(page.locator("body")).to_contain_text("sentinel users link")
