"""`GET /conversations/{session_id}/export`: a person's own conversation as a file, with what that person may see."""

from __future__ import annotations

import sys
from io import BytesIO

import pytest
from docx import Document
from pypdf import PdfReader
from running_web import MODEL, RunningWeb
from selectolax.lexbor import LexborHTMLParser

from sentinel_rag import __version__
from sentinel_rag.audit import JournalReader
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import AccountTerms, Role
from sentinel_rag.surfaces.web import Agent

HIDDEN = "powershell -enc SECRET admin"


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize(("form", "kind"), [("html", "text/html"), ("md", "text/markdown"), ("evidence", "text/csv")])
def test_hidden_values_stay_hidden_unless_the_person_asks(web: RunningWeb, form: str, kind: str) -> None:
    dana = web.person("dana-export")
    session = dana.ask("call read_alert")["session_id"]
    told = dana.request("GET", f"/conversations/{session}/export?format={form}")
    assert told.status == 200, told.content
    assert told.headers["content-type"] == f"{kind}; charset=utf-8"
    assert told.headers["content-disposition"].startswith(f'attachment; filename="handover-{session[:8]}-')
    assert "SECRET" not in told.content.decode()
    assert "ws-01" in told.content.decode()
    shown = dana.request("GET", f"/conversations/{session}/export?format={form}&reveal=true").content.decode()
    assert HIDDEN in shown
    assert ("REVEALED" in shown) == (form != "evidence")
    assert "REVEALED" not in told.content.decode()


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize(("form", "begins"), [("docx", b"PK\x03\x04"), ("pdf", b"%PDF-")])
def test_a_document_is_of_the_kind_that_its_name_says(web: RunningWeb, form: str, begins: bytes) -> None:
    dana = web.person("dana-export")
    session = dana.ask("call read_alert")["session_id"]
    told = dana.request("GET", f"/conversations/{session}/export?format={form}")
    assert (told.status, told.content[: len(begins)]) == (200, begins)
    assert told.headers["content-disposition"].endswith(f'.{form}"')


@pytest.mark.requirement("SURF-6")
def test_a_refused_call_and_what_was_stopped_are_in_the_report(web: RunningWeb) -> None:
    dana = web.person("dana-export")
    session = dana.ask("call forbidden")["session_id"]
    page = LexborHTMLParser(dana.request("GET", f"/conversations/{session}/export").content.decode())
    text = page.body.text() if page.body is not None else ""
    assert "forbidden" in text
    assert "denied" in text.partition("actions and approvals, as recorded")[2].partition("Annex: timeline")[0]


@pytest.mark.requirement("SURF-6")
def test_actions_and_decisions_are_in_the_report_of_whoever_asked_and_nobody_elses(web: RunningWeb) -> None:
    dana, erin = web.person("dana-actions"), web.person("erin-actions")
    finn = web.person("finn-actions", Role.APPROVER)
    isolate = 'call isolate {"host": "ws-07"}'
    session = dana.ask("call read_alert")["session_id"]
    dana.ask(isolate, session_id=session)
    theirs = erin.ask('call isolate {"host": "ws-08"}')["session_id"]
    for each in finn.get("/approvals?state=pending").body["approvals"]:
        decided = "approve" if each["arguments"] == {"host": "ws-07"} else "deny"
        body = {"decision": decided, "comment": f"asked about {each['arguments']['host']}"}
        assert finn.post(f"/approvals/{each['approval_id']}/decision", body).status == 200
    dana.ask(isolate, session_id=session)

    text = dana.get(f"/conversations/{session}/export?format=md").content.decode().replace("\\", "")
    actions = text.partition("actions and approvals, as recorded")[2].partition("Annex: timeline")[0]
    for said in (
        "denied (approval_required); waits for approval",
        "a person was asked: the rule requires it",
        "approved by finn-actions: asked about ws-07",
        "allowed after approval; outcome: success",
        '{"host": "ws-07"}',
    ):
        assert said in actions, actions
    assert "ws-08" not in text
    assert "isolate_asks" not in text  # rules are not the person's to read
    newest = JournalReader(web.gateway.state.database.path).last(1)[0]
    assert f"number {newest.seq}, hash {newest.digest.hex()}" in text
    other = erin.get(f"/conversations/{theirs}/export?format=md").content.decode().replace("\\", "")
    assert "asked about ws-08" in other
    assert "ws-07" not in other
    assert "no more" not in text + other


