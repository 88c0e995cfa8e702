"""What people do on the page beside asking: decide approvals, verify the audit, explain the policy."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect
from running_web import RunningWeb
from visitor import Visit, Visitor

from sentinel_rag.audit import JournalReader
from sentinel_rag.surfaces.users import Role
from waiting import until

NUMBERS = "items => items.map(item => item.value)"
ISOLATE = 'call isolate {"host": "ws-01"}'


def calls_of_isolate(web: RunningWeb) -> int:
    """How often the tool ran."""
    intents = [each for each in web.gateway.records() if each["kind"] == "intent" and each["tool"] == "isolate"]
    return len(intents)


def journal_of(web: RunningWeb) -> list[dict[str, Any]]:
    """Every record, oldest first."""
    return [entry.record for entry in JournalReader(web.gateway.state.database.path).read(0, 1_000)]


def expect_records(entries: Locator, wanted: list[dict[str, Any]], newest: int) -> None:
    """Wait until the page lists the wanted records, newest first; some with numbers over `newest` may have come."""
    numbers = [each["seq"] for each in reversed(wanted)]
    until(lambda: [each for each in entries.evaluate_all(NUMBERS) if each <= newest] == numbers)


def newest_request(visitor: Visitor) -> Locator:
    """What the newest answer shows of a call that a person is asked about."""
    return visitor.page.locator("article.turn").last.get_by_role("region", name="Request: run isolate: ws-01")


def ask_isolate(visitor: Visitor, nth: int) -> None:
    visitor.ask(ISOLATE)
    expect(visitor.page.locator("article.turn:not(.running)")).to_have_count(nth)


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
def test_an_approver_reads_the_story_of_the_labels_approves_and_the_call_passes_once(
    web: RunningWeb, visit: Visit
) -> None:
    dana, finn = visit("dana-page"), visit("finn-page", Role.APPROVER)
    dana.ask("call read_alert")
    expect(dana.page.locator("article.answered")).to_have_count(1)
    ask_isolate(dana, 2)
    asked = dana.page.locator("article.turn").nth(1).get_by_role("region", name="Request: run isolate: ws-01")
    expect(asked).to_contain_text("Nothing is done yet. Another person decides")
    expect(asked).to_contain_text("Hostws-01")
    expect(dana.page.locator("article.turn").last.locator(".denied")).to_have_count(0)  # waiting is not failing
    assert calls_of_isolate(web) == 0

    page = finn.page
    # Tests before this one may have left requests of theirs.
    expect(page.get_by_role("navigation", name="Views").get_by_role("link")).to_have_text(
        [re.compile(r"^Approvals \d+ waiting$"), "System"]
    )
    page.get_by_role("region", name="Waiting").get_by_role(
        "link", name="dana-page wants to use isolate with host “ws-01”"
    ).click()
    story = page.get_by_role("article")
    expect(page.get_by_role("heading", level=1)).to_have_text("Dana-page wants to use isolate with host “ws-01”")
    expect(story.get_by_role("region", name="In the words of dana-page")).to_contain_text(ISOLATE)
    expect(story).to_contain_text("stands in the words below")
    page.get_by_text("Why a person is asked").click()
    expect(story).to_contain_text("which changes something in your own systems")
    expect(story).to_contain_text("ws-01")
    expect(story).to_contain_text("The policy lets nobody make this call without a person's approval.")
    expect(story).to_contain_text("Rule isolate_asks")
    expect(story).to_contain_text("read_alert raised it to LOW, UNTRUSTED")
    page.get_by_label("Comment").fill("checked with the owner")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("approved, not used yet")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_hidden()

    # The asker sees it happen, with the note, and does it with one press.
    expect(asked).to_contain_text("finn-page approved it: “checked with the owner”")
    asked.get_by_role("button", name="Do it now").click()
    expect(dana.page.locator("article.turn:not(.running)")).to_have_count(3)
    expect(newest_request(dana)).to_have_count(0)
    expect(asked).to_contain_text("and it ran at")
    assert calls_of_isolate(web) == 1
    ask_isolate(dana, 4)
    expect(newest_request(dana)).to_contain_text("Nothing is done yet.")
    assert calls_of_isolate(web) == 1
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("approved and used")
    expect(story).to_contain_text("checked with the owner")


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("APPR-1")
def test_a_denied_approval_lets_nothing_run_and_nobody_decides_their_own(web: RunningWeb, visit: Visit) -> None:
    before = calls_of_isolate(web)
    gail = visit("gail-page", Role.ANALYST, Role.APPROVER)
    ask_isolate(gail, 1)
    gail.page.get_by_role("link", name="Approvals").click()
    gail.page.get_by_role("region", name="Waiting").get_by_role("link", name="gail-page").click()
    expect(gail.page.get_by_role("article")).to_contain_text("The agent asked this for you, so another person decides")
    expect(gail.page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)

    hugo = visit("hugo-page", Role.APPROVER, at=gail.page.url.removeprefix(web.url))
    hugo.page.get_by_label("Comment").fill("not this host")
    hugo.page.get_by_role("button", name="Deny").click()
    expect(hugo.page.get_by_role("status")).to_contain_text("denied")
    hugo.page.get_by_role("navigation", name="Views").get_by_role("link", name="Approvals").click()
    newest = hugo.page.get_by_role("region", name="Decided or over").get_by_role("row").nth(1)
    expect(newest).to_contain_text("gail-page wants to use isolate")  # the newest decision on top, with who and when
    expect(newest).to_contain_text("denied")
    expect(newest).to_contain_text("hugo-page, 20")
    gail.page.get_by_role("link", name="Ask", exact=True).click()
    gail.page.get_by_role("link", name=ISOLATE).click()
    expect(gail.page.locator("article.turn")).to_have_count(1)
    expect(newest_request(gail)).to_contain_text("hugo-page denied it: “not this host”. Nothing was done.")
    ask_isolate(gail, 2)
    expect(newest_request(gail)).to_contain_text("hugo-page denied it: “not this host”. Nothing was done.")
    newest.get_by_role("link").first.click()
    hugo.page.get_by_role("button", name="Take the no back").click()
    expect(hugo.page.get_by_role("region", name="Decide")).to_contain_text("The no binds no more")
    ask_isolate(gail, 3)
    expect(newest_request(gail)).to_contain_text("Nothing is done yet.")
    hugo.page.get_by_role("navigation", name="Views").get_by_role("link", name="Approvals").click()
    hugo.page.get_by_role("region", name="Waiting").get_by_role("link", name="gail-page").click()
    hugo.page.get_by_role("button", name="Deny").click()  # nothing is left that waits
    expect(hugo.page.get_by_role("status")).to_contain_text("denied")
    assert calls_of_isolate(web) == before


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("APPR-1")
def test_a_change_that_the_asker_may_confirm_is_confirmed_where_it_was_asked(web: RunningWeb, visit: Visit) -> None:
    labels = [each for each in web.gateway.records() if each["kind"] == "intent" and each["tool"] == "label"]
    ida = visit("ida-confirms")
    ida.ask('call label {"host": "ws-09"}')
    asked = ida.page.locator("article.turn").get_by_role("region", name="Request: run label: ws-09")
    expect(asked).to_contain_text("waits for you")
    asked.get_by_role("button", name="Confirm, and do it").click()
    expect(ida.page.locator("article.turn:not(.running)")).to_have_count(2)
    expect(asked).to_contain_text("ida-confirms approved it, and it ran at")
    done = [each for each in web.gateway.records() if each["kind"] == "intent" and each["tool"] == "label"]
    assert len(done) == len(labels) + 1


@pytest.mark.requirement("SURF-4")
def test_an_answer_is_judged_with_a_reason_that_the_server_keeps(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-thumbs")
    page = dana.page
    dana.ask("say hello")
    page.get_by_role("button", name="This did not help").click()
    page.get_by_role("radio", name="Something was missing").check()
    page.get_by_label("In your words").fill("the second host")
    page.get_by_role("button", name="Keep it").click()
    judged = page.get_by_role("button", name="This did not help")
    expect(judged).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(judged).to_have_text("Something was missing: the second host")
    judged.click()  # taken back
    expect(judged).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="This helped").click()
    page.reload()
    expect(page.get_by_role("button", name="This helped")).to_have_attribute("aria-pressed", "true")


@pytest.mark.requirement("SURF-4")
def test_a_question_is_asked_again_or_edited_first(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-edits")
    page = dana.page
    dana.ask("say hello")
    expect(page.locator("article.answered")).to_have_count(1)
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator("article.answered h2")).to_have_text(["say hello", "say hello"])
    page.get_by_role("button", name="Edit the question").first.click()
    box = page.get_by_role("textbox", name="Question")
    expect(box).to_be_focused()
    expect(box).to_have_value("say hello")
    box.press("End")
    box.press_sequentially(" there")
    box.press("Enter")
    expect(page.locator("article.answered .markdown").last).to_have_text("hello there")


@pytest.mark.requirement("SURF-4")
def test_a_question_is_kept_asked_again_and_let_go(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-keeps")
    page = dana.page
    dana.ask("say hello")
    page.get_by_role("button", name="Keep the question").click()
    expect(page.get_by_role("button", name="Keep the question")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Home").click()
    page.reload()
    kept = page.get_by_role("list", name="Questions that you keep")
    kept.get_by_role("button", name="say hello", exact=True).click()
    expect(page.locator("article.answered .markdown")).to_have_text("hello")
    page.keyboard.press("Control+k")
    page.keyboard.type("hello")
    expect(page.get_by_role("option", name="say hello Ask again")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="New conversation").click()
    kept.get_by_role("button", name="Keep no more: say hello").click()
    expect(kept).to_have_count(0)


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("APPR-3")
def test_a_yes_that_did_not_run_is_not_told_as_running(web: RunningWeb, visit: Visit) -> None:
    web.person("gina-unrun").ask(ISOLATE)
    hal = web.person("hal-unrun", Role.APPROVER)
    pending = hal.get("/approvals?state=pending").body["approvals"]
    [asked] = [each for each in pending if each["title"].startswith("gina-unrun")]
    assert hal.post(f"/approvals/{asked['approval_id']}/decision", {"decision": "approve"}).status == 200
    new = "a" * len(asked["approval_id"])
    came_of_it = {"status": "denied", "audit_id": new, "reason": "approval_required", "approval_id": new}

    def changed_meanwhile(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "runs_at_yes": True, "outcome": came_of_it})

    ivo = visit("ivo-unrun", Role.APPROVER)
    ivo.page.route(f"**/approvals/{asked['approval_id']}", changed_meanwhile)
    ivo.page.goto(f"{web.url}/#/approvals/{asked['approval_id']}")
    course = ivo.page.get_by_role("region", name="Course of the request")
    expect(course).to_contain_text("approved and did not run: what it would change had changed since it was asked.")
    expect(course).to_contain_text("it did not run")
    again = course.get_by_role("link", name="The request as it reads now")
    expect(again).to_have_attribute("href", f"#/approvals/{new}")


@pytest.mark.requirement("SURF-4")
def test_a_call_that_the_policy_denies_is_shown_as_denied(visit: Visit) -> None:
    dana = visit("dana-denied")
    dana.ask("call forbidden")
    expect(dana.page.locator(".tools .denied")).to_contain_text("forbidden denied")
    expect(dana.page.locator(".markdown")).to_contain_text("Access denied by security policy.")


@pytest.mark.requirement("SURF-4")
def test_an_auditor_reads_the_journal_from_its_newest_record_filters_and_verifies_it(
    web: RunningWeb, visit: Visit
) -> None:
    dana = web.person("dana-audited")
    dana.ask("call read_alert")
    session = dana.ask("call read_alert")["session_id"]
    vera = visit("vera-page", Role.AUDITOR)
    page = vera.page
    entries = page.locator(".journal > li")
    expect(entries.first).to_be_visible()
    shown = entries.evaluate_all(NUMBERS)
    records = journal_of(web)  # what other tests left to be recorded may come at any moment
    assert shown == list(range(shown[0], max(0, shown[0] - 50), -1))
    assert shown[0] >= max(each["seq"] for each in records if each.get("session_id") == session)
    page.get_by_role("button", name="Verify the journal").click()
    expect(page.get_by_role("status")).to_contain_text("none was changed, removed or put in between.")
    expect(page.get_by_role("status")).to_contain_text("✓ Intact: ")

    page.get_by_label("Kind").fill("intent")
    page.get_by_label("Tool").fill("read_alert")
    page.get_by_role("button", name="Find").click()
    newest = records[-1]["seq"]
    intents = [each for each in records if each["kind"] == "intent" and each["tool"] == "read_alert"]
    expect_records(entries, intents, newest)
    expect(page.get_by_text("This is the beginning of the journal.")).to_be_visible()
    last = entries.and_(page.locator(f"li[value='{intents[-1]['seq']}']"))
    last.get_by_text("called", exact=True).click()
    expect(last.locator("dl")).to_contain_text(intents[-1]["audit_id"])
    last.get_by_role("link", name="Only this session").click()
    expect(page.get_by_label("Session")).to_have_value(session)
    expect_records(entries, [each for each in records if each.get("session_id") == session], newest)
    page.get_by_role("button", name="All").click()
    page.get_by_label("Person or key").fill("dana-audited")
    page.keyboard.press("Enter")
    key_id = web.accounts["dana-audited"].key_id
    hers = {each["session_id"] for each in records if each["kind"] == "session" and each["key_id"] == key_id}
    of_hers = [each for each in records if each.get("key_id") == key_id or each.get("session_id") in hers]
    expect_records(entries, of_hers, newest)
    assert any(each["kind"] == "intent" for each in of_hers)  # what the agent did for her
    expect(entries.last).to_contain_text("dana-audited")

    page.goto(f"{web.url}/#/audit/{intents[-1]['audit_id']}")
    expect(page.get_by_role("region", name="One call")).to_contain_text(intents[-1]["audit_id"])


@pytest.mark.requirement("SURF-4")
def test_what_waits_for_a_person_is_no_refusal_in_the_journal(web: RunningWeb, visit: Visit) -> None:
    dana = web.person("dana-held")
    for question in ('call isolate {"host": "ws-held"}', "call forbidden"):
        session = dana.ask(question)["session_id"]
    vera = visit("vera-held", Role.AUDITOR)
    expect(vera.page.locator(".journal > li").first).to_be_visible()
    records = [each for each in journal_of(web) if each["kind"] == "refusal" and each.get("tool") != "read_alert"]
    held = next(each for each in reversed(records) if each.get("approval_id"))
    refused = next(each for each in reversed(records) if each.get("session_id") == session)
    for record, told in ((held, "asked to run"), (held, "waits for a yes"), (refused, "was refused")):
        vera.page.goto(f"{web.url}/#/audit/{record['audit_id']}")
        expect(vera.page.get_by_role("region", name="One call").locator("summary").first).to_contain_text(told)


@pytest.mark.requirement("SURF-4")
def test_a_long_journal_is_read_back_page_by_page(web: RunningWeb, visit: Visit) -> None:
    while len(journal_of(web)) <= 50:
        web.gateway.open_session()
    vera = visit("vera-pages", Role.AUDITOR)
    entries = vera.page.locator(".journal > li")
    expect(entries).to_have_count(50)
    while (older := vera.page.get_by_role("button", name="Show older records")).count():
        count = entries.count()
        older.click()
        expect(entries.nth(count)).to_be_visible()
    shown = entries.evaluate_all(NUMBERS)
    assert shown == list(range(shown[0], 0, -1))


@pytest.mark.requirement("SURF-4")
def test_a_journal_that_was_changed_is_told_as_not_intact(web: RunningWeb, visit: Visit, tmp_path: Path) -> None:
    changed = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(web.gateway.state.database.path)) as source, closing(sqlite3.connect(changed)) as copy:
        source.backup(copy)
        copy.execute("UPDATE journal SET record = CAST(replace(record, 'key', 'kex') AS BLOB) WHERE seq = 3")
        copy.commit()
    web.web.verify, whole = JournalReader(changed).verify, web.web.verify
    try:
        vera = visit("vera-broken", Role.AUDITOR)
        vera.page.get_by_role("button", name="Verify the journal").click()
        expect(vera.page.get_by_role("status")).to_contain_text("✗ NOT INTACT at record 3")
    finally:
        web.web.verify = whole


@pytest.mark.requirement("SURF-4")
def test_an_admin_reads_the_policy_and_explains_a_call(visit: Visit) -> None:
    adam = visit("adam-page", Role.ADMIN)
    page = adam.page
    page.get_by_role("link", name="Policy").click()
    rules = page.get_by_role("region", name="What an agent may do")
    for tool, then in (
        ("read_alert", "runs without asking"),
        ("isolate", "runs once another person has approved it"),
        ("label", "runs once the person who asked has confirmed it"),
        ("forbidden", "never"),
    ):
        expect(rules.get_by_role("row", name=tool)).to_contain_text(then)
    page.get_by_label("Tool").fill("isolate")
    page.get_by_label("Arguments, as JSON").fill('{"host": "ws-01"}')
    page.get_by_label("What the session has read").select_option("HIGH/UNTRUSTED")
    page.get_by_label("The person's words").fill("isolate ws-01 please")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("status")).to_contain_text(
        "carries HIGH/UNTRUSTED: a literal carries the session's context"
    )
    expect(page.get_by_role("status")).to_contain_text("isolate_asks")
    page.get_by_label("Arguments, as JSON").fill("[1]")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("alert")).to_contain_text("The arguments are no JSON object.")
    page.get_by_text("The text in force").click()
    expect(page.get_by_text("rule_id: isolate_asks")).to_be_visible()
