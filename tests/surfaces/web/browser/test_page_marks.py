"""What the check says of an answer, on the page: marks in its text, the rows behind a sentence, and the choice to see
what was found alone; by mouse and keyboard, in words as well as in colour, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb
from test_page_reading import FRONTEND
from visitor import Visit

pytestmark = pytest.mark.requirement("SURF-4")

CITED = (
    "values_found 1 Incident **<number=124>** is <severity=High>.|not_found 0 It came from <ip=203.0.113.9>.|"
    "contradicted 2 Incident <number=125> is <severity=Low~Medium>.|own_words 0 Look at the mailbox rules."
)


def test_marks_stand_in_the_text_and_a_chip_opens_what_is_behind_its_sentence(web: RunningWeb, visit: Visit) -> None:
    ada = visit("ada-marks")
    ada.ask(f"cite {CITED}")
    turn = ada.page.locator("article.turn")
    expect(turn).to_have_attribute("aria-busy", "false")
    expect(turn.locator("u.found")).to_have_text(["124", "High", "125"])
    expect(turn.locator("u.missing")).to_have_text(["203.0.113.9"])
    expect(turn.locator("u.other")).to_have_text(["Low"])
    expect(turn.get_by_text("1 compared, 1 not found, 1 contradicted, 1 own words")).to_be_visible()
    expect(turn.get_by_role("button", name="not found: no cited row has it")).to_have_text("! not found")
    turn.get_by_role("button", name="contradicted: the cited row says otherwise; source 2").click()
    drawer = ada.page.get_by_role("region", name="Behind the answer")
    expect(drawer.locator("blockquote")).to_have_text("Incident 125 is Low.")
    expect(drawer).to_contain_text("✗ What it cites says something else: the cited row says otherwise")
    expect(drawer.get_by_role("heading", name="Source 2: c1 query_incidents, row 2")).to_be_visible()
    expect(drawer.locator("dl > .lit.other")).to_have_text("severity ✗ differsMedium")
    expect(drawer.locator("dl > .lit.found")).to_have_text("number ✓ found125")
    ada.page.keyboard.press("Escape")  # back to what stands there before somebody chooses
    expect(drawer.locator("blockquote")).to_have_text("Incident **124** is High.")
    ada.page.reload()  # from the record it is the same, with the call that the row comes from
    source = ada.page.locator("article.turn").get_by_role("button", name="source 1", exact=True)
    source.focus()
    ada.page.keyboard.press("Enter")
    expect(source).to_have_attribute("aria-pressed", "true")
    expect(drawer.locator("dl > .lit.found")).to_have_text(["number ✓ found124", "severity ✓ foundHigh"])
    expect(drawer.get_by_text("a-1")).to_be_visible()
    ada.page.keyboard.press("Escape")
    expect(source).to_be_focused()


def test_who_wants_sees_what_was_found_alone_and_how_much_is_hidden(web: RunningWeb, visit: Visit) -> None:
    ben = visit("ben-marks")
    ben.ask(f"cite {CITED}")
    turn = ben.page.locator("article.turn")
    expect(turn).to_have_attribute("aria-busy", "false")
    turn.get_by_role("checkbox", name="Show only what was found").check()
    expect(turn.locator(".markdown")).to_have_text("Incident 124 is High.1 Look at the mailbox rules.")
    expect(turn.get_by_text("(2 hidden)")).to_be_visible()
    ben.page.reload()
    turn = ben.page.locator("article.turn")
    expect(turn.get_by_text("203.0.113.9").locator("visible=true")).to_have_count(1)  # in the question
    turn.get_by_role("checkbox", name="Show only what was found").uncheck()
    expect(turn.locator("u.missing")).to_have_text(["203.0.113.9"])


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 768), ("light", 380)])
def test_marks_can_be_read_by_everybody_wide_and_narrow(web: RunningWeb, visit: Visit, scheme: str, width: int) -> None:
    cora = visit("cora-marks", color_scheme=scheme, viewport={"width": width, "height": 800})
    cora.ask(f"cite {CITED}")
    turn = cora.page.locator("article.turn").last
    expect(turn).to_have_attribute("aria-busy", "false")
    cora.page.evaluate((FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text())
    run = "axe.run(document, {resultTypes: ['violations']})"
    assert cora.page.evaluate(run)["violations"] == []
    turn.get_by_role("button", name="source 1", exact=True).click()
    assert cora.page.evaluate(run)["violations"] == []
    beside = cora.page.get_by_role("region", name="Behind the answer")
    drawer = beside.or_(cora.page.get_by_role("dialog", name="Evidence")).bounding_box()
    assert drawer is not None
    assert drawer["x"] >= 0
    assert drawer["x"] + drawer["width"] <= width
    assert cora.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
