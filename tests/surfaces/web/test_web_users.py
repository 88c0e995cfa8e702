"""Accounts changed over the API: who may, what each step ends, and that nobody gives more than they have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from running_web import RunningWeb, password_of
from tests.support.web_client import Client, signed_in

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.surfaces.users import Role

LEAD = (Role.ANALYST, Role.APPROVER, Role.ADMIN)
CHOSEN = "seven green lamps at noon"


def key_records(web: RunningWeb, name: str) -> list[tuple[str, str]]:
    """What is on record of the keys of that name: the change and by whom, oldest first."""
    records = (entry.record for entry in JournalReader(web.gateway.state.database.path).read(0, 1_000))
    return [(each["change"], each["by"]) for each in records if each["kind"] == "key" and each["name"] == name]


def accepted(web: RunningWeb, token: str, password: str = CHOSEN) -> Client:
    return signed_in(web.url, web.stranger().post("/sign-in/invitation", {"token": token, "password": password}))


@pytest.mark.requirement("SURF-4")
def test_an_account_is_made_joined_changed_reset_and_ended(web: RunningWeb) -> None:
    lead = web.browser("lead-whole", *LEAD)
    made = lead.post("/users", {"name": "Nina", "roles": ["analyst"]})
    assert (made.status, made.body["user"]["name"], made.body["user"]["signs_in_with"]) == (201, "nina", [])
    token = made.body["invitation"]["token"]
    assert web.stranger().post("/sign-in", {"name": "nina", "password": token}).status == 401

    # The person chooses the password, once; one that would be guessed spends nothing.
    weak = web.stranger().post("/sign-in/invitation", {"token": token, "password": "nina nina nina"})
    assert (weak.status, "would be guessed" in weak.body["detail"]) == (422, True)
    nina = accepted(web, token)
    assert nina.get("/session").body["roles"] == ["analyst"]
    assert nina.get("/tools").status == 200  # with a key that the gateway takes
    again = web.stranger().post("/sign-in/invitation", {"token": token, "password": CHOSEN})
    assert (again.status, again.body["reason"]) == (404, "not_found")
    assert Client(web.url, token=token).get("/session").status == 401  # it signs in nobody

    # Another role holds at the next request, without a new sign-in.
    assert nina.get("/approvals?limit=1").body["approvals"] == []
    changed = lead.request("PUT", "/users/nina", {"roles": ["approver"]})
    assert changed.body["user"]["roles"] == ["approver"]
    assert (nina.get("/tools").status, nina.get("/approvals").status) == (403, 200)

    program = web.program(nina)
    [known] = lead.get("/users/nina/tokens").body["tokens"]
    assert lead.delete(f"/users/nina/tokens/{known['token_id']}").status == 204
    assert program.get("/session").status == 401
    assert lead.delete(f"/users/nina/tokens/{known['token_id']}").status == 404

    reset = lead.post("/users/nina/reset")
    assert nina.get("/session").status == 401
    assert web.stranger().post("/sign-in", {"name": "nina", "password": CHOSEN}).status == 401
    nina = accepted(web, reset.body["invitation"]["token"], "eight brown boats at dawn")
    assert nina.get("/approvals").status == 200

    assert lead.delete("/users/nina").body["user"]["state"] == "disabled"
    assert nina.get("/session").status == 401
    refused = lead.post("/users/nina/reset")
    assert (refused.status, "disabled" in refused.body["detail"]) == (422, True)
    by = "lead-whole"
    assert key_records(web, "nina") == [
        ("created", by),
        ("created", by),
        ("revoked", by),
        ("rotated", by),
        ("revoked", by),
    ]


@pytest.mark.requirement("SURF-4")
@pytest.mark.parametrize(
    ("terms", "lacking"),
    [
        ({"roles": ["analyst", "auditor"]}, "audit"),
        ({"roles": ["analyst"], "clearance": "HIGH"}, "clearance HIGH"),
        ({"roles": ["analyst"], "groups": ["finance"]}, "group finance"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_nobody_gives_what_they_do_not_have(web: RunningWeb, terms: dict[str, object], lacking: str) -> None:
    if "lead-medium" not in web.accounts:
        web.add("lead-medium", *LEAD, clearance=Sensitivity.MEDIUM)
        web.add("under-lead", Role.ANALYST, clearance=Sensitivity.LOW)
    lead = web.person("lead-medium")
    before = web.web.people.find("under-lead")
    for answer in (lead.post("/users", {"name": "puppet", **terms}), lead.request("PUT", "/users/under-lead", terms)):
        assert (answer.status, answer.body["reason"]) == (403, "missing_scope")
        assert answer.body["detail"] == f"Nobody gives or changes what they do not have themselves: {lacking}."
    assert web.web.people.find("under-lead") == before
    assert key_records(web, "puppet") == []
    assert web.stranger().post("/sign-in", {"name": "under-lead", "password": password_of("under-lead")}).status == 200


@pytest.mark.requirement("SURF-4")
def test_who_does_not_ask_is_given_nothing_to_read_that_would_wait_for_another_role(web: RunningWeb) -> None:
    web.add("lead-hoards", *LEAD, clearance=Sensitivity.MEDIUM)
    terms = {"roles": ["approver"], "clearance": "HIGH", "groups": ["finance"]}
    lead = web.person("lead-hoards")
    made = lead.post("/users", {"name": "decides", **terms})
    changed = lead.request("PUT", "/users/decides", terms)
    for answer, status in ((made, 201), (changed, 200)):
        assert (answer.status, answer.body["user"]["clearance"], answer.body["user"]["groups"]) == (status, "LOW", [])


@pytest.mark.requirement("SURF-4")
def test_an_account_with_more_rights_is_not_taken_over(web: RunningWeb) -> None:
    web.add("above", Role.ANALYST, Role.AUDITOR)
    lead = web.browser("lead-below", *LEAD)
    lower = {"roles": ["analyst"]}  # after which it could be reset, with all that it asked before
    for taken in (lead.post("/users/above/reset"), lead.request("PUT", "/users/above", lower)):
        assert (taken.status, taken.body["reason"]) == (403, "missing_scope")
        assert taken.body["detail"] == "Nobody gives or changes what they do not have themselves: audit."
    assert web.stranger().post("/sign-in", {"name": "above", "password": password_of("above")}).status == 200
    assert lead.delete("/users/above").status == 200  # an account that is misused is ended by any admin
    assert lead.request("PUT", "/users/above", lower).status == 403


@pytest.mark.requirement("SURF-4")
def test_nobody_changes_their_own_account_and_only_admins_at_a_browser_change_others(web: RunningWeb) -> None:
    web.add("bystander")
    lead, analyst = web.browser("lead-own", *LEAD), web.browser("analyst-tries", Role.ANALYST, Role.APPROVER)
    ways = [("PUT", {"roles": ["analyst"]}), ("DELETE", None), ("POST", None)]
    for method, body in ways:
        path = "/users/{}/reset" if method == "POST" else "/users/{}"
        own = lead.request(method, path.format("Lead-Own"), body)
        assert (own.status, own.body["reason"]) == (403, "own_account")
        for client, reason in (
            (analyst, "missing_role"),
            (web.program(lead), "browser_only"),
            (Client(web.url, cookie=lead.cookie), "csrf"),
            (web.stranger(), "unauthenticated"),
        ):
            answer = client.request(method, path.format("bystander"), body)
            assert answer.body["reason"] == reason
    assert analyst.post("/users", {"name": "friend", "roles": ["admin"]}).body["reason"] == "missing_role"
    assert analyst.get("/users/bystander/tokens").body["reason"] == "missing_role"
    assert web.web.people.find("bystander").disabled_at is None


@pytest.mark.requirement("SURF-4")
def test_a_wrong_account_is_refused_with_what_is_wrong_and_leaves_no_key(web: RunningWeb) -> None:
    web.add("taken")
    lead = web.browser("lead-wrong", *LEAD)
    for body, words in [
        ({"name": "taken", "roles": ["analyst"]}, "already"),
        ({"name": "owner", "roles": ["analyst"]}, "whoever runs sentinel up"),
        ({"name": "Webhook", "roles": ["analyst"]}, "or of what it runs"),
        ({"name": "user", "roles": ["analyst"]}, "or of what it runs"),
        ({"name": "no name!", "roles": ["analyst"]}, "no name for an account"),
        ({"name": "none", "roles": []}, "roles"),
        ({"name": "none", "roles": ["analyst"], "oidc": " "}, "identity provider"),
        ({"name": "none", "roles": ["king"]}, "roles"),
    ]:
        answer = lead.post("/users", body)
        assert (answer.status, words in answer.body["detail"]) == (422, True), answer.body
    assert lead.request("PUT", "/users/nobody", {"roles": ["analyst"]}).status == 422
    assert [each for each in key_records(web, "taken") if each[0] == "created"][1:] == []
    assert key_records(web, "none") == []


@pytest.mark.requirement("SURF-4")
def test_changes_at_once_leave_an_account_one_key_which_works(web: RunningWeb) -> None:
    leads = [web.browser(f"lead-at-once-{number}", *LEAD) for number in range(2)]
    leads[0].post("/users", {"name": "raced", "roles": ["analyst"]})
    asked: list[tuple[Client, str, str, Any]] = [(lead, "POST", "/users/raced/reset", None) for lead in leads]
    asked += [(leads[at], "PUT", "/users/raced", {"roles": [LEAD[at]]}) for at in range(2)]
    for _ in range(3):
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = list(pool.map(lambda each: each[0].request(*each[1:]), asked))
        assert [answer.status for answer in answers] == [200] * len(asked)
        account, keys = web.web.people.find("raced"), web.gateway.state.keys
        assert [each.key_id for each in keys.list() if each.name == "raced" and each.revoked_at is None] == [
            account.key_id
        ]
        assert keys.verify(web.web.people.gateway_key(account.user_id)) is not None


@pytest.mark.requirement("SURF-4")
def test_the_record_of_a_person_holds_what_the_agent_did_for_them_under_each_of_their_keys(web: RunningWeb) -> None:
    auditor = web.browser("audits-people", Role.AUDITOR)
    lead, zoe = web.browser("lead-of-zoe", *LEAD), web.browser("zoe")
    zoe.ask("call read_alert")
    lead.request("PUT", "/users/zoe", {"roles": ["analyst", "approver"]})
    zoe.ask("call read_alert")
    found = auditor.get("/audit?before=0&limit=200&person=Zoe").body
    calls = [each["record"] for each in found["records"] if each["record"]["kind"] == "intent"]
    assert [each["tool"] for each in calls] == ["read_alert", "read_alert"]
    assert {found["names"][each["key_id"]] for each in calls} == {"caller"}  # the agent's key, in sessions of zoe
    assert len({key_id for key_id, name in found["names"].items() if name == "zoe"}) == 2
    changes = auditor.get("/audit?before=0&limit=200&person=lead-of-zoe&kind=key").body["records"]
    assert [each["record"]["name"] for each in changes if each["record"]["by"] == "lead-of-zoe"] == ["zoe", "zoe"]
