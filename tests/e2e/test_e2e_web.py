"""`sentinel up --web` as people have it: accounts by the command line, sign-in, questions, approvals, the audit."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.support.web_client import Client, signed_in

from waiting import WAIT_S

PASSWORD = "lantern over wet gravel"
MADE: dict[str, Any] = {}


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    with OidcProvider().running() as running:
        yield running


@pytest.fixture(scope="module")
def started(
    generated: Any, provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, str]]:
    """The product over the sample estate with its web surface, in a home where nobody else's calls wait, and what
    `sentinel up --web` printed."""
    settings = {
        "SENTINEL_OIDC_ISSUER": provider.issuer,
        "SENTINEL_OIDC_CLIENT_ID": CLIENT_ID,
        "SENTINEL_OIDC_CLIENT_SECRET": CLIENT_SECRET,
    }
    own = generated.afresh(tmp_path_factory.mktemp("web") / "home")
    product = replace(own, settings={**own.settings, **settings})
    with product.start("up", "--web") as process:
        text = ""
        while "Stop with Ctrl-C" not in text:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            text += line
        try:
            yield product, text
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=WAIT_S)


@pytest.fixture(scope="module")
def served(started: tuple[Any, str]) -> tuple[Any, str]:
    """The product, and the address of its web surface."""
    found = re.search(r"^web +(http://127\.0\.0\.1:\d+)$", started[1], re.MULTILINE)
    assert found is not None, started[1]
    return started[0], found[1]


def add(product: Any, name: str, *options: str) -> Any:
    """The account of that name, made unless it is there."""
    if name not in MADE:
        done = product.run("users", "add", name, "--password-stdin", "--json", *options, stdin=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
        MADE[name] = json.loads(done.stdout)
    return MADE[name]


def sign_in(url: str, name: str) -> Client:
    answer = Client(url).post("/sign-in", {"name": name, "password": PASSWORD})
    assert answer.status == 200, answer.content
    return signed_in(url, answer)


@pytest.mark.requirement("SURF-3")
@pytest.mark.requirement("CHAT-14")
def test_a_person_signs_in_asks_and_follows_the_answer_through_all_zones(served: tuple[Any, str]) -> None:
    product, url = served
    account = add(product, "dana")
    dana = sign_in(url, "dana")
    [workspace] = dana.get("/session").body["workspaces"]
    first = dana.ask("how many high incidents are there?", workspace=workspace)
    assert first["outcome"] == "answered"
    assert [each["workspace"] for each in first["coverage"]] == [workspace]
    events = dana.events("POST", "/chat", {"message": "list open incidents", "session_id": first["session_id"]})
    finished = next(event["data"] for event in events if event["type"] == "tool.finished")
    coverage = finished["coverage"]
    assert coverage["rows_returned"] == coverage["rows_total"] > 0
    assert coverage["table_newest"]
    assert {"started", "status", "tool.started", "text", "evidence", "done"} <= {event["type"] for event in events}
    number = next(each["rows"][0][1] for each in (event["data"] for event in events) if "rows" in each)
    second = dana.ask(f"what is incident {number} about?", session_id=first["session_id"])
    assert second["outcome"] == "answered"
    shown = dana.get(f"/conversations/{first['session_id']}").body
    assert [item["number"] for item in shown["items"]] == [1, 2, 3]
    records = [
        json.loads(line)["record"]
        for line in product.run("audit", "show", "--last", "50", "--json").stdout.splitlines()
    ]
    assert account["key_id"] in {record["key_id"] for record in records if record["kind"] == "values_named"}


@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
def test_a_call_waits_and_another_person_approves_it_once(served: tuple[Any, str]) -> None:
    product, url = served
    add(product, "ellis", "--role", "analyst", "--role", "approver")
    add(product, "finn", "--role", "approver", "--role", "auditor")
    ellis, finn = sign_in(url, "ellis"), sign_in(url, "finn")
    denied = ellis.ask("run the template raw_signins")
    assert denied["outcome"] == "denied"
    [waiting] = [each for each in finn.get("/approvals?state=pending").body["approvals"] if not each["own"]]
    approval_id = waiting["approval_id"]
    own = ellis.post(f"/approvals/{approval_id}/decision", {"decision": "approve"})
    assert (own.status, own.body["reason"]) == (403, "own_approval")
    decided = finn.post(f"/approvals/{approval_id}/decision", {"decision": "approve", "comment": "shift lead agreed"})
    assert (decided.status, decided.body["state"]) == (200, "approved")
    allowed = ellis.ask("run the template raw_signins", session_id=denied["session_id"])
    assert allowed["outcome"] != "denied"
    assert finn.get(f"/approvals/{approval_id}").body["state"] == "used"
    story = finn.get(f"/audit/{approval_id}").body["records"]
    assert [entry["record"]["kind"] for entry in story] == ["approval_asked", "approval_decided"]
    assert finn.post("/audit/verify").body["intact"] is True


def test_the_owner_signs_in_by_the_link_of_the_start_once(started: tuple[Any, str]) -> None:
    text = started[1]
    link = re.search(r"(http://127\.0\.0\.1:\d+)(/sign-in/once/\S+)", text)
    assert link is not None
    url, path = link[1], link[2]
    assert "sentinel users add" in text
    assert Client(url).get(path).status == Client(url).get(path).status == 200  # looking at it spends nothing
    answer = Client(url).post(path)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    owner = signed_in(url, answer)
    assert owner.get("/session").body["name"] == "owner"
    assert Client(url).post(path).status == 404
    assert owner.get("/policy").status == 200
    another = started[0].json("users", "link")["url"]
    assert Client(url).post(another.removeprefix(url)).status == 303


@pytest.mark.requirement("SURF-3")
def test_a_person_signs_in_at_the_identity_provider(served: tuple[Any, str], provider: OidcProvider) -> None:
    product, url = served
    done = product.run("users", "add", "jo", "--oidc", "Jo@example.com", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signs_in_with"] == ["identity provider as jo@example.com"]
    provider.person = {"sub": "u-jo", "email": "jo@example.com", "email_verified": True}
    answer = provider.bring_back(Client(url))
    assert answer.status == 200, answer.content
    jo = signed_in(url, answer)
    assert jo.ask("how many incidents are there?")["outcome"] == "answered"
    provider.person = {"sub": "u-nobody", "email": "nobody@example.com", "email_verified": True}
    assert provider.bring_back(Client(url)).body["reason"] == "no_account"
    assert provider.faults == []
    logs = b"".join(path.read_bytes() for path in (product.home / "logs").iterdir())
    assert CLIENT_SECRET.encode() not in logs


def test_a_disabled_person_is_out_at_once_and_so_is_the_key(served: tuple[Any, str]) -> None:
    product, url = served
    add(product, "gwen")
    gwen = sign_in(url, "gwen")
    program = Client(url, token=gwen.post("/tokens", {"name": "report"}).body["token"])
    assert program.ask("how many incidents are there?")["outcome"] == "answered"
    account = product.json("users", "disable", "gwen")
    assert account["state"] == "disabled"
    assert gwen.get("/session").status == program.get("/session").status == 401
    answer = Client(url).post("/sign-in", {"name": "gwen", "password": PASSWORD})
    assert (answer.status, answer.body["reason"]) == (401, "wrong_credentials")
    keys = {key["key_id"]: key["state"] for key in product.json("keys", "list")}
    assert keys[account["key_id"]] == "revoked"


def test_accounts_are_checked_and_listed_and_passwords_set_anew(served: tuple[Any, str]) -> None:
    product, url = served
    add(product, "hana", "--group", "tier-2", "--clearance", "HIGH")
    hana = sign_in(url, "hana")
    listed = {each["name"]: each for each in product.json("users", "list")}
    assert (listed["hana"]["groups"], listed["hana"]["clearance"]) == (["tier-2"], "HIGH")
    keys = {key["key_id"]: key for key in product.json("keys", "list")}
    assert keys[listed["hana"]["key_id"]]["readers"] == ["tier-2"]
    for arguments, stdin, code in (
        (("users", "add", "hana", "--password-stdin"), PASSWORD, 2),
        (("users", "add", "short", "--password-stdin"), "short", 2),
        (("users", "add", "no-terminal"), "", 2),
        (("users", "disable", "nobody"), "", 2),
    ):
        done: subprocess.CompletedProcess[str] = product.run(*arguments, stdin=stdin)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Next:" in done.stderr
        assert "Traceback" not in done.stderr
        assert PASSWORD not in done.stdout + done.stderr
    done = product.run("users", "reset", "hana", "--password-stdin", stdin="another lantern, dry gravel\n")
    assert done.returncode == 0, done.stderr
    assert hana.get("/session").status == 401
    answer = Client(url).post("/sign-in", {"name": "hana", "password": "another lantern, dry gravel"})
    hana = signed_in(url, answer)
    done = product.run("users", "change", "hana", "--role", "auditor")
    assert done.returncode == 0, done.stderr
    assert hana.get("/audit?limit=1").status == 200
    assert hana.post("/chat", {"message": "hello"}).body["reason"] == "missing_role"


def test_nothing_secret_is_logged_or_stored_in_clear(served: tuple[Any, str]) -> None:
    product, url = served
    account = add(product, "dana")
    dana = sign_in(url, "dana")
    token = dana.post("/tokens", {"name": "report"}).body["token"]
    cookie = dana.cookie.partition("=")[2]
    assert Client(url).post("/sign-in", {"name": "dana", "password": "wrong " + PASSWORD}).status == 401
    written = b"".join(
        path.read_bytes()
        for folder in ("logs", "people", "web", "gateway")
        for path in (product.home / folder).rglob("*")
        if path.is_file()
    )
    for secret in (PASSWORD, token, cookie, f"sr_{account['key_id']}_"):
        assert secret.encode() not in written
    for path in (product.home / "people").iterdir():
        assert path.stat().st_mode & 0o077 == 0


def test_the_web_surface_is_not_served_for_an_interceptor_elsewhere(sentinel: Any) -> None:
    elsewhere = {"SENTINEL_URL": "http://127.0.0.1:9", "SENTINEL_API_KEY": "k" * 20}
    sentinel.settings.update(elsewhere)
    done = sentinel.run("up", "--web")
    assert (done.returncode, "people's keys are made" in done.stderr) == (2, True)
    assert sentinel.run("users", "list").returncode == 2


@pytest.mark.requirement("SURF-4")
def test_the_owner_comes_in_by_the_link_asks_on_the_page_and_opens_the_evidence(
    started: tuple[Any, str], chromium: Any
) -> None:
    from playwright.sync_api import expect

    product, _ = started
    link = product.run("users", "link")
    page = chromium.new_page()
    page.goto(re.search(r"http://\S+/sign-in/once/\S+", link.stdout)[0])  # type: ignore[index]
    page.get_by_role("button", name="Sign in as the owner of this machine").click()
    page.get_by_role("textbox", name="Question").fill("top 2 hosts by alerts")
    page.keyboard.press("Enter")
    answer = page.locator("article.answered")
    expect(answer.get_by_role("table")).to_contain_text("srv-file-01.woodgrove.example")
    expect(answer.locator(".tools")).to_contain_text("get_top_entities done")
    expect(answer.locator(".tools")).to_contain_text("rows from SecurityAlert")
    answer.locator("details.provenance > summary").click()
    answer.get_by_role("region", name="Evidence").get_by_role("button").first.click()
    expect(page.get_by_role("region", name="Behind the answer")).to_contain_text("get_top_entities")
    page.close()


@pytest.mark.requirement("SURF-4")
def test_the_owner_reads_incidents_and_the_dashboard_and_the_journal_has_each_reading(
    started: tuple[Any, str], chromium: Any
) -> None:
    from playwright.sync_api import expect

    product, _ = started
    page = chromium.new_page()
    page.goto(product.json("users", "link")["url"])
    page.get_by_role("button", name="Sign in as the owner of this machine").click()
    page.get_by_role("link", name="Incidents").click()
    page.get_by_label("Severity").select_option("High")
    page.get_by_role("link", name="Multi-stage attack").click()
    expect(page.locator(".timeline")).to_contain_text("Severity changed from Medium to High")
    expect(page.get_by_role("button", name="host: srv-file-01.woodgrove.example")).to_be_attached()
    expect(page.get_by_text("Other incidents were looked for by")).to_be_visible()
    assert page.get_by_role("link", name="other incident: #").count() > 0
    expect(page.get_by_role("region", name="Steps of playbooks")).to_contain_text("lateral-movement.md")
    page.get_by_role("link", name="Dashboard").click()
    expect(page.get_by_role("group", name="Alerts over time, drawn").get_by_role("img")).to_be_visible()
    expect(page.get_by_role("group", name="Entities")).to_contain_text("siobhan.o'brien@woodgrove.example")
    page.close()
    shown = product.run("audit", "show", "--last", "80", "--json").stdout.splitlines()
    calls = [each for each in (json.loads(line)["record"] for line in shown) if each["kind"] == "intent"]
    looks = [call for call in calls if call["key_id"] == "user"]
    assert {"query_incidents", "get_incident_detail", "search_knowledge_base", "get_alert_trend"} <= {
        call["tool"] for call in looks
    }
    assert len({call["session_id"] for call in looks}) == 1
