"""What people do beside asking: keep conversations, decide approvals, read the audit and the policy."""

from __future__ import annotations

import json

import pytest
from running_web import RunningWeb
from tests.support.obedient_analyst import FACT
from tests.support.web_client import Client

from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import OWNER, AccountTerms, Role


def waiting_id(client: Client, host: str, **more: str) -> str:
    """The id of the approval that a call of `client`'s waits for."""
    answer = client.ask(f"call isolate {json.dumps({'host': host})}", **more)
    assert answer["outcome"] == "denied"
    return str(answer["answer"].split()[-1])


@pytest.mark.requirement("SURF-3")
def test_conversations_are_kept_listed_renamed_and_read_in_pages(web: RunningWeb) -> None:
    dana = web.person("dana-work")
    first = dana.ask("say one\n  two")["session_id"]
    second = dana.ask("say other")["session_id"]
    for number in range(4):
        dana.ask(f"say {number}", session_id=first)
    listed = dana.get("/conversations").body["conversations"]
    assert [(each["session_id"], each["title"], each["turns"]) for each in listed] == [
        (first, "say one two", 5),
        (second, "say other", 1),
    ]
    assert dana.get("/conversations?limit=1").body["conversations"] == listed[:1]
    renamed = dana.request("PATCH", f"/conversations/{first}", {"title": " Night  shift "}).body
    assert renamed["title"] == "Night shift"
    page = dana.get(f"/conversations/{first}?limit=2").body
    assert [item["number"] for item in page["items"]] == [1, 2]
    rest = dana.get(f"/conversations/{first}?after={page['next_after']}").body
    assert [item["question"] for item in rest["items"]] == ["say 1", "say 2", "say 3"]
    assert rest["items"][0]["answer"]["session_id"] == first
    assert [client.get("/conversations").body["conversations"] for client in [web.person("erin-work")]] == [[]]


@pytest.mark.requirement("CHAT-7")
def test_a_clear_carries_facts_on_or_forgets_and_keeps_what_was_said(web: RunningWeb) -> None:
    dana = web.person("dana-clear")
    session_id = dana.ask("say hello")["session_id"]
    assert dana.post(f"/conversations/{session_id}/clear", {}).body == {"carried": [FACT.to_dict()]}
    assert dana.post(f"/conversations/{session_id}/clear", {"carry": False}).body == {"carried": []}
    assert web.analyst.cleared[-1] == web.analyst.forgotten[-1] == session_id
    assert len(dana.get(f"/conversations/{session_id}").body["items"]) == 1


def test_a_deleted_conversation_is_gone_here_at_the_agent_and_at_the_gateway(web: RunningWeb) -> None:
    dana = web.person("dana-delete")
    session_id = dana.ask("say the words of a deleted conversation")["session_id"]
    web.analyst.release.clear()
    turn_id = dana.request("POST", "/chat", {"message": "say more", "session_id": session_id, "request_id": "r"}).body[
        "turn_id"
    ]
    assert dana.delete(f"/conversations/{session_id}").status == 204
    assert dana.get(f"/conversations/{session_id}").status == 404
    assert dana.get(f"/turns/{turn_id}").status == 404
    assert dana.post("/chat", {"message": "say x", "session_id": session_id}).status == 404
    assert web.analyst.deleted[-1] == session_id
    closed = [r for r in web.gateway.records() if r["kind"] == "session" and r["session_id"] == session_id]
    assert [record["change"] for record in closed][-1] == "closed"
    assert dana.delete(f"/conversations/{session_id}").status == 404


def test_a_conversation_goes_on_when_the_interceptor_has_closed_its_session(web: RunningWeb) -> None:
    dana = web.person("dana-gone")
    session_id = dana.ask("say hello")["session_id"]
    user_key = web.web.people.gateway_key(web.accounts["dana-gone"].user_id)
    assert web.gateway.request("DELETE", f"/v1/sessions/{session_id}", key=user_key).status == 204
    events = dana.events("POST", "/chat", {"message": "say again", "session_id": session_id})
    assert any("is not carried on" in event["data"].get("text", "") for event in events if event["type"] == "status")
    assert events[-1]["data"]["session_id"] == session_id
    asked_in = [session for session, question in web.analyst.asked if question == "say again"]
    assert asked_in != [session_id]
    assert dana.ask("say once more", session_id=session_id)["answer"] == "once more"
    assert web.analyst.asked[-1][0] == asked_in[0]