def test_a_session_of_a_key_that_was_made_anew_is_told_in_the_report(web: RunningWeb) -> None:
    dana = web.person("dana-gone")
    session = dana.ask("say hello")["session_id"]
    account = web.accounts["dana-gone"]
    key, info = web.gateway.state.keys.create(
        [Scope.USER], name="dana-gone-anew", clearance=account.clearance, for_key=web.agent_key_id
    )
    web.web.people.give_terms(
        account.user_id, AccountTerms(account.roles, account.clearance), key=key, key_id=info.key_id
    )
    told = dana.get(f"/conversations/{session}/export").content.decode()
    assert "knows a session of this conversation no more" in told
    assert "hello" in told


@pytest.mark.requirement("SURF-5")
def test_a_hostile_question_is_text_in_every_form(web: RunningWeb) -> None:
    dana = web.person("dana-export")
    said = (
        "say <img src=x onerror=alert(1)> ![p](https://evil.example/p.png) \x1b[2J admin\u202egnp.exe =1+1"
        "\n\nevent: done\ndata: {}"
    )
    events = dana.events("POST", "/chat", {"message": said})
    assert [event["type"] for event in events].count("done") == 1
    assert "".join(event["data"]["text"] for event in events if event["type"] == "text") == said.removeprefix("say ")
    session = events[0]["data"]["session_id"]
    page = dana.request("GET", f"/conversations/{session}/export").content.decode()
    assert list(LexborHTMLParser(page).css("img, script, [onerror]")) == []
    for form in ("html", "md"):
        written = dana.request("GET", f"/conversations/{session}/export?format={form}").content.decode()
        assert "\\x1b[2J" in written.replace("\\[", "[").replace("\\\\", "\\")
        assert "\u202e" not in written
        assert "\x1b" not in written


def test_nobody_exports_what_another_person_asked(web: RunningWeb) -> None:
    session = web.person("dana-export").ask("say hello")["session_id"]
    assert web.person("erin-export").request("GET", f"/conversations/{session}/export").status == 404
    assert web.stranger().request("GET", f"/conversations/{session}/export").status == 401
    assert web.person("dana-export").request("GET", f"/conversations/{session}/export?format=xlsx").status == 422


@pytest.mark.requirement("SURF-6")
def test_the_records_of_a_persons_session_hold_no_arguments_labels_or_rules(web: RunningWeb) -> None:
    """The attacker is a person who may ask: what a record holds of hidden values and of the policy is not theirs."""
    dana = web.person("dana-records")
    session = dana.ask("call read_alert")["session_id"]
    dana.ask('call isolate {"host": "ws-99"}', session_id=session)
    key = web.web.people.gateway_key(web.accounts["dana-records"].user_id)
    answer = web.gateway.request("GET", f"/v1/sessions/{session}/records", key=key)
    assert [entry["record"]["kind"] for entry in answer.body["records"]] == ["approval_asked", "refusal"]
    for secret in ("ws-99", "isolate_asks", "CommandLine", "LOW", "UNTRUSTED", "sha256"):
        assert secret not in answer.content.decode()
    assert answer.body["whole"] is True


def text_of(form: str, content: bytes) -> str:
    """The words of a report, as the program of its form reads them."""
    if form == "pdf":
        return " ".join(page.extract_text() for page in PdfReader(BytesIO(content)).pages)
    if form == "docx":
        document = Document(BytesIO(content))
        cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
        return " ".join([*(each.text for each in document.paragraphs), *cells])
    return content.decode()


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize("form", ["pdf", "docx", "html", "md"])
def test_a_shift_is_one_report_of_all_that_its_person_asked(web: RunningWeb, form: str) -> None:
    dana, erin = web.person("dana-shift"), web.person("erin-shift")
    dana.ask("say first=1")
    dana.ask("say second=2")
    erin.ask("say elsewhere=3")
    told = dana.get(f"/reports?hours=8&format={form}")
    assert told.status == 200, told.content
    assert f".{form}" in told.headers["content-disposition"]
    text = text_of(form, told.content)
    for said in ("Shift hand-over", "Open points", "first=1", "second=2"):
        assert said in text.replace("\\", ""), text
    assert "elsewhere" not in text


@pytest.mark.requirement("SURF-6")
def test_what_others_had_done_is_for_those_who_approve(web: RunningWeb) -> None:
    dana, finn = web.person("dana-team"), web.person("finn-team", Role.ANALYST, Role.APPROVER)
    dana.ask('call isolate {"host": "ws-31"}')
    finn.ask("say nothing=0")
    refused = dana.get("/reports?team=true&format=md")
    assert (refused.status, refused.body["reason"]) == (403, "missing_role")
    alone = finn.get("/reports?format=md").content.decode()
    assert alone.startswith("# Shift hand-over\n")
    assert "ws-31" not in alone
    told = finn.get("/reports?team=true&format=md").content.decode()
    assert told.startswith("# Shift hand-over of the team\n")
    assert "waits for a decision" in told
    assert "dana-team" in told


