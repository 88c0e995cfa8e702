"""`GET /conversations/{session_id}/export`: a person's own conversation as a file, with what that person may see."""

from __future__ import annotations

import pytest
from running_web import RunningWeb
from selectolax.lexbor import LexborHTMLParser

from sentinel_rag.audit import JournalReader
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import Role

HIDDEN = "powershell -enc SECRET admin"


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize(("form", "kind"), [("html", "text/html"), ("md", "text/markdown"), ("csv", "text/csv")])
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
    assert ("REVEALED" in shown) == (form != "csv")
    assert "REVEALED" not in told.content.decode()


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
        f"approved by {web.accounts['finn-actions'].key_id}: asked about ws-07",
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
        account.user_id,
        roles=account.roles,
        groups=(),
        clearance=account.clearance,
        key=key,
        key_id=info.key_id,
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
    assert web.person("dana-export").request("GET", f"/conversations/{session}/export?format=pdf").status == 422


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