@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
def test_an_approver_sees_the_story_decides_once_and_the_call_passes_once(web: RunningWeb) -> None:
    dana, finn = web.person("dana-appr"), web.person("finn-appr", Role.APPROVER)
    session_id = dana.ask("say please isolate ws-3")["session_id"]
    approval_id = waiting_id(dana, "ws-3", session_id=session_id)
    assert approval_id in {each["approval_id"] for each in finn.get("/approvals?state=pending").body["approvals"]}
    story = finn.get(f"/approvals/{approval_id}").body
    assert (story["tool"], story["arguments"], story["state"]) == ("isolate", {"host": "ws-3"}, "pending")
    assert {"why", "argument_labels", "context", "rule_id", "may_decide", "own"} <= set(story)
    assert (story["may_decide"], story["own"]) == (True, False)
    decided = finn.post(f"/approvals/{approval_id}/decision", {"decision": "approve", "comment": "agreed"}).body
    assert (decided["state"], decided["decision"]["by"]) == ("approved", web.accounts["finn-appr"].key_id)
    again = finn.post(f"/approvals/{approval_id}/decision", {"decision": "deny"})
    assert (again.status, again.body["reason"]) == (409, "approval_decided")
    call = f"call isolate {json.dumps({'host': 'ws-3'})}"
    assert dana.ask(call, session_id=session_id)["outcome"] == "answered"
    assert dana.ask(call, session_id=session_id)["outcome"] == "denied"


@pytest.mark.requirement("APPR-1")
def test_whoever_asked_is_told_what_became_of_each_call_that_was_held_back(web: RunningWeb) -> None:
    dana, finn = web.person("dana-told"), web.person("finn-told", Role.APPROVER)
    session_id = dana.ask("say please isolate ws-5 and ws-6")["session_id"]
    first, second = (waiting_id(dana, host, session_id=session_id) for host in ("ws-5", "ws-6"))

    def states() -> dict[str, str]:
        told = dana.get(f"/conversations/{session_id}/requests").body["requests"]
        return {each["approval_id"]: each["state"] for each in told}

    assert states() == {first: "pending", second: "pending"}
    for approval_id, decision in ((first, "approve"), (second, "deny")):
        finn.post(f"/approvals/{approval_id}/decision", {"decision": decision, "comment": f"{decision}, seen"})
    assert states() == {first: "approved", second: "denied"}
    dana.ask(f"call isolate {json.dumps({'host': 'ws-5'})}", session_id=session_id)
    assert states() == {first: "used", second: "denied"}
    [used, denied] = dana.get(f"/conversations/{session_id}/requests").body["requests"]
    turns = dana.get(f"/conversations/{session_id}").body["items"]
    assert used["audit_id"] in {call["audit_id"] for turn in turns for call in turn["answer"]["tools"]}
    ruling = used["decision"]
    assert (used["tool"], ruling["by"], ruling["comment"]) == ("isolate", "finn-told", "approve, seen")
    assert used["used_at"] > used["decision"]["at"] > used["asked_at"]
    assert (denied["used_at"], denied["decision"]["comment"]) == (None, "deny, seen")
    assert finn.get(f"/approvals/{first}").body["decision"]["name"] == "finn-told"


def test_what_a_person_thought_of_an_answer_is_kept_with_its_turn_and_can_be_taken_back(web: RunningWeb) -> None:
    dana = web.person("dana-thinks")
    answer = dana.ask("say hello")
    path = f"/turns/{answer['turn_id']}"
    assert dana.get(path).body["opinion"] is None
    opinion = {"good": False, "reason": "Something was missing: the second host"}
    assert dana.request("PUT", f"{path}/opinion", opinion).status == 204
    [turn] = dana.get(f"/conversations/{answer['session_id']}").body["items"]
    assert dana.get(path).body["opinion"] == turn["opinion"] == opinion
    assert dana.request("PUT", f"{path}/opinion", {"good": True, "reason": "x" * 601}).status == 422
    assert dana.request("DELETE", f"{path}/opinion").status == 204
    assert dana.get(path).body["opinion"] is None
    web.analyst.release.clear()
    running = dana.request("POST", "/chat", {"message": "fail", "session_id": answer["session_id"]})
    assert running.status >= 500
    failed = dana.get(f"/conversations/{answer['session_id']}").body["items"][-1]["turn_id"]
    refused = dana.request("PUT", f"/turns/{failed}/opinion", {"good": True})
    assert (refused.status, refused.body["reason"]) == (409, "no_answer")