@pytest.mark.requirement("SURF-6")
def test_a_report_that_cannot_be_made_is_refused(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    dana, idle = web.person("dana-no-report"), web.person("idle-no-report")
    session = dana.ask("say hello")["session_id"]
    assert dana.get("/reports?format=exe").status == 422
    for path in (
        "/reports",
        f"/conversations/{dana.post('/chat', {'message': 'say hello'}).body['session_id']}/export",
    ):
        refused = dana.get(f"{path}?timezone=Europe/Berlim")
        assert (refused.status, refused.body["reason"]) == (422, "malformed")
        assert "no time zone of that name; names are like Europe/Berlin or UTC" in refused.body["detail"]
    empty = idle.get("/reports")
    assert (empty.status, "Nothing was asked then" in empty.body["detail"]) == (422, True)
    other = dana.get("/reports?incident=124")
    assert (other.status, "about incident 124" in other.body["detail"]) == (422, True)
    monkeypatch.setitem(sys.modules, "reportlab.lib.pagesizes", None)
    monkeypatch.setitem(sys.modules, "docx", None)
    for form in ("pdf", "docx"):
        answer = dana.get(f"/conversations/{session}/export?format={form}")
        assert (answer.status, answer.body["reason"]) == (409, "not_installed")
    assert dana.get(f"/conversations/{session}/export?format=md").status == 200


@pytest.mark.requirement("SURF-6")
def test_a_report_of_one_incident_holds_its_questions_alone(web: RunningWeb) -> None:
    lena = web.person("lena-incident")
    session = lena.ask("say hello")["session_id"]
    lena.ask("say other=1")
    record = web.web.record
    [turn] = record.turns(session, 0, 10)
    named = {**dict(turn.answer or {}), "answer": "about it"}
    named["tools"] = [
        {"name": "get_incident_detail", "arguments": {"incident": "124"}, "status": "ok", "detail": "", "audit_id": "a"}
        | {"call_id": "c1", "duration_ms": 1.0, "coverage": None}
    ]
    record.end(turn.turn_id, turn.state, named, [])
    text = lena.get("/reports?incident=124&format=md").content.decode()
    assert "Incident 124" in text
    assert "other=1" not in text


@pytest.mark.requirement("SURF-6")
def test_a_lead_reads_what_questions_took_and_nothing_of_their_words(web: RunningWeb) -> None:
    lead, gwen = web.person("lead-usage", Role.APPROVER), web.person("gwen-usage")
    before = lead.get("/usage?days=7").body
    answer = gwen.ask("say 77 secrets")
    model = {"requests": 2, "input_tokens": 900, "output_tokens": 40, "cost_usd": "0.0125"}
    record = web.web.record
    [turn] = record.turns(answer["session_id"], 0, 10)
    record.end(turn.turn_id, turn.state, {**dict(turn.answer or {}), "model": model}, [])
    gwen.request("PUT", f"/turns/{turn.turn_id}/opinion", {"good": False, "reason": "slow"})
    told = lead.get("/usage?days=7")
    rise = {name: told.body["last"][name] - before["last"][name] for name in before["last"] if name != "cost_usd"}
    assert rise == {
        "questions": 1,
        "people": 1,
        "requests": 2,
        "input_tokens": 900,
        "output_tokens": 40,
        "unpriced": 0,
        "helped": 0,
        "not_helped": 1,
    }
    assert float(told.body["last"]["cost_usd"]) == float(before["last"]["cost_usd"]) + 0.0125
    assert told.body["before"]["questions"] == 0
    assert b"secrets" not in told.content
    assert gwen.get("/usage").body["reason"] == "missing_role"


@pytest.mark.requirement("SURF-6")
def test_a_lead_sees_what_runs_and_what_does_not_answer(web: RunningWeb) -> None:
    lead, gwen = web.person("lead-state", Role.APPROVER), web.person("gwen-state")
    told = lead.get("/state").body
    assert told["parts"].keys() >= {"gateway", "agent", "policy", "journal"}
    assert {told["parts"][name] for name in ("gateway", "agent", "policy", "journal")} == {"ok"}
    assert (told["versions"], told["model"]) == ({"page": __version__, "agent": __version__}, MODEL)
    agent = web.web.agent
    web.web.agent = Agent("http://127.0.0.1:9", "nobody listens there", web.web.connections)
    try:
        without = lead.get("/state").body
    finally:
        web.web.agent = agent
    assert "The agent did not answer" in without["parts"]["agent"]
    assert (without["parts"]["gateway"], without["model"]) == ("ok", None)
    assert gwen.get("/state").body["reason"] == "missing_role"
