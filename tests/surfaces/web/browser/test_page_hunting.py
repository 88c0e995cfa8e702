"""KQL and knowledge on the page: named queries with what they take, their rows as table and chart, playbooks as they
stand; over the shipped policy and a tool server that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from running_web import RunningWeb
from test_page_incidents import asked, go, knowledge, result
from test_page_reading import FRONTEND, check
from visitor import Visit

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.policy import Policy
from sentinel_rag_testing.fake_tool_server import Answers, Fails, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.exe"
TOLD = "<img src=x onerror=alert(1)>\\u202egpj.exe"
SEVERITY = {"name": "severity", "type": "enum", "required": False, "default": "any", "allowed": ["any", "High"]}
TEMPLATES = [
    {
        "name": "signins_by_country",
        "description": "Sign-ins by country.",
        "tables": ["SigninLogs"],
        "parameters": [
            {"name": "user", "type": "string", "required": True, "default": None, "description": "", "allowed": []},
            {**SEVERITY, "description": "Only this severity."},
            {"name": "least", "type": "long", "required": False, "default": 1, "description": "", "allowed": []},
        ],
    },
    {"name": "raw_signins", "description": "Every row.", "tables": ["SigninLogs"], "parameters": []},
]


def rows_of(columns: dict[str, str], rows: list[dict[str, Any]]) -> Answers:
    answer = result(rows)
    answer.value["columns"] = [{"name": name, "type": kind} for name, kind in columns.items()]
    return answer


@pytest.fixture(scope="module")
def web_gateway(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """The shipped policy, in the place of the one of the folder above."""
    with (
        FakeToolServer(token="t").running() as executor,
        running_gateway(shipped_policy, tmp_path_factory.mktemp("hunting"), executor) as running,
    ):
        yield running


@pytest.fixture
def tool(web: RunningWeb) -> FakeToolServer:
    server = web.gateway.executor
    server.on("list_kql_templates", result(TEMPLATES))
    ranked = [{"Country": name, "SignIns": count} for name, count in (("GB", 9), (HOSTILE, 4), ("RO", 1))]
    server.on("run_kql_query", rows_of({"Country": "string", "SignIns": "long"}, ranked))
    server.on("search_knowledge_base", knowledge())
    for name in ("query_incidents", "query_alerts", "get_alert_trend"):  # the first screen reads them
        server.on(name, result([]))
    return server


@pytest.mark.requirement("SURF-4")
def test_a_view_that_cannot_be_drawn_leaves_the_frame_standing(
    web: RunningWeb, visit: Visit, tool: FakeToolServer
) -> None:
    tool.on("query_incidents", Answers({"kind": "nothing that was agreed"}))
    page = visit("fay-hunts").page
    expect(page.get_by_role("heading", name="This view could not be drawn")).to_be_visible()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Knowledge").click()
    expect(page.get_by_role("searchbox")).to_be_visible()


@pytest.mark.requirement("SURF-4")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_named_query_is_found_run_with_what_it_takes_and_drawn(
    web: RunningWeb, visit: Visit, tool: FakeToolServer, scheme: str, width: int
) -> None:
    axe = (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text()
    problems: list[Any] = []
    page = visit(f"dana-hunts-{scheme}", color_scheme=scheme, viewport={"width": width, "height": 844}).page
    page.goto(f"{web.url}/#/hunt")
    page.get_by_label("Find a query").fill("country")
    expect(page.get_by_text("1 of 2", exact=True)).to_be_visible()
    check(page, axe, problems, "queries")
    page.get_by_role("button", name="Signins by country").click()
    page.wait_for_url("**/#/hunt/signins_by_country")
    page.get_by_role("button", name="Run").click()  # a value is needed: nothing is run
    expect(page.get_by_role("region", name="Rows")).to_have_count(0)
    page.get_by_label("User").fill("asa@woodgrove.example")
    page.get_by_label("Severity (optional)").select_option("High")
    page.get_by_label("Least (optional)").fill("2")
    page.get_by_label("Window").select_option("last_24h")
    page.get_by_role("button", name="Run").click()
    rows = page.get_by_role("region", name="Rows")
    picture = rows.get_by_role("img")
    expect(picture).to_have_accessible_name("SignIns by country: from GB with 9 to RO with 1.")
    expect(rows.get_by_role("group", name="3 rows, 2 columns").get_by_role("row")).to_have_count(4)
    expect(rows.get_by_role("cell", name=TOLD)).to_be_visible()
    rows.get_by_text("The same as a table").click()
    expect(rows.get_by_role("rowheader")).to_have_text(["GB", TOLD, "RO"])
    given = {"user": "asa@woodgrove.example", "severity": "High", "least": 2}
    called = asked(web, "run_kql_query")
    assert (called["template"], called["parameters"], called["time_window"]) == (
        "signins_by_country",
        given,
        "last_24h",
    )
    check(page, axe, problems, "rows")
    assert problems == []


@pytest.mark.requirement("SURF-4")
def test_a_query_that_needs_a_person_fails_or_is_not_there_says_so(
    web: RunningWeb, visit: Visit, tool: FakeToolServer
) -> None:
    page = visit("erin-hunts", at="/#/hunt/raw_signins").page
    page.get_by_role("button", name="Run").click()
    alert = page.get_by_role("region", name="Rows").get_by_role("alert")
    expect(alert).to_contain_text("Somebody decides approval ")
    error = QueryError(
        code=QueryErrorCode.UNAVAILABLE, message="Log Analytics is away.", next_step="Try it again soon."
    )
    tool.on("run_kql_query", Fails(error))
    page.goto(f"{web.url}/#/hunt/signins_by_country")
    page.get_by_label("User").fill("asa")
    page.get_by_role("button", name="Run").click()
    expect(alert).to_have_text("Log Analytics is away. Try it again soon.")
    tool.on("run_kql_query", rows_of({"Country": "string"}, []))
    page.get_by_role("button", name="Read it again").click()
    expect(page.get_by_text("No row matches.")).to_be_visible()
    page.goto(f"{web.url}/#/hunt/nowhere")
    expect(page.get_by_text("There is no query nowhere here.")).to_be_visible()


@pytest.mark.requirement("SURF-4")
def test_a_link_of_evidence_fills_a_query_in_and_runs_nothing_by_itself(
    web: RunningWeb, visit: Visit, tool: FakeToolServer
) -> None:
    given = quote("signins_by_country?user=asa%40woodgrove.example&severity=High&least=3&time_window=", safe="")
    page = visit("gus-hunts", at=f"/#/hunt/{given}").page
    expect(page.get_by_label("User")).to_have_value("asa@woodgrove.example")
    expect(page.get_by_label("Severity (optional)")).to_have_value("High")
    expect(page.get_by_label("Least (optional)")).to_have_value("3")
    expect(page.get_by_label("Window")).to_have_value("")
    expect(page.get_by_role("region", name="Rows")).to_have_count(0)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Rows").get_by_role("img")).to_be_visible()
    assert asked(web, "run_kql_query")["parameters"] == {
        "user": "asa@woodgrove.example",
        "severity": "High",
        "least": 3,
    }


@pytest.mark.requirement("SURF-4")
def test_playbooks_are_searched_and_read_as_they_stand(web: RunningWeb, visit: Visit, tool: FakeToolServer) -> None:
    axe = (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text()
    problems: list[Any] = []
    dana = visit("dana-knows")
    page = go(dana, "Knowledge")
    page.get_by_role("searchbox", name="Search playbooks").fill("stolen session")
    page.keyboard.press("Enter")
    found = page.get_by_role("region", name="“stolen session”")
    expect(found).to_contain_text("Revoke all sessions. [x](javascript:alert(1))")
    expect(found.get_by_role("strong")).to_have_text("all")
    assert asked(web, "search_knowledge_base") == {"query": "stolen session", "limit": 10}
    page.get_by_label("Within").select_option("playbooks")
    expect(found).to_be_visible()
    check(page, axe, problems, "found")
    found.get_by_role("link", name="identity.md > Containment").click()
    page.wait_for_url("**/#/knowledge/identity.md")
    expect(page.get_by_role("region", name="Stolen session", exact=True)).to_contain_text("Revoke all sessions.")
    assert asked(web, "search_knowledge_base") == {"document": "identity.md", "limit": 20}
    check(page, axe, problems, "document")
    assert problems == []
