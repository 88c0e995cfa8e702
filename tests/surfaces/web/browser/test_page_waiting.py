"""A call that begins to wait while the page is open: who may decide it is told wherever they are, and by every tab."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb
from visitor import Visit

from sentinel_rag.surfaces.users import Role

WISH = "dana-waiting wants to use isolate with host “ws-02”"
ISOLATE = 'call isolate {"host": "ws-02"}'


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("APPR-1")
def test_an_approval_that_appears_is_told_in_every_view_and_tab_and_goes_when_it_is_decided(
    web: RunningWeb, visit: Visit
) -> None:
    finn = visit("finn-waiting", Role.ANALYST, Role.APPROVER)
    page, other = finn.page, finn.tab()
    other.goto(f"{web.url}/#/approvals")
    expect(other.get_by_text("Nothing waits for a decision.")).to_be_visible()
    expect(page).to_have_title("Home - Sentinel RAG")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Ask", exact=True).click()
    expect(page).to_have_title("Ask - Sentinel RAG")
    asked: list[str] = []
    for each in (page, other):
        each.on("request", lambda request: asked.append(request.url) if "mark=" in request.url else None)

    web.person("dana-waiting").ask(ISOLATE)
    told = page.get_by_text(f"A request waits for your decision: {WISH}")
    expect(told).to_be_visible()
    expect(page).to_have_title("(1) Ask - Sentinel RAG")
    # It stays in sight of whoever asks far down a long conversation.
    page.locator("main").evaluate("main => { main.style.minHeight = '5000px'; scrollTo(0, 3000); }")
    expect(told).to_be_in_viewport()
    page.locator("main").evaluate("main => { main.style.minHeight = ''; }")
    link = page.get_by_role("navigation", name="Views").get_by_role("link", name="Approvals 1 waiting")
    expect(link).to_be_visible()
    expect(other.get_by_role("region", name="Waiting").get_by_role("link", name=WISH)).to_be_visible()
    expect(other.get_by_role("region", name="Waiting")).to_contain_text("waits for you")
    expect(other).to_have_title("(1) Approvals - Sentinel RAG")

    other.get_by_role("region", name="Waiting").get_by_role("link", name=WISH).click()
    page.get_by_role("link", name=WISH).click()
    expect(page.get_by_role("button", name="Deny")).to_be_visible()
    other.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("article").get_by_role("status")).to_contain_text("denied")  # decided in the other tab
    expect(page.get_by_role("button", name="Deny")).to_have_count(0)
    expect(page).to_have_title("Approvals - Sentinel RAG")
    expect(page.locator("nav .count")).to_have_count(0)
    assert all(re.search("state=pending&limit=200&mark=[0-9a-f]{16}$", url) for url in asked)


@pytest.mark.requirement("SURF-4")
def test_who_may_not_decide_a_call_is_not_told_to(web: RunningWeb, visit: Visit) -> None:
    gail = visit("gail-waiting", Role.ANALYST, Role.APPROVER)
    gail.ask('call isolate {"host": "ws-03"}')
    expect(gail.page.locator("article.turn:not(.running)")).to_have_count(1)
    gail.page.get_by_role("link", name="Approvals").click()
    hers = gail.page.get_by_role("region", name="Waiting").get_by_role("link")
    expect(hers).to_have_count(1)
    expect(gail.page).to_have_title("Approvals - Sentinel RAG")
    expect(gail.page.locator("nav .count")).to_have_count(0)
    hugo = web.person("hugo-waiting", Role.APPROVER)
    [waiting] = hugo.get("/approvals?state=pending").body["approvals"]
    assert hugo.post(f"/approvals/{waiting['approval_id']}/decision", {"decision": "deny"}).status == 200
    expect(hers).to_have_count(0)
