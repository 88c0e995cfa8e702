"""An analyst's week on the page without the terminal: tasks of `tests/surfaces/web/tasks/analyst.yaml`, in one browser,
over the whole product. Each step ends where its task says, and shows what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect
from tests.support.chromium import LONGEST_WAIT_MS

pytestmark = pytest.mark.requirement("SURF-4")

ROOT = Path(__file__).parents[2]
TASKS = {
    each["id"]: each for each in yaml.safe_load((ROOT / "tests/surfaces/web/tasks/analyst.yaml").read_text())["tasks"]
}
SHIPPED = len(list((ROOT / "data" / "playbooks").glob("*.md")))
PASSWORD = "lantern over wet gravel"
PLAYBOOK = (
    "# Lost or stolen laptop\n\n## Containment\n\nLock the laptop in Intune; the shift lead decides about wiping.\n"
)
SIGN_INS = (
    "TimeGenerated,UserPrincipalName,IPAddress,ResultType,AppDisplayName\n"
    "2026-11-28T10:00:00Z,kim@fabrikam.example,192.0.2.77,0,Portal\n"
    "2026-11-28T10:05:00Z,kim@fabrikam.example,192.0.2.77,50126,Portal\n"
)


VIP = "Account,Why\nkim@fabrikam.example,the head of sales\nlee@fabrikam.example,<b>bold</b>\n"


@pytest.fixture(scope="module")
def url(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    own = generated.afresh(tmp_path_factory.mktemp("tasks") / "home")
    own.settings["SENTINEL_EMBEDDINGS"] = "none"
    for name, roles in {"ada": ("analyst", "admin"), "dana": ("analyst",)}.items():
        given = [part for role in roles for part in ("--role", role)]
        done = own.run("users", "add", name, "--password-stdin", *given, stdin=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
    with own.up("--web") as said:
        yield str(said["web"]["url"])


def signed_in(chromium: Browser, url: str, name: str, **options: Any) -> Page:
    context = chromium.new_context(reduced_motion="reduce", accept_downloads=True, **options)
    context.set_default_timeout(LONGEST_WAIT_MS)
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out", exact=True).wait_for()
    return page


def go(page: Page, place: str) -> None:
    page.evaluate("to => { location.hash = to; }", f"/{place}")


def ask(page: Page, question: str) -> Locator:
    """The answer to a question that goes on in the open conversation."""
    before = page.locator("article.answered").count()
    box = page.get_by_role("textbox", name="Question")
    box.fill(question)
    box.press("Enter")
    expect(page.locator("article.answered")).to_have_count(before + 1)
    return page.locator("article.turn").last


def take(page: Page | Locator, name: str, content: str | bytes) -> Locator:
    """What is told of a file that was chosen: the first place for files is the one of the view."""
    data = content if isinstance(content, bytes) else content.encode()
    page.locator("input[type=file]").first.set_input_files({"name": name, "mimeType": "text/plain", "buffer": data})
    told = page.get_by_role("list", name="Files").get_by_role("listitem").filter(has_text=name).last
    expect(told.get_by_text("done").or_(told.get_by_text("not taken"))).to_be_visible()
    return told


def queue(page: Page) -> None:
    row = page.get_by_role("table", name="Open incidents by priority").get_by_role("row").nth(1)
    expect(row).to_contain_text("High124Multi-stage attack")
    expect(row).to_contain_text("ActiveÅsa Öberg")


def mine(page: Page) -> None:
    page.get_by_role("button", name="Mine 0").click()
    expect(page.get_by_text("None of the open incidents is owned by you.")).to_be_visible()


def find_incident(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("ransomware")
    expect(page.get_by_role("option").first).to_contain_text("124 Multi-stage attack")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/incidents/124")


def read_incident(page: Page) -> None:
    expect(page.get_by_role("region", name="Story")).to_contain_text("8 alerts, 5 of them High, that touch 2 accounts")


def past_cases(page: Page) -> None:
    go(page, "knowledge")
    page.get_by_role("button", name="Read them in").click()
    expect(page.get_by_text("28 new, 0 changed, 0 as before.")).to_be_visible()
    go(page, "incidents/126")
    expect(page.get_by_role("region", name="Past incidents like it").get_by_role("link").first).to_be_visible()


def playbook_for_it(page: Page) -> None:
    expect(page.get_by_role("region", name="Steps of playbooks").get_by_role("link").first).to_be_visible()


def import_file(page: Page) -> None:
    go(page, "data")
    told = take(page, "sign-ins.csv", SIGN_INS)
    expect(told).to_contain_text("2 of 2 rows stored in SigninLogs.")
    expect(told.get_by_role("list", name="Questions to ask next").get_by_role("button")).to_have_text(
        ["sign-ins of kim@fabrikam.example", "sign-ins from 192.0.2.77", "what data do you have?"]
    )


def import_bad(page: Page) -> None:
    told = take(page, "picture.png", b"\x89PNG\r\n\x1a\n\x00\x00")
    expect(told.get_by_role("alert")).to_contain_text("picture.png is a binary file, not an export of rows.")


def after_import(page: Page) -> None:
    page.get_by_role("button", name="sign-ins of kim@fabrikam.example").click()
    expect(page.locator("article.answered")).to_contain_text("2 rows for kim@fabrikam.example")


def upload_playbook(page: Page) -> None:
    go(page, "knowledge")
    expect(take(page, "lost-laptop.md", PLAYBOOK)).to_contain_text("Added, in 1 parts.")
    expect(take(page, "lost-laptop.md", "# Other words")).to_contain_text("There is a playbook lost-laptop.md already.")


def find_playbook(page: Page) -> None:
    page.get_by_role("searchbox", name="Search playbooks").fill("lost laptop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="“lost laptop”").get_by_role("listitem").first).to_contain_text("in Intune")


def read_playbook(page: Page) -> None:
    page.get_by_role("link", name="lost-laptop.md").first.click()
    expect(page.get_by_role("region", name="Lost or stolen laptop")).to_contain_text("the shift lead decides")


def remove_playbook(page: Page) -> None:
    go(page, "knowledge")
    page.get_by_role("button", name="All playbooks").click()
    rows = page.get_by_role("list", name="Playbooks").get_by_role("listitem")
    expect(rows).to_have_count(SHIPPED + 1)
    page.get_by_role("button", name="Remove Lost or stolen laptop").click()
    dialog = page.get_by_role("dialog", name="Remove “Lost or stolen laptop”?")
    expect(dialog).to_contain_text("Every other playbook stays")
    dialog.get_by_role("button", name="Remove it").click()
    expect(rows).to_have_count(SHIPPED)
    expect(rows.filter(has_text="lost-laptop.md")).to_have_count(0)


def hunt_chart(page: Page) -> None:
    go(page, "hunt/failed_signins_by_ip")
    page.get_by_label("Window").select_option("everything that is kept")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Rows").get_by_role("img").first).to_be_visible()


def entity(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("siobhan")
    page.keyboard.press("Enter")  # before what the word names was read
    expect(page.get_by_role("heading", level=1)).to_have_text("siobhan.o'brien@woodgrove.example")


def entity_pivot(page: Page) -> None:
    with_it = page.get_by_role("region", name="Seen with")
    with_it.get_by_role("link", name="wks-fin-02.woodgrove.example").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("wks-fin-02.woodgrove.example")
    page.get_by_role("table", name="Incidents").get_by_role("link").first.click()
    page.wait_for_url("**/#/incidents/124")


def follow_up(page: Page) -> None:
    go(page, "chat")
    ask(page, "how many high severity alerts in the last 30 days?")
    expect(ask(page, "and only the ones on srv-file-01?")).to_contain_text("naming srv-file-01")


def evidence(page: Page) -> None:
    page.locator("article.turn").last.get_by_role("button", name="source 1").first.click()
    behind = page.get_by_role("region", name="Behind the answer")
    expect(behind).to_contain_text("rows_total ✓ found")
    expect(behind).to_contain_text("SecurityAlert")


def keyboard(page: Page) -> None:
    page.get_by_role("textbox", name="Question").press("Escape")
    newest = page.locator("article.turn").last
    expect(newest).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(newest.locator("button.source").first).to_be_focused()


def report(page: Page) -> None:
    page.get_by_role("button", name="Save a report").click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Word (DOCX)").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"PK\x03\x04")
    page.keyboard.press("Escape")


def search_conversation(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("only the ones on srv")
    found = page.get_by_role("option").filter(has_text="Conversation")
    expect(found).to_contain_text("how many high severity alerts")
    page.keyboard.press("Escape")


def playbook_answer(page: Page) -> None:
    """Its steps are a list within the quotation, and its citation leads to the playbook."""
    go(page, "chat")
    told = ask(page, "what does our playbook say about phishing").locator(".markdown").first
    expect(told).to_contain_text("The playbook “Phishing mail with a link or an attachment” says")
    expect(told.locator("blockquote ol > li").nth(1)).to_be_visible()
    expect(told.get_by_role("link", name="phishing.md > Phishing mail").first).to_have_attribute(
        "href", "#/knowledge/phishing.md"
    )


def incident_report(page: Page) -> None:
    go(page, "incidents/124")
    page.get_by_role("button", name="Report…").click()
    dialog = page.get_by_role("dialog", name="Report of incident 124")
    with page.expect_download() as started:
        dialog.get_by_role("link", name="Markdown").click()
    first = started.value.path().read_text().partition("## Annex")[0]
    for told in ("Ransomware behavior was blocked", "Incident 124 is Active (High)", "Next steps", "4.6 GB had left"):
        assert told in first


def comment(page: Page) -> None:
    go(page, "incidents/125")
    page.get_by_role("button", name="Comment…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("Waiting for the owner.")
    page.get_by_role("button", name="Ask for it").click()
    request = page.get_by_role("region", name="Request: comment on incident 125")
    expect(request).to_contain_text("Waiting for the owner.")
    request.get_by_role("button", name="Confirm, and do it").click()
    expect(page.locator("article.answered").last).to_contain_text("Done. The comment was added to incident 125")


STEPS: dict[str, Callable[[Page], None]] = {
    "queue": queue,
    "mine": mine,
    "find-incident": find_incident,
    "read-incident": read_incident,
    "past-cases": past_cases,
    "playbook-for-it": playbook_for_it,
    "import-file": import_file,
    "import-bad": import_bad,
    "after-import": after_import,
    "upload-playbook": upload_playbook,
    "find-playbook": find_playbook,
    "read-playbook": read_playbook,
    "remove-playbook": remove_playbook,
    "hunt-chart": hunt_chart,
    "entity": entity,
    "entity-pivot": entity_pivot,
    "follow-up": follow_up,
    "evidence": evidence,
    "keyboard": keyboard,
    "report": report,
    "search-conversation": search_conversation,
    "comment": comment,
}
"""In this order, each from where the one before it ended. Other tests of the page do the other tasks."""


def test_the_tasks_of_a_week_are_done_on_the_page_alone(chromium: Browser, url: str) -> None:
    assert STEPS.keys() <= TASKS.keys()
    page = signed_in(chromium, url, "ada", viewport={"width": 1440, "height": 900})
    for step in (*STEPS.values(), playbook_answer, incident_report):
        step(page)
    page.context.close()


def test_new_views_have_no_violation_and_say_who_may_fill_them(chromium: Browser, url: str) -> None:
    axe = (ROOT / "frontend/node_modules/axe-core/axe.min.js").read_text()
    found: list[Any] = []
    for scheme, width in (("light", 1440), ("dark", 390)):
        page = signed_in(chromium, url, "ada", viewport={"width": width, "height": 844}, color_scheme=scheme)
        for place in ("knowledge", "data", "chat", "entity/srv-file-01.woodgrove.example"):
            go(page, place)
            if place in ("knowledge", "data"):
                take(page, "picture.png", b"\x89PNG\r\n\x1a\n\x00\x00")
            if place == "data":
                lists = page.get_by_role("region", name="Watchlists")
                expect(take(lists, f"VIP {width}.csv", VIP)).to_contain_text(f"2 items in VIP-{width}.")
                lists.get_by_text("Items", exact=True).first.click()
                expect(lists.get_by_role("table")).to_contain_text("kim@fabrikam.example")
            expect(page.get_by_role("heading", level=1)).to_be_attached()
            expect(page.locator("[aria-busy=true]")).to_have_count(0)
            page.evaluate(axe)
            result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [(place, width, each["id"], each["nodes"][0]["html"][:200]) for each in result["violations"]]
            found += [(place, width, "sideways")] * page.evaluate("+(document.body.scrollWidth > innerWidth)")
        page.context.close()
    assert found == []
    dana = signed_in(chromium, url, "dana")
    go(dana, "knowledge")
    expect(dana.get_by_text("They are put in and removed by people with the role admin.")).to_be_visible()
    expect(dana.get_by_role("button", name="Remove")).to_have_count(0)
    go(dana, "data")
    expect(dana.get_by_text("Data is for people with the role admin.")).to_be_visible()
    dana.context.close()


def test_a_watchlist_is_put_in_looked_at_replaced_and_removed(chromium: Browser, url: str) -> None:
    page = signed_in(chromium, url, "ada")
    go(page, "data")
    lists = page.get_by_role("region", name="Watchlists")
    lists.get_by_label("Alias (optional)").fill("Bosses")
    lists.get_by_label("Search key (optional)").fill("Why")
    expect(take(lists, "vip.csv", VIP)).to_contain_text("2 items in Bosses.")
    told = take(lists, "vip.csv", "Account,Why\nlee,all of it\n")
    expect(told).to_contain_text("There is a watchlist Bosses already.")
    told.get_by_role("button", name="Replace it").click()
    expect(told).to_contain_text("It is replaced.")
    entry = lists.get_by_role("list", name="Watchlists").get_by_role("listitem").filter(has_text="Bosses")
    expect(entry).to_contain_text("1 items of vip.csv")
    entry.get_by_text("Items", exact=True).click()
    expect(entry.get_by_role("row")).to_have_text(["SearchKeyAccountWhy", "all of itleeall of it"])
    entry.get_by_role("button", name="Remove", exact=True).click()
    entry.get_by_role("button", name="Keep it").click()
    entry.get_by_role("button", name="Remove", exact=True).click()
    entry.get_by_role("button", name="Remove Bosses").click()
    expect(entry).to_have_count(0)
    page.context.close()