def test_an_admin_sees_who_may_sign_in_and_no_secret_of_theirs(web: RunningWeb) -> None:
    web.add("erin-listed", Role.ANALYST, Role.APPROVER)
    answer = web.person("adam-people", Role.ADMIN).get("/users")
    told = {each["name"]: each for each in answer.body["users"]}
    assert told["erin-listed"]["roles"] == ["analyst", "approver"]
    assert told["erin-listed"]["signs_in_with"] == ["password"]
    assert set(told["erin-listed"]) == {
        *("name", "roles", "groups", "clearance", "state", "signs_in_with", "key_id", "created_at")
    }


@pytest.mark.requirement("APPR-1")
def test_nobody_decides_what_the_agent_asks_for_them(web: RunningWeb) -> None:
    """The attacker is a person who may ask and approve, and has the agent ask for what they want; with the same key at
    the gateway, and with another after a change of roles."""
    both = web.person("both-appr", Role.ANALYST, Role.APPROVER)
    approval_id = waiting_id(both, "ws-4")
    shown = both.get(f"/approvals/{approval_id}").body
    assert (shown["own"], shown["may_decide"]) == (True, False)
    answer = both.post(f"/approvals/{approval_id}/decision", {"decision": "approve"})
    assert (answer.status, answer.body["reason"]) == (403, "own_approval")
    # Past this surface, with the person's own key, the gateway refuses too and has it on record.
    key = web.web.people.gateway_key(web.accounts["both-appr"].user_id)
    direct = web.gateway.request("POST", f"/v1/approvals/{approval_id}/approve", key=key)
    assert (direct.status, direct.body["reason"]) == (403, "own_approval")
    record = web.gateway.last_record()
    assert (record["kind"], record["audit_id"], record["reason"]) == (
        "approval_decision_refused",
        approval_id,
        "own_approval",
    )
    assert web.gateway.request("GET", f"/v1/approvals/{approval_id}", key=key).body["may_decide"] is False
    account = web.accounts["both-appr"]
    fresh, info = web.gateway.state.keys.create(
        [Scope.APPROVE, Scope.USER],
        name="both-appr anew",
        for_key=web.agent_key_id,
    )
    web.web.people.give_terms(
        account.user_id, AccountTerms(account.roles, account.clearance), key=fresh, key_id=info.key_id
    )
    answer = both.post(f"/approvals/{approval_id}/decision", {"decision": "approve"})
    assert (answer.status, answer.body["reason"]) == (403, "own_approval")
    assert web.person("finn-appr", Role.APPROVER).get(f"/approvals/{approval_id}").body["state"] == "pending"


def test_an_auditor_reads_pages_and_one_call_and_verifies(web: RunningWeb) -> None:
    dana, finn = web.person("dana-audit"), web.person("finn-audit", Role.AUDITOR)
    audit_id = dana.ask("call read_alert")["tools"][0]["audit_id"]
    page = finn.get("/audit?limit=2").body
    assert [entry["record"]["seq"] for entry in page["records"]] == [1, 2]
    assert finn.get(f"/audit?after={page['next_after']}&limit=1").body["records"][0]["record"]["seq"] == 3
    kinds = [entry["record"]["kind"] for entry in finn.get(f"/audit/{audit_id}").body["records"]]
    assert kinds == ["intent", "outcome"]
    assert finn.get("/audit/no-such-id").status == 404
    found = finn.post("/audit/verify").body
    assert (found["intact"], found["problem"]) == (True, "")
    assert found["records"] >= 3


