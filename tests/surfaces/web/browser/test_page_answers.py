"""How an answer stands on the page: its first sentences, the chart that its rows are, cells that lead on, and the rest
folded; read from a recorded conversation, wide and narrow, light and dark."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from test_page_reading import FRONTEND, check
from visitor import Visit

pytestmark = pytest.mark.requirement("SURF-4")

CONVERSATION = "0f7c1b2a93d84e56"
LINES = [
    "10 incidents are open.",
    "By status: New 4.",
    "Window: all.",
    "Note: one is old.",
    *(f"More {n}." for n in "abcd"),
]
DAYS = [[f"2026-11-{day} 00:00:00 UTC", str(high + low), str(high), str(low)] for day, high, low in
        ((16, 1, 3), (17, 0, 0), (18, 2, 6), (19, 0, 1))]  # fmt: skip
COVERAGE: dict[str, Any] = {
    "workspace": "main",
    "tables": ["SecurityIncident"],
    "window": {"start": None, "end": None},
    "rows_returned": 2,
    "rows_total": 10,
    "query": "SecurityIncident | take 2",
    "partial": False,
    "partial_reason": "",
    "table_rows": 10,
    "table_oldest": None,
    "table_newest": None,
}


def piece(text: str, pointer: str, value: Any) -> dict[str, Any]:
    return {"text": text, "call_id": "c1", "tool": "query_incidents", "pointer": pointer, "value": value}


ANSWER: dict[str, Any] = {
    "outcome": "answered",
    "session_id": CONVERSATION,
    "answer": "\n".join(LINES),
    "tables": [
        {
            "title": "Open",
            "columns": ["", "Incident", "Severity", "Owner", "Created", "Title"],
            "rows": [
                ["[1]", "124", "High", "ada", "2026-11-28 06:56:00 UTC", "Multi-stage attack"],
                ["[2]", "108", "Low", "-", "2026-11-16 12:00:54 UTC", "Impossible travel <b>x</b>"],
            ],
        },
        {"title": "", "columns": ["Start of bucket", "Alerts", "High", "Low"], "rows": DAYS},
    ],
    "footnote": ["query_incidents(status=Open) · 2 of 10 rows"],
    "suggestions": ["Only the high ones"],
    "tools": [
        {
            "call_id": "c1",
            "name": "query_incidents",
            "arguments": {"status": "Open"},
            "status": "ok",
            "detail": "",
            "audit_id": "a-1",
            "duration_ms": 12.0,
            "coverage": COVERAGE,
        }
    ],
    "evidence": [
        piece("124", "/rows/0/number", 124),
        piece("Multi-stage attack", "/rows/0/title", "Multi-stage attack"),
        piece("2", "/summary/by_severity/High", 2),
        piece("8", "/summary/by_severity/Low", 8),
    ],
    "sentences": [
        {
            "start": 0,
            "end": 22,
            "text": LINES[0],
            "state": "values_found",
            "reason": "",
            "citations": [{"ref": "c1", "call_id": "c1", "tool": "query_incidents", "pointer": ""}],
            "marks": [
                {"start": 0, "end": 2, "found": True, "call_id": "c1", "pointer": "/coverage/rows_total", "value": 10}
            ],
            "cited_by": "writer",
        }
    ],
}


def opened(page: Page, **more: Any) -> None:
    """Open a recorded conversation of one turn with the answer."""
    turn = {
        "turn_id": "74eb9f412bcedc5d",
        "session_id": CONVERSATION,
        "number": 1,
        "request_id": None,
        "question": "which are open?",
        "state": "answered",
        "asked_at": "2026-11-30T10:00:00Z",
        "answer": {**ANSWER, **more},
        "written": None,
        "written_sentences": None,
        "opinion": None,
    }
    head = {"session_id": CONVERSATION, "title": "which are open?", "used_at": "", "turns": 1}

    def conversation(route: Route) -> None:
        first = "after=0" in route.request.url
        route.fulfill(json={**head, "items": [turn] if first else [], "next_after": 1})

    page.route(f"**/conversations/{CONVERSATION}?*", conversation)
    page.evaluate(f"location.hash = '/chat/{CONVERSATION}'")
    expect(page.locator("article.answered")).to_have_count(1)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_answer_comes_first_then_its_rows_and_charts_and_the_rest_is_folded(
    visit: Visit, scheme: str, width: int
) -> None:
    axe = (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text()
    problems: list[Any] = []
    page = visit(f"ada-{scheme}", color_scheme=scheme, viewport={"width": width, "height": 844}).page
    opened(page)
    turn = page.locator("article.turn")
    expect(turn.locator(".markdown").first).to_contain_text("Note: one is old.")
    expect(turn.locator(".markdown").first).not_to_contain_text("More a.")
    expect(turn.get_by_text("4 more lines: More a.…")).to_be_visible()
    turn.get_by_text("4 more lines").click()
    expect(turn.locator(".markdown").last).to_have_text("More a.\nMore b.\nMore c.\nMore d.")
    expect(turn.get_by_text("1 call · 2 of 10 rows · all retained data")).to_be_visible()
    check(page, axe, problems, "answer")

    listed = turn.get_by_role("region", name="Open: figure")
    expect(listed.get_by_role("img", name="Open: High 2, Low 8")).to_be_visible()
    expect(listed.get_by_role("link", name="124")).to_have_attribute("href", "#/incidents/124")
    expect(listed.get_by_role("link", name="108")).to_have_count(0)  # no evidence says that it is one
    expect(listed.locator("time").nth(1)).to_have_attribute("title", "2026-11-16 12:00:54 UTC")
    expect(listed.get_by_role("row").nth(2)).to_contain_text("Impossible travel <b>x</b>")

    drawn = turn.get_by_role("region", name="Alerts by time: figure")
    picture = drawn.get_by_role(
        "img", name="Alerts by time: 13 in 4 columns; most, 8, from 2026-11-18 00:00:00 UTC on."
    )
    expect(picture).to_be_visible()
    expect(drawn.locator("rect.mark.high")).to_have_count(2)
    drawn.get_by_text("The same as a table").click()
    expect(drawn.get_by_role("row").nth(3)).to_have_text("2026-11-18 00:00:00 UTC826")
    check(page, axe, problems, "charts")
    if width > 390:  # a finger points at nothing
        drawn.locator("g.hovered").nth(2).hover()
        expect(drawn.locator(".readout")).to_have_text(
            "2026-11-18 00:00:00 UTC: 8 (High 2, Low 6). A click shows them."
        )
    drawn.get_by_role("button", name="As a table").click()
    expect(drawn.get_by_role("img")).to_have_count(0)
    expect(drawn.get_by_role("row")).to_have_count(5)
    assert problems == []


def test_the_evidence_stands_beside_the_answer_and_gives_way_to_what_is_chosen(visit: Visit) -> None:
    page = visit("ben-answers", viewport={"width": 1280, "height": 844}).page
    row = {"number": 124, "title": "Multi-stage attack"}
    found = {"number": 1, **ANSWER["evidence"][0], "row": row, "call": ANSWER["tools"][0]}
    page.route("**/evidence/*", lambda route: route.fulfill(json=found))
    opened(page)
    beside = page.get_by_role("region", name="Behind the answer")
    expect(beside.locator("blockquote")).to_have_text("10 incidents are open.")
    expect(beside.locator(".lit.found")).to_have_text("rows_total ✓ found10")
    expect(beside.get_by_role("button", name="Close")).to_have_count(0)
    page.get_by_role("button", name="[1]").click()
    expect(beside.get_by_role("heading", name="Line [1]")).to_be_visible()
    expect(beside.locator("dl").first).to_have_text("number124titleMulti-stage attack")
    expect(beside.locator("pre")).to_have_text("SecurityIncident | take 2")
    beside.get_by_role("button", name="Close").click()
    expect(beside.locator("blockquote")).to_have_text("10 incidents are open.")
    page.set_viewport_size({"width": 800, "height": 844})  # no room beside it: a sheet, when it is asked for
    expect(beside).to_have_count(0)
    page.get_by_role("button", name="source 1", exact=True).click()
    expect(page.get_by_role("dialog", name="Evidence").locator("blockquote")).to_have_text("10 incidents are open.")


def test_five_hundred_rows_are_drawn_and_more_are_told(visit: Visit) -> None:
    page = visit("cora-answers").page
    rows = [[str(number), "x" * 300] for number in range(501)]
    opened(page, tables=[{"title": "Many", "columns": ["Number", "Text"], "rows": rows}])
    figure = page.get_by_role("region", name="Many: figure")
    expect(figure.get_by_role("row")).to_have_count(501)
    expect(figure).to_contain_text("500 of 501 rows are drawn")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
