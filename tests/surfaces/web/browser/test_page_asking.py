"""Asking on the page: signing in, what is told while an answer is made, its evidence, and connections that break."""

from __future__ import annotations

import re

import pytest
from cable import cable
from playwright.sync_api import Page, expect
from running_web import RunningWeb
from visitor import Visit

from sentinel_rag.contracts.labels import Sensitivity
from waiting import until

HIDDEN = "powershell -enc SECRET admin"


def articles(page: Page) -> list[str]:
    return page.locator("article.turn h2").all_inner_texts()


@pytest.mark.requirement("SURF-4")
def test_a_person_signs_in_and_out_and_a_wrong_password_is_told(web: RunningWeb, visit: Visit) -> None:
    web.add("dana-sign")
    stranger = visit()
    page = stranger.page
    page.get_by_label("Name").fill("dana-sign")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no such name with this password.")
    stranger.sign_in("dana-sign")
    expect(page.get_by_role("navigation", name="Views").get_by_role("link")).to_have_text(
        ["Home", "Ask", "Incidents", "Approvals", "Dashboard", "KQL", "Knowledge"]
    )
    page.goto(f"{web.url}/#/audit")
    expect(page.get_by_text("Audit is for people with the role auditor.")).to_be_visible()
    page.goto(f"{web.url}/#/chat/{'f' * 16}")
    expect(page.get_by_role("alert")).to_contain_text("There is no such conversation.")
    expect(page.get_by_role("textbox", name="Question")).to_have_count(0)
    page.get_by_role("link", name="Begin a new one").click()
    page.context.clear_cookies()
    page.get_by_role("textbox", name="Question").fill("say what I wrote")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Your sign-in ended. Sign in to send your question; it is kept.")).to_be_visible()
    stranger.sign_in("dana-sign")
    expect(page.get_by_role("textbox", name="Question")).to_have_value("say what I wrote")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Password")).to_be_visible()