def test_an_admin_sees_the_policy_and_why_a_call_would_be_decided_so(web: RunningWeb) -> None:
    ada = web.person("ada-policy", Role.ADMIN)
    shown = ada.get("/policy").body
    assert "isolate_asks" in shown["text"]
    body = {"tool": "isolate", "arguments": {"host": "ws-9"}, "context": "HIGH/UNTRUSTED", "words": "isolate host ws-9"}
    before = len(web.gateway.records())
    story = ada.post("/policy/explain", body).body
    assert (story["verdict"]["reason"], story["verdict"]["rule_id"]) == ("approval_required", "isolate_asks")
    assert any("the user's own words name it" in line for line in story["lines"])
    assert len(web.gateway.records()) == before  # no call was made
    unknown = ada.post("/policy/explain", {"tool": "no_such_tool"}).body
    assert unknown["verdict"]["decision"] == "deny"


@pytest.mark.requirement("APPR-6")
def test_whoever_asked_confirms_with_one_click_and_another_analyst_does_not_see_it(web: RunningWeb) -> None:
    dana, other = web.person("dana-conf"), web.person("other-conf")
    call = f"call label {json.dumps({'host': 'ws-8'})}"
    answer = dana.ask(call)
    approval_id = answer["answer"].split()[-1]
    (waits,) = dana.get("/approvals?state=pending").body["approvals"]
    assert (waits["approval_id"], waits["may_decide"], waits["own"], waits["words"]) == (approval_id, True, False, call)
    assert other.get("/approvals?state=pending").body["approvals"] == []
    path = f"/approvals/{approval_id}/decision"
    assert other.post(path, {"decision": "approve"}).status == 404
    decided = dana.post(path, {"decision": "approve"}).body
    assert (decided["state"], decided["outcome"]["status"]) == ("used", "success"), "it ran at the yes"
    statuses = [dana.ask(call, session_id=answer["session_id"])["outcome"] for _ in range(2)]
    assert statuses == ["answered", "denied"]


@pytest.mark.requirement("APPR-4")
def test_an_option_that_is_picked_by_its_number_is_told_as_the_persons_own_choice(web: RunningWeb) -> None:
    """The agent offers it; what it adds to the picked option stays its own."""
    dana = web.person("dana-picks")
    session_id = dana.ask("say [1] label host ws-8")["session_id"]
    dana.ask("1", session_id=session_id)
    asked = [web.gateway.call("label", {"host": host}, session_id=session_id).body for host in ("ws-8", "ws-9")]
    chosen, added = (dana.get(f"/approvals/{each['approval_id']}").body for each in asked)
    assert {each["words"] for each in (chosen, added)} == {"1: label host ws-8"}
    assert (chosen["person"], chosen["said"], added["said"]) == ("dana-picks", ["host"], [])
    dana.ask("say nothing to pick", session_id=session_id)
    dana.ask("1", session_id=session_id)
    again = web.gateway.call("label", {"host": "ws-7"}, session_id=session_id).body["approval_id"]
    assert dana.get(f"/approvals/{again}").body["words"] == "1"


def test_the_owner_decides_as_at_the_terminal(web: RunningWeb) -> None:
    """Whoever started this alone has nobody to ask, and owns the approver's key of the run anyway."""
    account = web.web.people.add_owner()
    opened = web.web.people.sign_ins.begin(account.user_id, lasts=web.web.terms.lasts)
    owner = Client(web.url, cookie=f"sentinel={opened.token}", csrf=opened.csrf)
    assert owner.get("/session").body["name"] == OWNER
    approval_id = waiting_id(owner, "ws-5")
    assert owner.post(f"/approvals/{approval_id}/decision", {"decision": "deny"}).body["state"] == "denied"
    assert [owner.post(f"/approvals/{approval_id}/decision", {"decision": "lift"}).status for _ in range(2)] == [
        200,
        409,
    ]
    assert owner.post("/audit/verify").body["intact"] is True


def test_a_person_changes_the_terms_of_an_account_and_the_sign_in_follows(web: RunningWeb) -> None:
    hana = web.person("hana-work")
    assert hana.get("/audit").status == 403
    account = web.accounts["hana-work"]
    key, info = web.gateway.state.keys.create([Scope.AUDIT], name="hana anew")
    web.web.people.give_terms(
        account.user_id,
        AccountTerms(frozenset({Role.AUDITOR}), account.clearance, ("soc",)),
        key=key,
        key_id=info.key_id,
    )
    assert hana.get("/session").body["groups"] == ["soc"]
    assert hana.get("/audit?limit=1").status == 200
    assert hana.post("/chat", {"message": "say x"}).body["reason"] == "missing_role"
