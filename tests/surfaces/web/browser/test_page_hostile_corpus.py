"""Attacker controls: every text that the page shows. All of `hostile_strings` through each place of it in a real
browser: a row of a tool's result, an answer, its table and evidence, a question, a title, an approval, the audit and
the policy.

Wanted: that something runs, loads, leads away, moves what stands around it, or is not seen. Every visitor is asked at
its end for what it loaded, refused and threw (see conftest).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from running_web import RunningWeb
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route as StarletteRoute
from visitor import Visit

from sentinel_rag.surfaces.rendering.visible import safe
from sentinel_rag.surfaces.users import Role
from sentinel_rag_testing.fake_tool_server import Answers
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "attacks"))

from hostile_strings import HOSTILE, MUST_NOT, Hostile

pytestmark = pytest.mark.requirement("SURF-5")

WIRE = [each for each in HOSTILE if each.text.encode("utf-8", "ignore").decode() == each.text]
"""What JSON can carry: halves of a surrogate pair end at the border (tests/attacks/test_attack_unreadable_json.py)."""
ELEMENTS = re.compile(
    "html|head|meta|title|link|script|body|div|noscript|main|header|footer|nav|section|article|aside|h[1-4]|p|span|"
    "strong|em|a|button|form|label|input|textarea|select|option|ul|ol|li|details|summary|table|caption|thead|tbody|"
    "tr|th|td|dl|dt|dd|pre|code|blockquote|dialog|time|kbd"
)
FOREIGN = """() => [...document.querySelectorAll('*')].flatMap(each => [
    each.matches('svg.i, svg.i > path') ? 'p' : each.localName,
    ...[...each.attributes].filter(one => one.name.startsWith('on') || one.name === 'style').map(one => '@' + one.name),
    ...['href', 'src', 'action', 'srcset'].map(name => each.getAttribute(name)).filter(Boolean)
        .filter(target => !/^(#|\\/page\\/|\\/conversations\\/)/.test(target)).map(target => '-> ' + target)])"""
READ = """(place) => {
    const copy = place.cloneNode(true);
    for (const list of copy.querySelectorAll('ol'))
        [...list.children].forEach((item, at) => item.prepend(String(list.start + at) + '. '));
    return copy.textContent;
}"""


def numbered(texts: list[Hostile]) -> str:
    """The texts in one, each behind its number."""
    return "\n\n".join(f"[{place}:]\n\n{each.text}" for place, each in enumerate(texts))


def failing(texts: list[Hostile], shown: list[str]) -> list[str]:
    """The texts that cannot be read where they stand, or hide something there."""
    assert len(shown) == len(texts)
    wrong = []
    for each, told in zip(texts, shown, strict=True):
        hidden = safe(told) != told
        if hidden or not each.is_legible_in(told):
            wrong.append(f"{each.family} {each.text[:50]!r} must not {MUST_NOT[each.family]}: {told[:80]!r}")
    return wrong


def parts(told: str, count: int, mark: str) -> list[str]:
    """What stands behind each number; `mark` is how it is written, with `(\\d+)`."""
    found = re.split(mark, told)
    assert list(map(int, found[1::2])) == list(range(count)), found[1::2]
    return found[2::2]


def unmoved(page: Page) -> None:
    """The frame stands where it stood, and nothing but our own elements and addresses is in the document."""
    made = set(page.evaluate(FOREIGN))
    assert [each for each in made if not ELEMENTS.fullmatch(each)] == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.evaluate("window.scrollTo(0, 0)")
    side, head = page.locator(".side").bounding_box(), page.locator(".head").bounding_box()
    assert side is not None
    assert head is not None
    assert (side["x"], side["y"], side["width"], head["x"], head["y"]) == (0, 0, 208, 208, 0)
    assert head["height"] < 100
    on_top = page.evaluate(
        """() => [...document.querySelectorAll('.head *')].every(each => {
            const at = each.getBoundingClientRect();
            if (at.height === 0) return true;
            const top = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
            return top.closest('.head') !== null; })"""
    )
    assert on_top
    assert page.title().endswith("Sentinel RAG")


def read(place: Locator) -> str:
    return str(place.evaluate(READ))


def test_rows_answers_tables_evidence_and_what_to_ask_next(
    web: RunningWeb, web_gateway: RunningGateway, visit: Visit
) -> None:
    rows = [{"Text": each.text} for each in WIRE]
    web_gateway.executor.on("read_alert", Answers({"rows": rows}))
    dana = visit("dana-corpus", viewport={"width": 1280, "height": 900})
    page = dana.page
    dana.ask("show read_alert")
    answer = page.locator("article.answered")
    expect(answer).to_have_count(1)
    unmoved(page)

    told = parts(read(answer.locator(".markdown")), len(WIRE), r"/rows/(\d+)/Text ")
    assert failing(WIRE, told) == []
    # A cell is the text with escapes, as every surface of ours writes them, and nothing else.
    cells = answer.locator("td:nth-child(2)").all_text_contents()
    assert failing(WIRE, cells) == []
    assert cells == [safe(each.text) for each in WIRE]
    dana.open_provenance()
    page.get_by_role("button", name=f"Show all {len(WIRE)}").click()
    evidence = answer.get_by_role("region", name="Evidence")
    assert failing(WIRE, evidence.locator("li button").all_text_contents()) == []
    assert failing(WIRE, answer.locator(".provenance > ul:not(.tools) > li").all_text_contents()) == []
    assert failing(WIRE, answer.locator(".suggested button").all_text_contents()) == []
    unmoved(page)

    place = next(number for number, each in enumerate(WIRE) if each.family == "element")
    evidence.locator("li button").nth(place).click()
    beside = page.get_by_role("region", name="Behind the answer")
    expect(beside.locator("dd").first).to_have_text(WIRE[place].text)
    page.keyboard.press("Escape")
    assert page.evaluate("[...document.scripts].map(script => script.getAttribute('src'))") == ["/page/page.js"]


def test_questions_and_titles(web: RunningWeb, visit: Visit) -> None:
    web.add("dana-titles")
    record, user = web.web.record, web.accounts["dana-titles"].user_id
    families = [[each for each in WIRE if each.family == family and each.text.strip()][:4] for family in MUST_NOT]
    titled = [each for family in families for each in family if len(each.text) <= 60][:99]
    for number, each in enumerate(titled):
        record.open(f"{number:032x}", user, each.text)
    dana = visit("dana-titles", viewport={"width": 1280, "height": 900})
    page = dana.page
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(links).to_have_count(1 + len(titled))
    assert failing(titled[::-1], links.all_text_contents()[1:]) == []
    unmoved(page)

    half = len(WIRE) // 2
    asked = [[each for each in some if len(each.text) < 1_000] for some in (WIRE[:half], WIRE[half:])]
    for nth, texts in enumerate(asked, 1):
        dana.ask(f"say {numbered(texts)}")
        turn = page.locator("article.turn").nth(nth - 1)
        expect(turn.locator(".status")).to_have_count(0)
        expect(turn).to_have_class(re.compile("answered"))
        for place in (turn.locator("h2"), turn.locator(".markdown")):
            assert failing(texts, parts(read(place), len(texts), r"\[(\d+):\]")) == []
    unmoved(page)
    page.reload()  # from the record it is the same
    expect(page.locator("article.answered")).to_have_count(2)
    assert failing(asked[1], parts(read(page.locator(".markdown").last), len(asked[1]), r"\[(\d+):\]")) == []
    unmoved(page)


def test_approvals_audit_and_policy(web: RunningWeb, visit: Visit) -> None:
    texts = [each for each in WIRE if len(each.text) < 1_000]
    third = len(texts) // 3 + 1
    asked = [texts[:third], texts[third : 2 * third], texts[2 * third :]]
    for some in asked:
        web.person("dana-asks").ask(f"call isolate {json.dumps({'host': numbered(some)}, ensure_ascii=False)}")
    finn = visit("finn-corpus", *Role, viewport={"width": 1280, "height": 900})
    page = finn.page
    for nth, some in enumerate(asked):
        page.get_by_role("navigation", name="Views").get_by_role("link", name="Approvals").click()
        page.get_by_role("region", name="Waiting").get_by_role("link").nth(nth).click()
        shown = page.locator("article.approval .after").first
        expect(shown).to_be_visible()
        assert failing(some, parts(str(shown.text_content()), len(some), r"\[(\d+):\]")) == []
        unmoved(page)
    page.get_by_label("Comment").fill("<b onmouseover=alert(1)>fine</b> admin\u202egnp.exe\nApproved by the owner")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("article")).to_contain_text("<b onmouseover=alert(1)>fine</b> admin\\u202egnp.exe")
    unmoved(page)

    records = [each for each in web.gateway.records() if each["kind"] == "approval_asked"]
    for some, recorded in zip(asked, records, strict=True):
        page.goto(f"{web.url}/#/audit/{recorded['audit_id']}")
        one = page.get_by_role("region", name="One call").filter(has_text=recorded["audit_id"])
        told = str(one.locator("dl > div").filter(has_text="arguments").first.locator("dd").text_content())
        assert failing(some, parts(told, len(some), r"\[(\d+):\]")) == []
        unmoved(page)

    def policy(route: Route) -> None:
        said: dict[str, Any] = {"policy": "0" * 64, "source": texts[0].text, "loaded_at": None, "text": numbered(texts)}
        rules = [{"rule_id": each.text, "when": each.text, "then": "other"} for each in texts]
        said["tools"] = [{"name": texts[0].text, "effect": "write", "approvers": [texts[0].text], "rules": rules}]
        route.fulfill(json={**said, "refused": {"problems": [each.text for each in texts], "at": ""}})

    page.route("**/policy", policy)  # a policy file cannot hold most of these; a page must not rely on it
    page.get_by_role("link", name="Policy").click()
    page.get_by_text("The text in force").click()
    text = page.locator("details pre")
    assert failing(texts, parts(str(text.text_content()), len(texts), r"\[(\d+):\]")) == []
    refused = str(page.locator(".refusal").text_content())
    assert [each.text[:50] for each in texts if safe(each.text) not in refused] == []
    page.get_by_label("Tool").fill("isolate")
    page.get_by_label("The person's words").fill("<img src=x onerror=alert(1)>")
    page.get_by_label("Arguments, as JSON").fill(json.dumps({"host": "<img src=x onerror=alert(1)>\u202e"}))
    page.unroute("**/policy")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("pre[role=status]")).to_contain_text("Decision")
    unmoved(page)


def test_what_is_watched_here_would_be_told(visit: Visit) -> None:
    """So that the silence of the others means something."""
    stranger = visit()
    page = stranger.page
    with page.expect_console_message():
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://evil.example/p.png'}))")
    page.evaluate("setTimeout(() => alert(1))")
    page.evaluate("new Promise(done => setTimeout(done))")  # the alert was shown, and closed, before
    assert any("Content Security Policy" in fault for fault in stranger.faults)
    assert "dialog: 1" in stranger.faults
    assert "img" in page.evaluate(FOREIGN)
    assert "-> https://evil.example/p.png" in page.evaluate(FOREIGN)
    stranger.faults.clear()


def test_an_address_names_its_host_and_asks_before_it_is_opened(visit: Visit) -> None:
    came: list[tuple[str, str | None]] = []

    async def elsewhere(request: Request) -> PlainTextResponse:
        came.append((request.url.path, request.headers.get("referer")))
        return PlainTextResponse("there")

    with serve(Starlette(routes=[StarletteRoute("/login", elsewhere)])) as evil:
        host = evil.removeprefix("http://")
        dana = visit("dana-address-asks")
        page = dana.page
        dana.ask(
            f"say see [bank.example]({evil}/login). Or http://bank.example@{host}/login "
            f"or javascript:alert(1) or https://\u0430pple.example/x"
        )
        expect(page.locator("article.answered")).to_have_count(1)
        addresses = page.locator(".markdown button.address")
        # A name before the host is how one host is made to look like another: such an address is text.
        expect(addresses).to_have_text([f"{evil}/login", "https://xn--pple-43d.example/x"])
        addresses.first.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name=f"Open {host}?")
        expect(dialog).to_contain_text("an attacker may have written")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        addresses.first.click()
        expect(dialog).to_be_visible()
        assert came == []
        with dana.context.expect_page() as opened:
            dialog.get_by_role("link", name="Open it in a new tab").click()
        expect(opened.value.locator("body")).to_have_text("there")
        assert came[0] == ("/login", None)
        assert opened.value.evaluate("window.opener") is None
        expect(dialog).to_be_hidden()
