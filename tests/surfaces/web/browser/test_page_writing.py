"""An answer that is still being written: its text grows on the page, stays where it is stopped, goes where it is taken
back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb
from visitor import Visit

pytestmark = [pytest.mark.requirement("CHAT-14"), pytest.mark.requirement("SURF-4")]


def test_text_is_read_while_it_is_written_and_stays_where_it_is_stopped(web: RunningWeb, visit: Visit) -> None:
    web.analyst.release.clear()
    ida = visit("ida-writing")
    ida.ask("write **Three** are open.|...| The last one is 40.")
    turn = ida.page.locator("article.turn")
    expect(turn.get_by_text("Three are open.")).to_be_visible()
    expect(turn.locator("strong")).to_have_text("Three")
    expect(turn.locator(".status")).to_contain_text("Writing the answer...")
    expect(turn).to_have_attribute("aria-busy", "true")
    turn.get_by_role("button", name="Stop").click()
    expect(turn).to_have_attribute("aria-busy", "false")
    expect(turn.get_by_text("The question was stopped before its answer.")).to_be_visible()
    expect(turn.get_by_text("Three are open.")).to_be_visible()
    expect(turn.locator("p").get_by_text("The last one is 40.")).to_have_count(0)
    ida.page.reload()
    expect(ida.page.locator("article.turn strong")).to_have_text("Three")


def test_what_is_taken_back_leaves_the_page_and_the_answer_is_there_once(web: RunningWeb, visit: Visit) -> None:
    web.analyst.release.clear()
    jon = visit("jon-writing")
    jon.ask("write Let me look at them.|<|...|Three are open.| None is High.")
    turn = jon.page.locator("article.turn")
    expect(turn.get_by_text("Writing...")).to_be_visible()  # the status line that came with it
    expect(turn.locator("p").get_by_text("Let me look at them.")).to_have_count(0)
    web.analyst.release.set()
    expect(turn).to_have_attribute("aria-busy", "false")
    expect(turn.get_by_text("Three are open. None is High.")).to_have_count(1)
    jon.page.reload()
    expect(jon.page.locator("article.turn").get_by_text("Three are open. None is High.")).to_have_count(1)