@pytest.mark.requirement("SURF-4")
def test_an_answer_shows_its_calls_and_evidence_that_opens_the_row(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-evidence")
    page = dana.page
    dana.ask("call read_alert")
    dana.open_provenance()
    expect(page.get_by_role("list", name="Tool calls")).to_have_text(re.compile(r"read_alert done, \d+ ms"))
    expect(page.locator(".markdown")).to_contain_text(f"/rows/0/CommandLine {HIDDEN}")
    page.get_by_role("region", name="Evidence").get_by_role("button", name=HIDDEN).click()
    opened = page.get_by_role("region", name="Behind the answer")
    expect(opened.get_by_role("heading", name="Evidence 2")).to_be_visible()
    expect(opened.locator("dl").first).to_have_text(f"Hostws-01CommandLine{HIDDEN}")
    [intent] = [record for record in web.gateway.records() if record["kind"] == "intent"][-1:]
    expect(opened.locator("dl").last).to_contain_text(f"Audit record{intent['audit_id']}")
    page.keyboard.press("Escape")
    expect(opened.get_by_role("heading", name="Evidence 2")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_text(
        ["New conversation", "call read_alert"]
    )


@pytest.mark.requirement("SURF-4")
def test_a_hidden_value_stays_hidden_from_whom_its_clearance_does_not_reach(visit: Visit) -> None:
    erin = visit("erin-low", clearance=Sensitivity.LOW)
    erin.ask("call read_alert")
    expect(erin.page.locator(".markdown")).to_contain_text("/rows/0/Host ws-01")
    erin.open_provenance()
    expect(erin.page.get_by_role("region", name="Evidence")).to_be_visible()
    assert "SECRET" not in erin.page.content()


@pytest.mark.requirement("SURF-4")
def test_a_page_that_is_loaded_again_amid_an_answer_goes_on_with_it(web: RunningWeb, visit: Visit) -> None:
    web.analyst.release.clear()
    dana = visit("dana-reload")
    page = dana.page
    dana.ask("wait for the answer")
    expect(page.locator("article.running .status")).to_contain_text("Thinking...")
    expect(page.locator("article.running .elapsed")).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    page.wait_for_url("**/#/chat/*")
    page.reload()
    expect(page.locator("article.running .status")).to_contain_text("Thinking...")
    web.analyst.release.set()
    expect(page.locator("article.answered .markdown")).to_have_text("for the answer")
    expect(page.get_by_text("The answer is complete.")).to_be_attached()
    assert [question for _, question in web.analyst.asked].count("wait for the answer") == 1


@pytest.mark.requirement("SURF-4")
def test_two_tabs_of_a_conversation_show_the_same_turns(visit: Visit) -> None:
    dana = visit("dana-tabs")
    dana.ask("say first")
    expect(dana.page.locator(".markdown")).to_have_text("first")
    other = dana.tab()
    other.goto(dana.page.url)
    expect(other.locator(".markdown")).to_have_text("first")
    dana.ask("say second")
    expect(other.locator(".markdown")).to_have_text(["first", "second"])
    other.get_by_role("textbox", name="Question").fill("say third")
    other.keyboard.press("Enter")
    expect(dana.page.locator(".markdown")).to_have_text(["first", "second", "third"])
    assert articles(dana.page) == articles(other) == ["say first", "say second", "say third"]


@pytest.mark.requirement("SURF-4")
def test_an_answer_goes_on_behind_a_connection_that_was_lost(web: RunningWeb, visit: Visit) -> None:
    web.analyst.release.clear()
    with cable(web.url) as line:
        dana = visit("dana-lost", url=line.url)
        page = dana.page
        dana.ask("wait until it is back")
        expect(page.locator("article.running .status")).to_contain_text("Thinking...")
        line.cut()
        expect(page.locator("article.running .status")).to_contain_text("The connection is lost; trying again.")
        web.analyst.release.set()
        line.mend()
        expect(page.locator("article.answered .markdown")).to_have_text("until it is back")
    assert [question for _, question in web.analyst.asked].count("wait until it is back") == 1


@pytest.mark.requirement("SURF-4")
def test_a_question_that_was_sent_into_a_lost_connection_is_asked_once(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-once")
    page = dana.page
    dana.context.set_offline(True)
    dana.ask("say it once")
    expect(page.locator("article.running .status")).to_contain_text("The connection is lost; trying again.")
    dana.context.set_offline(False)
    expect(page.locator("article.answered .markdown")).to_have_text("it once")
    assert [question for _, question in web.analyst.asked].count("say it once") == 1


@pytest.mark.requirement("SURF-4")
def test_an_answer_is_stopped_at_the_agent_too_and_the_next_question_is_answered(web: RunningWeb, visit: Visit) -> None:
    web.analyst.release.clear()
    dana = visit("dana-stop")
    dana.ask("wait for ever")
    dana.page.get_by_role("button", name="Stop").click()
    expect(dana.page.locator("article.stopped")).to_contain_text("was stopped before its answer")
    until(lambda: "wait for ever" in web.analyst.stopped)
    dana.ask("say go on")
    expect(dana.page.locator("article.answered .markdown")).to_have_text("go on")


@pytest.mark.requirement("SURF-4")
def test_a_sign_in_that_ended_is_told_and_an_answer_that_failed_says_what_to_do(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-ended")
    dana.ask("fail")
    expect(dana.page.locator("article.failed .refusal")).to_contain_text("Try again in a moment")
    assert "a secret of the inside" not in dana.page.content()
    account = web.accounts["dana-ended"]
    web.web.people.set_password(account.user_id, web.web.passwords.hash("another password"))
    dana.ask("say anything")
    expect(dana.page.get_by_label("Password")).to_be_visible()


@pytest.mark.requirement("SURF-4")
def test_a_conversation_of_somebody_else_is_not_there(web: RunningWeb, visit: Visit) -> None:
    theirs = web.person("finn-theirs").ask("say mine alone")["session_id"]
    dana = visit("dana-theirs", at=f"/#/chat/{theirs}")
    expect(dana.page.get_by_role("alert")).to_contain_text("There is no such conversation.")
    assert "mine alone" not in dana.page.content()


@pytest.mark.requirement("SURF-6")
def test_the_hand_over_report_is_saved_in_each_form_with_hidden_values_on_wish_alone(visit: Visit) -> None:
    dana = visit("dana-report")
    page = dana.page
    dana.ask("call read_alert")
    expect(page.locator("article.answered")).to_have_count(1)

    def saved(name: str, suffix: str) -> str:
        with page.expect_download() as started:
            page.get_by_role("link", name=name).click()
        assert re.fullmatch(rf"handover-.*\.{suffix}", started.value.suggested_filename)
        return str(started.value.path().read_text())

    page.get_by_role("button", name="Save a report").click()
    for text in (saved("a page (HTML)", "html"), saved("Markdown", "md"), saved("its evidence (CSV)", "csv")):
        assert "ws-01" in text
        assert "SECRET" not in text
    page.get_by_label("With the hidden values").check()
    text = saved("Markdown", "md")
    assert HIDDEN in text
    assert "REVEALED" in text
    page.route(re.compile("/export"), lambda route: route.fulfill(status=503, body="{}"))
    page.get_by_role("link", name="Markdown").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("It was refused.")
