"""What people look after themselves on the page: conversations, how they are answered, password, tokens, sign-ins."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb, password_of
from tests.support.web_client import Client, signed_in
from visitor import Visit


@pytest.mark.requirement("SURF-4")
@pytest.mark.requirement("CHAT-7")
def test_a_conversation_is_renamed_started_over_and_deleted(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-own")
    page = dana.page
    dana.ask("say severity=High")
    expect(page.locator("article.answered")).to_have_count(1)
    page.get_by_role("button", name="Rename").click()
    title = page.get_by_role("dialog").get_by_label("Title")
    expect(title).to_have_value("say severity=High")
    title.fill("Night shift\u202e <b>wave</b>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Night shift\\u202e <b>wave</b>")
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(links).to_have_text(["New conversation", "Night shift\\u202e <b>wave</b>"])

    session_id = web.analyst.asked[-1][0]
    page.get_by_role("button", name="Start over").click()
    page.get_by_role("dialog").get_by_role("button", name="Start over").click()
    expect(page.locator(".notice")).to_contain_text("the agent has forgotten what stands above, but for one fact:")
    expect(page.locator(".notice li")).to_contain_text("Incident 38 is High.")
    page.get_by_role("button", name="Start over").click()
    page.get_by_label("Facts that evidence supports").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Start over").click()
    expect(page.locator(".notice")).to_have_text("Started over: the agent has forgotten what stands above.")
    assert (web.analyst.cleared.count(session_id), web.analyst.forgotten.count(session_id)) == (1, 1)
    expect(page.locator("article.answered")).to_have_count(1)  # to be read
    dana.ask("say go on")
    expect(page.locator("article.answered")).to_have_count(2)
    expect(page.locator(".notice")).to_have_count(0)

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog", name="Delete this conversation?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("article.answered")).to_have_count(2)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(links).to_have_text(["New conversation"])
    expect(page.locator("article.turn")).to_have_count(0)
    assert session_id in web.analyst.deleted


@pytest.mark.requirement("SURF-4")
def test_questions_go_with_the_workspace_zone_and_length_that_the_person_chose(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-choices", timezone_id="Asia/Tokyo")
    page = dana.page
    dana.ask("say first")
    expect(page.locator("article.answered")).to_have_count(1)
    assert web.analyst.options[-1] == {"workspace": None, "timezone": "Asia/Tokyo", "verbosity": None}
    page.get_by_role("link", name="Account of dana-choices").click()
    page.get_by_label("Workspace").select_option("emea")
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_label("Length").select_option("short")
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_text("Kept by this browser")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Workspace")).to_have_value("emea")
    page.get_by_role("link", name="Ask").click()
    dana.ask("say second")
    expect(page.locator("article.answered")).to_have_count(1)
    assert web.analyst.options[-1] == {"workspace": "emea", "timezone": "Europe/Berlin", "verbosity": "short"}
    # What is kept may be of another version, or of somebody at this browser: it never keeps the page from working.
    wrong = '{"workspace": "gone", "timezone": "Nowhere/<b>", "verbosity": {"x": 1}, "more": null}'
    page.evaluate("(text) => localStorage.setItem('sentinel-preferences', text)", wrong)
    page.reload()
    dana.ask("say third")
    expect(page.locator("article.answered")).to_have_count(2)
    assert web.analyst.options[-1] == {"workspace": None, "timezone": "Asia/Tokyo", "verbosity": None}


@pytest.mark.requirement("SURF-4")
def test_a_token_is_shown_once_works_and_is_revoked(web: RunningWeb, visit: Visit) -> None:
    dana = visit("dana-tokens", at="/#/account")
    page = dana.page
    section = page.get_by_role("region", name="Tokens")
    section.get_by_label("Name of the program").fill("shift-report")
    section.get_by_role("button", name="Make a token").click()
    token = section.locator("code.token").inner_text()
    program = Client(web.url, token=token)
    assert program.get("/session").body["name"] == "dana-tokens"
    section.get_by_role("button", name="I have kept it").click()
    page.reload()
    expect(section.get_by_text("shift-report")).to_be_visible()
    assert token not in page.content()
    section.get_by_role("button", name="Revoke shift-report").click()
    expect(section.get_by_text("There is none.")).to_be_visible()
    assert program.get("/session").status == 401


@pytest.mark.requirement("SURF-4")
def test_a_password_is_changed_and_every_sign_in_ended(web: RunningWeb, visit: Visit) -> None:
    dana, elsewhere = visit("dana-password", at="/#/account"), visit("dana-password")
    page = dana.page
    section = page.get_by_role("region", name="Password")

    def change(old: str, new: str, again: str) -> None:
        section.get_by_label("Password so far").fill(old)
        section.get_by_label("New password (12").fill(new)
        section.get_by_label("New password, again").fill(again)
        section.get_by_role("button", name="Change it").click()

    old, new = password_of("dana-password"), "seven green lamps at noon"
    change(old, new, "seven green lamps")
    expect(section.get_by_role("alert")).to_contain_text("not the same twice")
    change(old, "short", "short")
    expect(section.get_by_role("alert")).to_contain_text("12 to 256 characters")
    change("a wrong password", new, new)
    expect(section.get_by_role("alert")).to_contain_text("no such name with this password")
    change(old, new, new)
    expect(section.get_by_role("status")).to_contain_text("Changed.")
    elsewhere.ask("say anything")
    expect(elsewhere.page.get_by_label("Name", exact=True)).to_be_visible()

    third = web.stranger().post("/sign-in", {"name": "dana-password", "password": new})
    assert third.status == 200
    signed = signed_in(web.url, third)
    program = web.program(signed)
    page.get_by_role("button", name="Sign out everywhere").click()  # with the token of changes of the new sign-in
    expect(page.get_by_label("Name", exact=True)).to_be_visible()
    assert signed.get("/session").status == 401
    assert program.get("/session").status == 200


@pytest.mark.requirement("SURF-4")
def test_it_is_all_done_by_the_keyboard_alone_and_a_dialog_gives_the_focus_back(visit: Visit) -> None:
    dana = visit("dana-own-keys")
    page = dana.page
    dana.ask("say hello")
    expect(page.locator("article.answered")).to_have_count(1)

    def reach(name: str, key: str = "Tab") -> None:
        for _ in range(60):
            page.keyboard.press(key)
            if page.evaluate(FOCUSED) == name:
                return
        pytest.fail(f"{key} never came to {name!r}")

    reach("Rename", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    reach("title")
    page.keyboard.press("Control+a")
    page.keyboard.type("By hand")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    expect(page.get_by_role("button", name="Rename")).to_be_focused()
    reach("Save a report")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Save a report")).to_be_focused()

    reach("Account of dana-own-keys", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Tokens")).to_be_visible()
    reach("name")
    page.keyboard.type("by-hand")
    page.keyboard.press("Enter")
    expect(page.locator("code.token")).to_be_visible()
    reach("I have kept it", "Shift+Tab")
    page.keyboard.press("Enter")
    reach("Revoke")
    page.keyboard.press("Enter")
    expect(page.get_by_text("There is none.")).to_be_visible()


FOCUSED = """(() => { const at = document.activeElement; return at.name || (at.textContent || '').trim(); })()"""
