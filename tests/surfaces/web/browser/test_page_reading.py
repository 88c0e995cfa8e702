"""Whether people can use the page: by a screen reader, by the keyboard alone, at 390 pixels, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from running_web import RunningWeb, password_of
from visitor import Visit

from sentinel_rag.surfaces.users import Role

FRONTEND = Path(__file__).resolve().parents[4] / "frontend"
ISOLATE = 'call isolate {"host": "ws-01"}'


@pytest.fixture(scope="module")
def axe() -> str:
    """Deque's checker, as the page's packages bring it."""
    return (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text()


def check(page: Page, axe: str, problems: list[Any], view: str) -> None:
    # Through the browser's debugging port: the page's own rules let no script of another source in.
    if page.evaluate("typeof axe") == "undefined":  # a view is no new document
        page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    problems += [(view, each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found["violations"]]
    assert found["passes"] or found["violations"], "axe looked at nothing"
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if too_wide > 0:
        problems.append((view, "scrolls sideways", too_wide))


@pytest.mark.requirement("SURF-4")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_no_view_has_a_violation_or_scrolls_sideways(
    web: RunningWeb, visit: Visit, axe: str, scheme: str, width: int
) -> None:
    problems: list[Any] = []
    name = f"all-{scheme}"
    web.add(name, *Role)
    everybody = visit(color_scheme=scheme, viewport={"width": width, "height": 844})
    page = everybody.page
    page.get_by_label("Name").wait_for()
    check(page, axe, problems, "sign in")
    everybody.sign_in(name)
    expect(page.get_by_role("list", name="Questions to ask next")).to_be_visible()
    check(page, axe, problems, "home")  # whose tools this gateway does not have
    page.keyboard.press("Control+k")
    expect(page.get_by_role("listbox")).to_be_visible()
    check(page, axe, problems, "palette")
    page.keyboard.press("Escape")
    everybody.ask(f"say # A heading\n- an item\n\n```\n{'long' * 60}\n```\n{'x' * 300}\nseverity=High")
    expect(page.locator("article.answered")).to_have_count(1)
    everybody.open_provenance()
    expect(page.get_by_role("region", name="Evidence")).to_be_visible()
    page.get_by_role("button", name="severity=High").click()
    beside = page.get_by_role("region", name="Behind the answer").or_(page.get_by_role("dialog"))
    expect(beside.locator("dl").last).to_be_visible()
    check(page, axe, problems, "evidence")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="This did not help").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page, axe, problems, "what was wrong")
    page.keyboard.press("Escape")
    everybody.ask("call forbidden")
    expect(page.locator(".tools .denied")).to_be_visible()
    everybody.ask(ISOLATE)
    expect(page.get_by_role("region", name="Request: run isolate")).to_be_visible()
    check(page, axe, problems, "answers")
    if width == 390:
        page.get_by_text("What to do with it").click()
    for action in ("Rename", "Start over", "Save a report", "Delete"):
        page.get_by_role("button", name=action, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        check(page, axe, problems, action)
        page.keyboard.press("Escape")
    page.get_by_role("link", name=f"Account of {name}").click()
    page.get_by_label("Name of the program").fill("a program")
    page.get_by_role("button", name="Make a token").click()
    expect(page.get_by_role("button", name="Revoke a program")).to_be_visible()
    check(page, axe, problems, "account")
    for view, ready in VIEWS.items():
        page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
        ready(page)
        check(page, axe, problems, view)
    assert problems == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(","))) < 200) == (scheme == "dark")


def _approvals(page: Page) -> None:
    page.get_by_role("region", name="Waiting").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="What will be written")).to_be_visible()
    page.get_by_text("Why a person is asked").click()


def _audit(page: Page) -> None:
    page.get_by_role("button", name="Verify the journal").click()
    expect(page.get_by_text("✓ Intact")).to_be_visible()
    page.locator(".journal summary").first.click()


def _policy(page: Page) -> None:
    explain = page.get_by_role("region", name="Explain a call")  # the view before has a field of the same name
    explain.get_by_label("Tool").fill("isolate")
    explain.get_by_role("button", name="Explain").click()
    expect(page.get_by_text("Decision: refuse")).to_be_visible()
    page.get_by_text("The text in force").click()


def _users(page: Page) -> None:
    expect(page.get_by_role("region", name="Accounts").get_by_role("row").nth(1)).to_be_visible()


def _system(page: Page) -> None:
    expect(page.get_by_role("heading", name="Everything answers")).to_be_visible()
    expect(page.get_by_role("row", name="Agent")).to_contain_text("works")


VIEWS: dict[str, Callable[[Page], None]] = {
    "Approvals": _approvals,
    "Audit": _audit,
    "Policy": _policy,
    "Users": _users,
    "System": _system,
}


@pytest.mark.requirement("SURF-4")
def test_everything_of_a_question_is_done_by_the_keyboard_alone(web: RunningWeb, visit: Visit) -> None:
    web.add("dana-keys")
    page = visit().page
    page.get_by_label("Name").wait_for()

    def reach(name: str, key: str = "Tab") -> None:
        for _ in range(40):
            page.keyboard.press(key)
            focused = page.evaluate(FOCUSED)
            if focused.startswith(name):
                return
        pytest.fail(f"{key} never came to {name!r}")

    reach("name")
    page.keyboard.type("dana-keys")
    reach("password")
    page.keyboard.type(password_of("dana-keys"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()
    page.keyboard.type("say severity=High")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("and a second line")
    page.keyboard.press("Enter")
    expect(page.locator("article.answered .markdown")).to_have_text("severity=High\nand a second line")
    reach("How this was found", "Shift+Tab")
    page.keyboard.press("Enter")
    reach("severity=High")
    page.keyboard.press("Enter")
    beside = page.get_by_role("region", name="Behind the answer")
    expect(beside.get_by_role("heading", name="Evidence 1")).to_be_visible()
    assert page.evaluate(FOCUSED) == "severity=High"  # who reads on stays where they are
    page.keyboard.press("Escape")
    expect(beside.get_by_role("heading", name="Evidence 1")).to_have_count(0)
    assert page.evaluate(FOCUSED) == "severity=High"
    reach("Ask")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Question")).to_be_focused()


@pytest.mark.requirement("SURF-4")
def test_the_palette_finds_a_view_asks_a_question_and_leaves_by_escape(web: RunningWeb, visit: Visit) -> None:
    page = visit("dana-palette").page
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Ask, or go to an incident, host, account")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")

    def opened() -> None:
        expect(box).to_have_count(0)  # the one before is gone: the keys open it, or close it
        page.keyboard.press("Control+k")
        expect(box).to_be_focused()

    opened()
    page.keyboard.type("knowl")
    expect(page.get_by_role("option").first).to_have_text("Knowledge View")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/knowledge")
    opened()
    page.keyboard.type("4711")
    expect(page.get_by_role("option", name="Incident 4711")).to_be_visible()
    box.fill("say from the palette")
    page.keyboard.press("ArrowUp")  # the last one: the words as a question
    chosen = page.get_by_role("listbox", name="Found").get_by_role("option", selected=True)
    expect(chosen).to_have_text("say from the palette Ask this")
    page.keyboard.press("Enter")
    expect(page.locator("article.answered .markdown")).to_have_text("from the palette")
    # A conversation is found by its title; asked from within a new one it is put there.
    opened()
    page.keyboard.type("from the pal")
    page.keyboard.press("Enter")
    expect(page.locator("article.turn")).to_have_count(1)


FOCUSED = """(() => { const at = document.activeElement; return at.name || (at.textContent || '').trim(); })()"""


@pytest.mark.requirement("SURF-4")
def test_the_page_is_four_small_files_of_this_host(web: RunningWeb, visit: Visit) -> None:
    asked: list[str] = []
    stranger = visit()
    stranger.page.on("request", lambda request: asked.append(request.url.removeprefix(web.url)))
    stranger.page.reload(wait_until="networkidle")
    # The browser asks for the icon when it likes.
    assert set(asked) - {"/page/icon.svg"} == {"/", "/page/page.css", "/page/page.js", "/session"}
    packs = {"Accept-Encoding": "gzip"}
    sent = {name: web.stranger().request("GET", name, headers=packs) for name in {*asked} - {"/session"}}
    assert {name: answer.headers.get("content-encoding") for name, answer in sent.items()} == dict.fromkeys(
        sent, "gzip"
    )
    assert sum(len(answer.content) for answer in sent.values()) < 150_000
