"""What a lead does with accounts on the page: add, change, reset, disable, end a token; each step is confirmed."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from running_web import RunningWeb
from test_page_reading import FRONTEND, check
from visitor import Visit

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.surfaces.users import Role

LEAD = (Role.ANALYST, Role.APPROVER, Role.ADMIN)
CHOSEN = "seven green lamps at noon"


@pytest.mark.requirement("SURF-4")
def test_an_account_is_added_joined_changed_reset_and_disabled(web: RunningWeb, visit: Visit) -> None:
    axe = (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text()
    problems: list[Any] = []
    name, narrow = "nora-page", {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}
    lead = visit("lead-page", *LEAD, at="/#/users", **narrow)
    page = lead.page
    page.get_by_role("button", name="Add a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    expect(dialog.get_by_role("checkbox", name="auditor")).to_be_disabled()  # not the lead's to give
    dialog.get_by_role("checkbox", name="approver").check()
    check(page, axe, problems, "add")
    dialog.get_by_role("button", name="Add").click()

    invitation = page.locator("code.token")
    link = invitation.inner_text().removeprefix(web.url)
    check(page, axe, problems, "invitation")
    guest = visit(at=link, **narrow)
    joining = guest.page
    joining.get_by_label("New password (12").fill(CHOSEN)
    joining.get_by_label("New password, again").fill("something else")
    joining.get_by_role("button", name="Choose it").click()
    expect(joining.get_by_role("alert")).to_contain_text("not the same twice")
    check(joining, axe, problems, "join")
    joining.get_by_label("New password, again").fill(CHOSEN)
    joining.get_by_role("button", name="Choose it").click()
    expect(joining.get_by_role("link", name=f"Account of {name}")).to_be_visible()
    assert link.rpartition("/")[2] not in joining.url
    second = visit(at=link).page
    second.get_by_label("New password (12").fill(CHOSEN)
    second.get_by_label("New password, again").fill(CHOSEN)
    second.get_by_role("button", name="Choose it").click()
    expect(second.get_by_role("alert")).to_contain_text("There is no such invitation, or it was used or is over.")

    page.get_by_role("button", name="I have given it").click()
    rights = page.get_by_role("region", name="Rights")
    rights.get_by_role("checkbox", name="approver").uncheck()
    rights.get_by_role("button", name="Change").click()
    expect(dialog.get_by_role("row", name="Roles")).to_contain_text("analyst, approver")
    check(page, axe, problems, "change")
    dialog.get_by_role("button", name="Do it").click()
    expect(page.get_by_text(f"Done: {name} is analyst.")).to_be_visible()
    assert web.web.people.find(name).roles == {Role.ANALYST}

    program = web.program(web.stranger_as(name, CHOSEN), "night-report")
    page.reload()
    page.get_by_role("button", name="Revoke night-report").click()
    expect(page.get_by_role("region", name="Tokens")).to_contain_text("There is none.")
    assert program.get("/session").status == 401

    confirmed(page, "Reset the password")
    expect(invitation).to_be_visible()
    joining.reload()
    expect(joining.get_by_label("Name", exact=True)).to_be_visible()  # the sign-in has ended
    confirmed(page, "Disable")
    expect(page.get_by_text(f"Done: {name} is disabled.")).to_be_visible()
    expect(page.get_by_role("button", name="Change, and make it live")).to_be_visible()
    check(page, axe, problems, "disabled")
    page.get_by_role("link", name="Users").first.click()
    expect(page.get_by_role("row", name=name)).to_contain_text("disabled")
    assert problems == []


def confirmed(page: Page, what: str) -> None:
    page.get_by_role("button", name=what).click()
    page.get_by_role("dialog").get_by_role("button", name="Do it").click()


@pytest.mark.requirement("SURF-4")
def test_what_a_lead_may_not_do_is_said_and_not_done(web: RunningWeb, visit: Visit) -> None:
    web.add("otto-above", Role.ANALYST, Role.AUDITOR, clearance=Sensitivity.HIGH)
    lead = visit("lead-refused", *LEAD, clearance=Sensitivity.MEDIUM, at="/#/users/otto-above")
    page = lead.page
    before = web.web.people.find("otto-above")
    page.get_by_role("button", name="Reset the password").click()
    page.get_by_role("dialog").get_by_role("button", name="Do it").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "Nobody gives or changes what they do not have themselves: audit, clearance HIGH."
    )
    page.keyboard.press("Escape")
    page.get_by_role("region", name="Rights").get_by_role("button", name="Change").click()
    page.get_by_role("dialog").get_by_role("button", name="Do it").click()
    expect(page.get_by_role("alert")).to_contain_text("Nobody gives or changes what they do not have themselves")
    assert web.web.people.find("otto-above") == before

    page.goto(f"{web.url}/#/users/lead-refused")
    page.reload()
    expect(page.get_by_text("This is your own account")).to_be_visible()
    expect(page.get_by_role("checkbox", name="analyst")).to_be_disabled()
    expect(page.get_by_role("button", name="Disable")).to_have_count(0)
    page.goto(f"{web.url}/#/users/nobody-here")
    expect(page.get_by_text("There is no account of this name.")).to_be_visible()

    anna = visit("anna-denied", at="/#/users")
    expect(anna.page.get_by_text("Users is for people with the role admin.")).to_be_visible()
